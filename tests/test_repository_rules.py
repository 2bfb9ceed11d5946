"""Rules that hold for every committed file, whatever it is about."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# The patterns are put together here, so that this file holds none of what it looks for.
_REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("python", "org/pypi"),
            ("pypi", "python", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("yarnpkg", "com"),
            ("debian", "org"),
        )
    ),
    re.IGNORECASE,
)
# Folders of one machine; a path such as `/var/tmp/x` or `https://host/work/x` is none of them.
_MACHINE_PATHS = re.compile(r"(?<![\w.:/-])/(?:work|root|tmp/[a-z0-9_-]+|home/[a-z]+)(?=/)")
_BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[)")
_BARE_NOQA = re.compile(r"#\s*(?:ruff:\s*|flake8:\s*)?noqa(?!:\s*[A-Z]+[0-9]+)", re.IGNORECASE)
_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+]+")


@pytest.fixture(scope="module")
def texts(repository: Path, repository_files: tuple[str, ...]) -> dict[str, str]:
    """Read every file that is text, by its name."""
    found = {}
    for name in repository_files:
        data = (repository / name).read_bytes()
        if b"\0" not in data:
            found[name] = data.decode("utf-8")
    return found


def _lines_with(pattern: re.Pattern[str], texts: dict[str, str], suffix: str = "") -> list[str]:
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for name, text in texts.items()
        if name.endswith(suffix)
        for match in pattern.finditer(text)
    ]


def test_no_file_names_the_host_of_a_package_registry(texts: dict[str, str]) -> None:
    assert _lines_with(_REGISTRY_HOSTS, texts) == []


def test_no_file_names_a_folder_of_one_machine(texts: dict[str, str]) -> None:
    assert _lines_with(_MACHINE_PATHS, texts) == []


@pytest.mark.parametrize("folder", ["work", "root", "tmp/team-1", "home/me"])
def test_a_folder_of_one_machine_is_recognised(folder: str) -> None:
    assert _MACHINE_PATHS.search(f'cd "/{folder}/x"')


@pytest.mark.parametrize("text", ["https://host/work/x", "frame/work/x", "/workers/x"])
def test_other_paths_are_not_taken_for_one(text: str) -> None:
    assert _MACHINE_PATHS.search(text) is None


def test_what_is_generated_or_local_is_not_committed(repository_files: tuple[str, ...]) -> None:
    unwanted = re.compile(
        r"(?:.*/)?(?:uv\.lock|poetry\.lock|pdm\.lock|\.DS_Store|.*\.(?:pyc|so|whl|orig|rej))"
        r"|examples/.*pylock.*\.toml|benchmarks/recordings/.*"
    )
    assert [name for name in repository_files if unwanted.fullmatch(name)] == []


def test_every_exception_from_a_check_names_the_check(texts: dict[str, str]) -> None:
    assert _lines_with(_BARE_IGNORE, texts, ".py") + _lines_with(_BARE_NOQA, texts, ".py") == []


@pytest.mark.parametrize(
    ("comment", "bare"),
    [("ignore", True), ("ignore[arg-type]", False), ("ignore # because", True)],
)
def test_a_bare_type_exception_is_recognised(comment: str, bare: bool) -> None:
    assert (_BARE_IGNORE.search(f"x = y  # type: {comment}") is not None) is bare


def test_every_text_ends_with_one_newline_and_has_unix_line_ends(texts: dict[str, str]) -> None:
    wrong = [
        name
        for name, text in texts.items()
        # A page is what a server sends, whichever way it ends its lines.
        if not name.startswith("tests/pages/")
        if text and (not text.endswith("\n") or text.endswith("\n\n") or "\r\n" in text)
    ]
    assert wrong == []


def test_every_module_says_what_it_is_for(texts: dict[str, str]) -> None:
    undocumented = [
        name
        for name, text in texts.items()
        if name.startswith(("src/", "scripts/", "benchmarks/", "examples/"))
        and name.endswith(".py")
        and not ast.get_docstring(ast.parse(text))
    ]
    assert undocumented == []


def test_test_files_have_names_of_their_own(repository_files: tuple[str, ...]) -> None:
    names = [Path(name).name for name in repository_files if re.match(r"tests/.*\.py", name)]
    assert len(set(names)) == len(names)


def test_the_changelog_has_a_place_for_what_is_not_yet_released(texts: dict[str, str]) -> None:
    assert re.search(r"^## \[?Unreleased\]?", texts["CHANGELOG.md"], re.MULTILINE)


def test_the_documents_a_newcomer_looks_for_are_there(texts: dict[str, str]) -> None:
    wanted = {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"}
    assert wanted <= texts.keys()
    assert all(command in texts["README.md"] for command in ("make demo", "make test"))


def test_constraints_pin_names_and_versions_without_addresses(texts: dict[str, str]) -> None:
    pins = [line for line in texts["constraints.txt"].splitlines() if not line.startswith("#")]
    assert [pin for pin in pins if not _PIN.fullmatch(pin)] == []
    assert pins == sorted(pins, key=str.lower)


def test_everything_the_project_asks_for_is_pinned(texts: dict[str, str]) -> None:
    project = tomllib.loads(texts["pyproject.toml"])
    asked = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
    ]
    pins = dict(line.split("==") for line in texts["constraints.txt"].splitlines() if "==" in line)
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    for text in asked:
        requirement = Requirement(text)
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"constraints.txt does not pin {requirement.name}"
        assert requirement.specifier.contains(version), text


def test_continuous_integration_runs_what_contributors_run(texts: dict[str, str]) -> None:
    assert "make lint types test" in texts[".ci/run"]
    assert "make lint types test" in texts["CONTRIBUTING.md"]
