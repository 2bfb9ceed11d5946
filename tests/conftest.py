"""What holds for every test: no network, nothing of the outside world, and expected words as files.

- The network is refused except for loopback (``--disable-socket`` in pyproject.toml). A test
  marked ``network`` is let through, and `make test` leaves it out.
- The settings a person has made (uv, pip, conda, cudalock, proxies) do not reach a test, which
  sets its own; a program that a test starts meets a dead proxy when it wants the network.
- A test marked ``fuzz`` takes minutes and runs only when ``-m`` names it.
- ``golden`` compares a text with a file under ``tests/golden``; ``--update-golden`` rewrites it.
"""

import itertools
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

_REPOSITORY = Path(__file__).resolve().parent.parent
_GOLDEN = Path(__file__).resolve().parent / "golden"

# What a person may have set for the tools we run, or for us. Certificates stay: they say whom to
# trust, not where to go, and network tests need them.
_PERSONAL = re.compile(
    r"(?:UV|PIP|CUDALOCK|CONDA|MAMBA|HATCH|PRE_COMMIT)_(?!CERT$)\w+"
    r"|VIRTUAL_ENV|PYTHONPATH|FORCE_COLOR|NO_COLOR|CI|GITHUB_\w+"
)
# The part of it that tells where the live default index is and how to reach it.
_REACH = re.compile(r"(?:UV|PIP)_\w+")
_PROXIES = re.compile(r"(?:https?|all|no)_proxy", re.IGNORECASE)
# Nothing listens on the discard port, so what goes through this proxy is refused at once.
_DEAD_PROXY = "http://127.0.0.1:9"
_LOOPBACK = "127.0.0.1,localhost,::1"

_outside: dict[str, str] = {}
_HANDED = "TESTS_OUTSIDE"
_folders = itertools.count()

# The same examples on every run of CI; elsewhere new ones, which is how a property finds a fault.
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the expected texts under tests/golden; review the difference as prose",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Put the outside world aside before any test module is imported."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    # A process of a parallel run starts with what is set here, so it is handed what was put aside.
    handed = os.environ.get(_HANDED)
    for name in list(os.environ):
        if _PERSONAL.fullmatch(name) or _PROXIES.fullmatch(name):
            _outside[name] = os.environ[name]
            patch.delenv(name)
    if handed is not None:
        _outside.clear()
        _outside.update(json.loads(handed))
    patch.setenv(_HANDED, json.dumps(_outside))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        patch.setenv(name, _DEAD_PROXY)
    patch.setenv("NO_PROXY", _LOOPBACK)
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    patch.setenv("COLUMNS", "80")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "fuzz" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("fuzz")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    for item in items:
        if item.get_closest_marker("network"):
            item.add_marker(pytest.mark.enable_socket)


@pytest.fixture(autouse=True)
def _isolated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give the test folders of its own for what programs keep; they exist once written to."""
    base = request.getfixturevalue("tmp_path_factory").getbasetemp() / f"home-{next(_folders)}"
    live = request.node.get_closest_marker("network") is not None
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(base / name.lower()))
        if live:
            # The live default index is what the person has set, reached as they reach it.
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "PIP_CONFIG_FILE"):
                patch.delenv(name)
            for name, value in _outside.items():
                if _REACH.fullmatch(name) or _PROXIES.fullmatch(name):
                    patch.setenv(name, value)
        else:
            for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
                patch.setenv(name, str(base / name.lower()))
        yield


@pytest.fixture(scope="session")
def outside_environment() -> dict[str, str]:
    """Return the environment in which a program reaches the package index as the person does.

    As the Makefile has it: extra indexes and link folders of the machine are left out.
    """
    own = {k: v for k, v in os.environ.items() if not _PROXIES.fullmatch(k)}
    own.pop("PIP_CONFIG_FILE", None)
    reach = {k: v for k, v in _outside.items() if _REACH.fullmatch(k) or _PROXIES.fullmatch(k)}
    return {**own, **reach, "PIP_EXTRA_INDEX_URL": " ", "PIP_FIND_LINKS": " "}


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare ``text`` with ``tests/golden/name``; with ``--update-golden``, rewrite the file."""
    update = bool(request.config.getoption("--update-golden"))

    def check(name: str, text: str) -> None:
        path = _GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        assert path.is_file(), f"no expected text yet: pytest --update-golden writes {path.name}"
        assert text == path.read_bytes().decode("utf-8")

    return check


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the top folder of the repository."""
    return _REPOSITORY


@pytest.fixture(scope="session")
def repository_files() -> tuple[str, ...]:
    """List what is, or could be, committed: tracked files and new ones that are not ignored."""
    if not (_REPOSITORY / ".git").exists():
        pytest.skip("only a git checkout knows what is committed; this is a source distribution")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=_REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # A file deleted in the work tree is still in git's index.
    names = sorted({name for name in listed.split("\0") if name})
    return tuple(name for name in names if (_REPOSITORY / name).is_file())
