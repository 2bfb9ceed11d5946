"""The words of a conflict: true, short, and each clause one line."""

import pytest
from packaging.version import Version

from cudalock.cuda import CudaVersion, parse_driver_version
from cudalock.explain.derivation import format_derivation
from cudalock.explain.report import (
    conflict_reason,
    conflict_rule,
    format_conflict,
    format_seen,
    format_target,
)
from cudalock.host import Target
from cudalock.resolver.conflict import Conflict, ConflictFact, ProjectSummary
from cudalock.resolver.facts import Fact, FactKind

_TARGET = Target(python="3.12", platform="manylinux_2_28_x86_64")


def _fact(
    kind: FactKind,
    detail: str,
    *,
    subject: str = "",
    about: str = "",
    source: str = "a place",
    versions: str = "",
    besides: str = "",
    wheels: int = 0,
) -> ConflictFact:
    fact = Fact(kind=kind, subject=subject, object=about, detail=detail, source=source)
    return ConflictFact(
        fact=fact,
        sources=(source,),
        versions=tuple(map(Version, versions.split())),
        besides=tuple(map(Version, besides.split())),
        wheels=wheels,
    )


def _summary(project: str, versions: str = "", wheels: int = 1) -> ProjectSummary:
    return ProjectSummary(
        project=project,
        wheels=wheels,
        rejections=(),
        indices=("https://index.test",),
        versions=tuple(map(Version, versions.split())),
    )


_REQUIRED = _fact(FactKind.REQUIREMENT, "left==2", about="left")
_DEPENDENCY = _fact(
    FactKind.DEPENDENCY,
    "left==2",
    subject="right",
    about="left",
    versions="1 2 3 5",
    besides="4",
)


def test_a_range_of_releases_leaves_out_one_that_says_something_else() -> None:
    conflict = Conflict(facts=(_DEPENDENCY,), projects=(_summary("left", "2"),))
    assert "Because right 1 to 3 and 5 require `left==2`" in format_conflict(conflict, _TARGET)


def test_what_no_index_lists_is_said_where_one_fact_alone_speaks_of_it() -> None:
    asked = _fact(FactKind.REQUIREMENT, "right", about="right")
    conflict = Conflict(facts=(_DEPENDENCY, asked), projects=(_summary("left", "1"),))
    told = format_conflict(conflict, _TARGET)
    assert "require `left==2` (a place), which no index lists\n" in told
    assert told.endswith("\nleft: 1 wheel, 1")
    assert conflict_rule(conflict).code == "CUDA404"
    assert conflict_reason(conflict) == "no index lists `left==2` for it"


def test_what_no_index_lists_is_not_said_where_two_facts_speak_of_it() -> None:
    other = _fact(FactKind.REQUIREMENT, "left==3", about="left")
    conflict = Conflict(facts=(_DEPENDENCY, other), projects=(_summary("left", "1"),))
    assert "no index lists" not in format_conflict(conflict, _TARGET)
    assert conflict_rule(conflict).code == "CUDA104"


def test_of_an_address_it_is_not_said_that_no_index_lists_it() -> None:
    url = _fact(FactKind.DEPENDENCY, "left @ https://x.test/left-1-py3-none-any.whl", about="left")
    conflict = Conflict(facts=(url, _fact(FactKind.REQUIREMENT, "right", about="right")))
    assert "no index lists" not in format_conflict(conflict, _TARGET)


def test_a_requirement_alone_is_told_as_one_sentence() -> None:
    conflict = Conflict(facts=(_REQUIRED,), projects=(_summary("left", wheels=0),))
    told = format_conflict(conflict, _TARGET).splitlines()
    assert told[2] == "You require `left==2` (a place), and no index lists such a wheel."
    assert told[-1] == "left: no wheel on https://index.test"


def test_files_whose_names_are_no_wheels_have_no_versions_to_tell() -> None:
    conflict = Conflict(facts=(_REQUIRED,), projects=(_summary("left", wheels=2),))
    assert format_conflict(conflict, _TARGET).endswith("\nleft: 2 wheels")


def test_an_override_and_a_constraint_are_told_as_the_users_own() -> None:
    override = _fact(FactKind.OVERRIDE, "left==2", about="left")
    constraint = _fact(FactKind.CONSTRAINT, "left<2", about="left")
    conflict = Conflict(facts=(override, constraint))
    told = format_conflict(conflict, _TARGET)
    assert "Because your override says `left==2` (a place)\nand you constrain `left<2`" in told
    assert conflict_rule(conflict).code == "CUDA102"


def test_a_text_with_ends_of_lines_stays_one_clause() -> None:
    source = "a\nplace\u2028of\r\nothers"
    fact = _fact(FactKind.DEPENDENCY, "left==2", subject="right", about="left", source=source)
    conflict = Conflict(facts=(fact, _REQUIRED))
    told = format_conflict(conflict, _TARGET)
    assert "Because right requires `left==2` (a place of others)\n" in told
    assert "    from: a place of others\n" in format_derivation(conflict)


def test_the_derivation_lists_every_version_of_a_range() -> None:
    told = format_derivation(Conflict(facts=(_DEPENDENCY,), projects=(_summary("left", "1 2"),)))
    assert "    versions: 1, 2, 3, 5\n    from: a place\n" in told
    assert "  left: 1 wheel\n    asked: https://index.test\n    versions: 1, 2" in told


def test_what_only_the_user_said_is_not_told_as_seen() -> None:
    late = _fact(FactKind.REJECTION, "yanked", subject="left", about="yanked", wheels=1)
    assert format_seen([]) == format_seen([_REQUIRED]) == ""
    assert format_seen([_REQUIRED, late]).splitlines() == [
        "By what was seen alone there is no set:",
        "  you require `left==2` (a place)",
        "  1 wheel of left is yanked (a place)",
    ]


@pytest.mark.parametrize(
    ("target", "begins"),
    [
        (
            Target(python="3.12", platform="win_amd64", cuda=CudaVersion(major=13, minor=0)),
            "The target is a machine whose driver is not known, wheels of CUDA 13.0 or older",
        ),
        (
            Target(python="3.12", platform="win_amd64", cpu=True),
            "The target is a machine without CUDA, Python 3.12, win_amd64.",
        ),
        (
            Target(python="3.12", platform="win_amd64", driver=parse_driver_version("590.48.01")),
            "The target is driver 590.48.01, Python 3.12",
        ),
    ],
)
def test_the_target_is_told_in_one_sentence(target: Target, begins: str) -> None:
    assert format_target(target).startswith(begins)
