# Every target needs only python3 (3.11 or newer) and make: the first one that runs installs the
# tools into .venv, pinned by constraints.txt; later ones find them there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Made last, so that an installation that was cut short is taken up again.
INSTALLED := $(VENV)/.installed

# What pip needs to reach a registry (index, proxy, certificate) is left as the machine has it set.
# What would bring other files than that registry's is set aside: a value of one space counts as
# an empty list, where no value at all would leave the machine's own in force.
PIP_SETTINGS := PIP_EXTRA_INDEX_URL=' ' PIP_FIND_LINKS=' ' PIP_CONSTRAINT='$(CURDIR)/constraints.txt' \
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

unexport PYTHONHOME PYTHONPATH

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-network fuzz lint types bench bench-check format clean

help: ## Say what each target does
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

demo: $(INSTALLED) ## Lock a CUDA 13.0 set for a Blackwell machine from recorded indices
	$(BIN)/cudalock resolve --project examples/blackwell-sglang --recorded --upgrade

test: $(INSTALLED) ## Run the tests; only the installers they install locks with are fetched
	$(BIN)/pytest -n 2 -m "not network and not fuzz"

test-network: $(INSTALLED) ## Run the tests that ask the live default index
	$(BIN)/pytest -m network

fuzz: $(INSTALLED) ## 100,000 mutated inputs for each reader of a wheel's bytes, 5,000 random worlds
	$(BIN)/pytest -n 2 -m fuzz

lint: $(INSTALLED) ## Check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED) ## Check types
	$(BIN)/mypy

bench: $(INSTALLED) ## Time cudalock against uv on recorded pages (WORKS="W1 W5a" chooses)
	$(BIN)/python -m benchmarks.compare $(WORKS)

bench-check: $(INSTALLED) ## Time cudalock check against uv lock --check on 200 packages
	$(BIN)/python -m benchmarks.check

format: $(INSTALLED) ## Rewrite the code in the common style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## Remove everything that the other targets made
	rm -rf $(VENV) build dist htmlcov .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests scripts benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Expected Python 3.11 or newer, found that '$(PYTHON)' is" \
			"$$($(PYTHON) --version 2>/dev/null || echo none)." \
			"Name another: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Installing into $(VENV) (once, and again when pyproject.toml or constraints.txt change)"
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || { \
		echo "'$(PYTHON) -m venv' failed; on Debian it is in the package python3-venv" >&2; exit 1; }
	@$(PIP_SETTINGS) $(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@
