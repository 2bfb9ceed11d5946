"""Every kind of fact, warning and error has a rule code, and every rule a page of help."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cudalock
from cudalock.cli.arguments import parse_arguments
from cudalock.errors import CudalockError
from cudalock.explain.help_text import format_page, format_rules
from cudalock.explain.rules import (
    RULES,
    Rule,
    fact_rule,
    fact_word,
    find_rule,
    package_word,
    rule_of,
)
from cudalock.resolver.candidates import rejection_fact
from cudalock.resolver.dating import LATE, UNDATED
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.rejection_words import REASONS
from cudalock.resolver.variants import UNKNOWN_VARIANT

_SOURCE = Path(cudalock.__file__).parent
_PAGES = _SOURCE / "explain" / "pages"
_TREES = {
    path.relative_to(_SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(_SOURCE.rglob("*.py"))
}
_EACH = [pytest.param(rule, id=rule.code) for rule in RULES]


def _words_of(calls: str, keyword: str) -> Iterator[tuple[str, str]]:
    """Yield the constants that calls of one name are given for a keyword, with their place."""
    for place, tree in _TREES.items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id != calls:
                continue
            given = [k.value for k in node.keywords if k.arg == keyword]
            assert given, f"{place}:{node.lineno}: {calls} without {keyword}="
            value = given[0]
            assert isinstance(value, ast.Constant), (
                f"{place}:{node.lineno}: write {keyword}= as a constant, so that its rule is known"
            )
            yield str(value.value), f"{place}:{node.lineno}"


def _missing(words: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[str]:
    return [f"{word} ({place})" for word, place in words if rule_of(word) is None]


_ADD = "a word without a rule: add it to `_WORDS` of explain/rules.py, with a page"


def test_every_warning_of_a_set_has_a_rule() -> None:
    found = list(_words_of("SetWarning", "code"))
    assert len({word for word, _ in found}) > 25
    assert _missing(found) == [], _ADD


def test_every_error_has_a_rule() -> None:
    for module in pkgutil.walk_packages(cudalock.__path__, "cudalock."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

    def family(kind: type[CudalockError]) -> Iterator[type[CudalockError]]:
        yield kind
        for each in kind.__subclasses__():
            yield from family(each)

    found = {(kind.code, kind.__name__) for kind in family(CudalockError)}
    assert len(found) > 15
    assert _missing(sorted(found)) == [], _ADD


def test_every_kind_of_fact_has_a_rule() -> None:
    assert _missing([(kind.word, "FactKind") for kind in FactKind]) == [], _ADD


def test_every_reason_that_rules_wheels_out_has_a_rule_of_its_own() -> None:
    kinds = [*REASONS, LATE, UNDATED, f"{UNKNOWN_VARIANT}why", "glibc 2.28"]
    words = [(fact_word(rejection_fact("left", kind)), kind) for kind in kinds]
    assert _missing(words) == [], _ADD


def test_every_virtual_package_is_known_by_a_word() -> None:
    """A package is written ``<name>``, in a constant or as the beginning or end of an f-string."""
    found: dict[str, str] = {}
    for place, tree in _TREES.items():
        if not place.startswith("resolver/"):
            continue
        for node in ast.walk(tree):
            match node:
                case ast.JoinedStr():
                    name = "".join(
                        part.value if isinstance(part, ast.Constant) else "x"  # type: ignore[misc]  # text
                        for part in node.values
                    )
                case ast.Constant(value=str(name)):
                    pass
                case _:
                    continue
            if re.fullmatch(r"<[a-z][^<>=]*>", name):
                found.setdefault(name, f"{place}:{node.lineno}")
    assert {"<driver>", "<cuda>", "<gpu x>"} <= set(found)
    # `<x>` is a family's or partner's own name; the kind of its fact says what it is.
    named = {name: place for name, place in found.items() if name != "<x>"}
    missing = [f"{name} ({place})" for name, place in named.items() if package_word(name) is None]
    assert missing == [], "add it to `_PACKAGES`, `_BEGINNINGS` or `_ENDINGS` of explain/rules.py"
    assert _missing([(str(package_word(name)), place) for name, place in named.items()]) == [], _ADD


@pytest.mark.parametrize(
    ("kind", "subject", "about", "source", "code"),
    [
        (FactKind.DEMAND, "torch", "<driver>", "", "CUDA204"),
        (FactKind.TARGET, "<driver>", "", "", "CUDA204"),
        (FactKind.TARGET, "<gpu 12.0>", "", "", "CUDA205"),
        (FactKind.POLICY, "<cuda>", "", "", "CUDA202"),
        (FactKind.DEMAND, "torch", "<torch C++ ABI>", "", "CUDA307"),
        (FactKind.DEMAND, "torch", "<something new>", "", "CUDA200"),
        (FactKind.PAIRING, "kernel", "<libtorch>", "METADATA of sglang", "CUDA301"),
        (FactKind.PAIRING, "kernel", "<libtorch>", "label +pt28cu128", "CUDA302"),
        (FactKind.FAMILY, "vision", "<torch nightly>", "", "CUDA306"),
        (FactKind.FAMILY, "cubin", "<flashinfer>", "", "CUDA305"),
        (FactKind.REJECTION, "torch", "glibc 2.28", "", "CUDA113"),
        (FactKind.REJECTION, "torch", "something new", "", "CUDA120"),
        (FactKind.INCOMPLETE, "torch", "unlisted", "", "CUDA401"),
    ],
)
def test_a_fact_has_the_rule_of_what_it_is_about(
    kind: FactKind, subject: str, about: str, source: str, code: str
) -> None:
    fact = Fact(kind=kind, subject=subject, object=about, detail="", source=source)
    assert fact_rule(fact).code == code


def test_no_code_and_no_word_stands_for_two_rules() -> None:
    words = [word for rule in RULES for word in (rule.code, *rule.words)]
    assert sorted(words) == sorted(set(words))
    assert [rule.code for rule in RULES] == sorted(rule.code for rule in RULES)


def test_every_page_belongs_to_a_rule() -> None:
    assert sorted(path.stem for path in _PAGES.iterdir()) == [rule.code for rule in RULES]


@pytest.mark.parametrize("rule", _EACH)
def test_a_page_says_what_why_how_it_looks_and_what_to_do(rule: Rule) -> None:
    headings = re.findall(r"^#+ .*$", rule.page, re.MULTILINE)
    assert headings == [
        f"# {rule.code}: {rule.title}", "## Why", "## Example", "## What to do"
    ]  # fmt: skip
    assert rule.summary.endswith(".")
    assert len(rule.page) < 2000
    assert all(len(line) <= 100 for line in rule.page.splitlines())


@pytest.mark.parametrize("rule", _EACH)
def test_a_page_fits_the_terminal_and_has_no_marks_of_its_format(rule: Rule) -> None:
    told = format_page(rule)
    assert told.startswith(f"{rule.code}: {rule.title}\n\n{rule.summary.split()[0]}")
    assert max(len(line) for line in told.splitlines()) <= 80
    assert "#" not in re.sub(r"\w#\d|`.*?`", "", told)


@pytest.mark.parametrize("rule", _EACH)
def test_a_page_names_only_flags_and_rules_that_there_are(
    rule: Rule, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(re.findall(r"CUDA\d{3}", rule.page)) <= {each.code for each in RULES}
    known = _every_flag(capsys)
    foreign = {"--version", "--no-binary", "--hash"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", rule.page)) <= known | foreign


def _every_flag(capsys: pytest.CaptureFixture[str]) -> set[str]:
    found: set[str] = set()
    for command in (["resolve"], ["index", "show"], ["inspect"], ["detect"], ["explain"]):
        with pytest.raises(SystemExit):
            parse_arguments([*command, "--help"], version="0")
        found.update(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    return found


def test_the_list_fits_the_terminal() -> None:
    told = format_rules(RULES).splitlines()
    assert len(told) == len(RULES)
    assert max(map(len, told)) <= 80


@pytest.mark.parametrize(
    "asked", ["CUDA203", "cuda203", "203", "unknown-cuda", "Unknown-CUDA", "unknown_cuda"]
)
def test_a_rule_is_found_by_code_and_by_name_in_any_spelling(asked: str) -> None:
    rule = find_rule(asked)
    assert rule is not None
    assert rule.code == "CUDA203"


def test_what_is_no_rule_is_not_found() -> None:
    assert find_rule("CUDA999") is None
    assert find_rule("") is None
