"""The first look at exact pins: it refuses what the searches refuse, and asks for nothing else."""

import pytest
from packaging.specifiers import SpecifierSet

from cudalock.errors import IndexAccessError
from cudalock.resolver.conflict import Conflict, NoSolutionError
from cudalock.resolver.exhaustive import Refusal, prove
from cudalock.resolver.pins import look_at_pins
from cudalock.resolver.resolution import solve
from cudalock.resolver.source import MemorySource
from cudalock.wheel import ProjectListing
from random_worlds import RandomWorld, Wheel, make_world


def _seen(spec: RandomWorld) -> Conflict | None:
    try:
        look_at_pins(make_world(spec))
    except NoSolutionError as error:
        return error.conflict
    return None


def _facts(conflict: Conflict | None) -> list[tuple[str, str, str]]:
    facts = [] if conflict is None else [described.fact for described in conflict.facts]
    return [(fact.kind.word, fact.subject, fact.detail) for fact in facts]


def test_pins_that_contradict_each_other_are_refused_by_their_own_facts() -> None:
    spec = RandomWorld(
        requirements=("a==1.0", "b==1.0", "c"),
        wheels=(
            Wheel(project="a", version="1.0", requires=("b==2.0",)),
            Wheel(project="b", version="1.0"),
            Wheel(project="b", version="2.0"),
            Wheel(project="c", version="1.0"),
        ),
    )
    assert _facts(_seen(spec)) == [
        ("requirement", "", "a==1.0"),
        ("requirement", "", "b==1.0"),
        ("dependency", "a", "b==2.0"),
    ]
    assert isinstance(prove(make_world(spec)), Refusal)


def test_a_pairing_of_two_pins_is_seen() -> None:
    spec = RandomWorld(
        requirements=("a==1.0", "b==2.0"),
        pairings=(("a", "==1.0", "b", "1.0"),),
        wheels=(Wheel(project="a", version="1.0"), Wheel(project="b", version="2.0")),
    )
    kinds = [kind for kind, _, _ in _facts(_seen(spec))]
    assert kinds == ["requirement", "requirement", "pairing", "release"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            RandomWorld(
                requirements=("a==1.0", "b==1.0"),
                wheels=(
                    Wheel(project="a", version="1.0", requires=("c",)),
                    Wheel(project="b", version="1.0"),
                    Wheel(project="c", version="1.0", requires=("b==2.0",)),
                ),
            ),
            id="a clash further away",
        ),
        pytest.param(
            RandomWorld(
                requirements=("a==1.0", "b"),
                wheels=(
                    Wheel(project="a", version="1.0", requires=("b==2.0",)),
                    Wheel(project="b", version="1.0"),
                ),
            ),
            id="one pin only",
        ),
        pytest.param(
            RandomWorld(
                requirements=("a==1.0", "b==1.0"),
                wheels=(
                    Wheel(project="a", version="1.0+cu126"),
                    Wheel(project="b", version="1.0"),
                ),
            ),
            id="what the target refuses",
        ),
        pytest.param(
            RandomWorld(
                requirements=("a==1.0", "b==1.0"),
                wheels=(
                    Wheel(project="a", version="1.0"),
                    Wheel(project="b", version="1.0", requires=None),
                ),
            ),
            id="what is not known",
        ),
        pytest.param(
            RandomWorld(
                requirements=("a==1.0", "b==1.0"),
                wheels=(
                    Wheel(project="a", version="1.0", requires=("b==2.0",)),
                    Wheel(project="b", version="1.0"),
                ),
                partial=frozenset({"a"}),
            ),
            id="a page that is not whole",
        ),
        pytest.param(
            RandomWorld(
                requirements=("a==1.0", "b==9.0"),
                wheels=(
                    Wheel(project="a", version="1.0", requires=("b==2.0",)),
                    Wheel(project="b", version="1.0"),
                ),
            ),
            id="a pin that nothing listed meets",
        ),
        pytest.param(
            RandomWorld(
                requirements=("a==1.0", "b==1.0"),
                overrides=("b==2.0",),
                wheels=(
                    Wheel(project="a", version="1.0", requires=("b==1.0",)),
                    Wheel(project="b", version="2.0"),
                ),
            ),
            id="what an override takes the place of",
        ),
    ],
)
def test_what_the_pins_alone_do_not_tell_is_left_to_the_searches(spec: RandomWorld) -> None:
    assert _seen(spec) is None


class _Unreachable(MemorySource):
    def listing(self, project: str, *, admitted: SpecifierSet, nightly: bool) -> ProjectListing:
        raise IndexAccessError(f"expected {project} ({admitted}, nightly {nightly}), found none")


def test_an_index_that_does_not_answer_is_left_to_the_searches_to_tell() -> None:
    spec = RandomWorld(requirements=("a==1.0", "b==1.0"), wheels=())
    look_at_pins(make_world(spec, source=_Unreachable([])))
    with pytest.raises(IndexAccessError):
        solve(make_world(spec, source=_Unreachable([])))


def test_a_pin_on_a_project_by_a_marker_that_does_not_hold_is_none() -> None:
    spec = RandomWorld(
        requirements=("a==1.0", "b==1.0; sys_platform == 'win32'"),
        wheels=(
            Wheel(project="a", version="1.0", requires=("b==2.0",)),
            Wheel(project="b", version="2.0"),
        ),
    )
    assert _seen(spec) is None
    assert set(solve(make_world(spec)).candidates) == {"a", "b"}
