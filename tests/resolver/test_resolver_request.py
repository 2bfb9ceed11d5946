"""Requirements as edges: pins, nightlies, and the words that name them."""

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.request import (
    Edge,
    Requested,
    exact_pin,
    format_requirement,
    make_edge,
)


def _edge(text: str, *, opens_nightly: bool = False) -> Edge:
    return make_edge(
        Requirement(text),
        kind=FactKind.DEPENDENCY,
        subject="x",
        source="METADATA",
        opens_nightly=opens_nightly,
    )


@pytest.mark.parametrize(
    ("specifier", "pin"),
    [
        ("==2.9.1", "2.9.1"),
        ("===2.9.1", "2.9.1"),
        (">=2,==2.9.1+cu130", "2.9.1+cu130"),
        ("==2.9.*", None),
        ("===any-text", None),
        ("~=2.9", None),
        ("", None),
    ],
)
def test_an_exact_clause_pins(specifier: str, pin: str | None) -> None:
    found = exact_pin(SpecifierSet(specifier))
    assert found == (Version(pin) if pin is not None else None)


@pytest.mark.parametrize(
    ("text", "nightly", "early"),
    [
        ("torch==2.11.0.dev20260212", True, True),
        ("torch==2.11.0rc1", True, True),
        ("torch>=2.11.0.dev1", False, False),
        ("torch==2.11.0", False, False),
    ],
)
def test_a_pin_on_a_pre_release_opens_the_nightly_folders(
    text: str, *, nightly: bool, early: bool
) -> None:
    edge = _edge(text)
    assert (edge.nightly, edge.pins_prerelease) == (nightly, early)


def test_an_exact_pin_of_a_nightly_opens_them_too_and_a_bound_does_not() -> None:
    assert _edge("triton==3.6.0+git98", opens_nightly=True).nightly
    assert not _edge("triton==3.6.0+git98", opens_nightly=True).pins_prerelease
    assert not _edge("sympy>=1.13", opens_nightly=True).nightly


def test_an_edge_names_project_extras_and_url_as_they_are_normalised() -> None:
    edge = _edge("Flash_Attn[Cu_13,a] @ https://wheels.test/x.whl")
    assert edge.node == "flash-attn"
    assert edge.extras == {"cu-13", "a"}
    assert edge.url == "https://wheels.test/x.whl"
    assert edge.fact.detail == "Flash_Attn[Cu_13,a] @ https://wheels.test/x.whl"


def test_a_requirement_is_told_without_its_marker() -> None:
    assert format_requirement(Requirement("x[b,a]>=1; os_name == 'nt'")) == "x[a,b]>=1"


def test_an_edge_admits_pre_releases_and_builds_of_what_it_pins() -> None:
    assert _edge("torch==2.9.1").admits(Version("2.9.1+cu130"))
    assert _edge("torch>=2.9").admits(Version("2.11.0.dev1"))
    assert not _edge("torch>=2.11").admits(Version("2.11.0.dev1"))


def test_facts_that_say_the_same_are_one_wherever_they_are_written() -> None:
    one, two = (
        Fact(kind=FactKind.PAIRING, subject="a", object="b", detail="c", source=source)
        for source in ("here", "there")
    )
    assert one == two
    assert len({one, two}) == 1
    assert [kind.word for kind in FactKind if kind.proves_nothing] == ["incomplete", "unknown"]


def test_what_is_asked_for_has_a_normalised_project() -> None:
    assert Requested(requirement=Requirement("Flash_Attn"), where="x").project == "flash-attn"
