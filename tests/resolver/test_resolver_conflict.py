"""Conflicts: minimal, told apart, and what they are told with."""

import pytest

from cudalock.errors import IndexAccessError, ResolutionStoppedError
from cudalock.resolver import conflict as conflict_module
from cudalock.resolver.conflict import Conflict, NoSolutionError, make_conflict, summarise
from cudalock.resolver.exhaustive import Refusal, prove
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.resolution import solve
from cudalock.resolver.source import MemorySource
from cudalock.resolver.world import World
from cudalock.wheel import CoreMetadata, ListedFile
from random_worlds import RandomWorld, Wheel, make_world

_OLD_PYTHON = "cp311-cp311-manylinux_2_28_x86_64"


def _refused(spec: RandomWorld) -> Conflict:
    with pytest.raises(NoSolutionError) as caught:
        solve(make_world(spec))
    return caught.value.conflict


def _told(conflict: Conflict) -> list[list[tuple[str, str]]]:
    return [
        [(entry.fact.kind.word, entry.fact.detail) for entry in facts]
        for facts in (conflict.facts, *conflict.also)
    ]


def test_a_conflict_tells_the_machine_then_the_wishes_then_the_chain() -> None:
    spec = RandomWorld(
        requirements=("a", "b"),
        wheels=(
            Wheel(project="a", version="1.0", requires=("c==1.0",)),
            Wheel(project="b", version="1.0+cu126"),
            Wheel(project="c", version="2.0", tags=_OLD_PYTHON),
        ),
        constraints=("a<2",),
    )
    conflict = _refused(spec)
    assert _told(conflict) == [
        [
            ("target", "the target takes CUDA 13"),
            ("requirement", "b"),
            ("demand", "is built for CUDA 12"),
        ],
        [("requirement", "a"), ("dependency", "c==1.0")],
    ]


def test_the_error_says_which_target_it_is_about() -> None:
    with pytest.raises(NoSolutionError) as caught:
        solve(make_world(RandomWorld(requirements=("a",), wheels=())))
    assert caught.value.target.python == "3.12"
    assert (caught.value.exit_code, caught.value.code) == (1, "no-solution")


def test_up_to_three_further_conflicts_are_found() -> None:
    names = ["a", "b", "c", "d", "e"]
    wheels = tuple(Wheel(project=name, version="1.0+cu126") for name in names)
    spec = RandomWorld(requirements=tuple(names), wheels=wheels)
    assert len(_refused(spec).also) == 3


def test_conflicts_of_wishes_alone_have_nothing_to_set_aside() -> None:
    wheels = (Wheel(project="a", version="1.0"), Wheel(project="b", version="1.0+cu126"))
    spec = RandomWorld(requirements=("a==1", "a==2", "b"), wheels=wheels)
    assert _told(_refused(spec)) == [[("requirement", "a==2")]]


def test_a_further_conflict_of_wishes_alone_is_the_last() -> None:
    wheels = (Wheel(project="a", version="1.0+cu126"), Wheel(project="b", version="1.0"))
    told = _told(_refused(RandomWorld(requirements=("a", "b==2"), wheels=wheels)))
    assert [len(facts) for facts in told] == [3, 1]
    assert told[1] == [("requirement", "b==2")]


def test_what_only_the_policy_refuses_says_so() -> None:
    spec = RandomWorld(requirements=("a",), wheels=(Wheel(project="a", version="1.0+cu131"),))
    assert _refused(spec).only_policy
    spec = RandomWorld(requirements=("a",), wheels=(Wheel(project="a", version="1.0+cu126"),))
    assert not _refused(spec).only_policy


def test_a_reason_that_is_no_policy_is_told_in_its_place() -> None:
    # Both a and b refuse; only b's reason would be there under the other policy too.
    spec = RandomWorld(
        requirements=("a", "b"),
        wheels=(Wheel(project="a", version="1.0+cu131"), Wheel(project="b", version="1.0+cu126")),
    )
    assert not _refused(spec).only_policy


def test_a_proof_is_not_given_up_for_what_nobody_saw() -> None:
    # a is refused by the policy, and b cannot be told: that b is open changes nothing about a.
    spec = RandomWorld(
        requirements=("a>=2.0", "b==1.0rc1"),
        wheels=(Wheel(project="a", version="2.0+cu131"), Wheel(project="b", version="1.0")),
        partial=frozenset({"b"}),
    )
    assert ("requirement", "a>=2.0") in _told(_refused(spec))[0]


def test_before_could_not_tell_is_said_wheels_are_read() -> None:
    # c is unknown; a and b clash whatever it requires, which shows when both are read.
    spec = RandomWorld(
        requirements=("c", "a", "b"),
        wheels=(
            Wheel(project="a", version="1.0", requires=("d==1.0",)),
            Wheel(project="b", version="1.0", requires=("d==2.0",)),
            Wheel(project="c", version="1.0", requires=None),
            Wheel(project="d", version="1.0"),
            Wheel(project="d", version="2.0"),
        ),
    )
    assert [kind for kind, _ in _told(_refused(spec))[0]] == [
        "requirement",
        "requirement",
        "dependency",
        "dependency",
    ]


def test_of_several_reasons_one_is_left() -> None:
    wheels = tuple(Wheel(project=project, version="1.0+cu126") for project in ("a", "b"))
    world = make_world(RandomWorld(requirements=("a", "b"), wheels=wheels))
    facts = {edge.fact for edge in world.roots}
    for project in ("a", "b"):
        for violation in world.options(project).candidates[0].violations:
            facts |= {violation.fact, violation.pin}
    conflict = make_conflict(world, Refusal(facts=frozenset(facts)))
    assert [len(told) for told in _told(conflict)] == [3, 3]


class _Failing(MemorySource):
    """Answers for ``c`` alone; reading anything else fails."""

    def metadata(self, file: ListedFile) -> CoreMetadata | None:
        if file.wheel.project == "c":
            return None
        raise IndexAccessError("expected an answer, found none")


def test_what_cannot_be_read_any_more_leaves_the_first_refusal() -> None:
    spec = RandomWorld(
        requirements=("c", "z"),
        wheels=(
            Wheel(project="c", version="1.0", requires=None),
            Wheel(project="z", version="1.0"),
        ),
    )
    source = _Failing([wheel.listed() for wheel in spec.wheels])
    world = make_world(spec, source=source)
    world.details(world.options("c").candidates[0])
    refusal = prove(world)
    assert isinstance(refusal, Refusal)
    with pytest.raises(ResolutionStoppedError, match="could not tell whether a set exists: c"):
        make_conflict(world, refusal)


def test_a_further_conflict_that_takes_too_long_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["a", "b"]
    wheels = tuple(Wheel(project=name, version="1.0+cu126") for name in names)
    world = make_world(RandomWorld(requirements=tuple(names), wheels=wheels))
    refusal = prove(world)
    assert isinstance(refusal, Refusal)
    whole = make_conflict(world, refusal)
    assert len(whole.also) == 1

    minimal = conflict_module._minimal
    calls = []

    def once(world: World, facts: frozenset[Fact], aside: frozenset[Fact]) -> frozenset[Fact]:
        calls.append(facts)
        if len(calls) > 1:
            raise ResolutionStoppedError("the second search ran out of steps")
        return minimal(world, facts, aside)

    monkeypatch.setattr(conflict_module, "_minimal", once)
    assert make_conflict(world, refusal).also == ()


def test_a_fact_is_told_with_the_versions_and_places_it_covers() -> None:
    spec = RandomWorld(
        requirements=("a>=2",),
        wheels=(
            Wheel(project="a", version="1.0+cu126"),
            Wheel(project="a", version="2.0+cu126"),
            Wheel(project="a", version="3.0+cu126"),
            Wheel(project="a", version="3.0", tags=_OLD_PYTHON),
            Wheel(project="a", version="2.5", tags=_OLD_PYTHON),
        ),
    )
    covered = {
        entry.fact.detail: ([str(version) for version in entry.versions], entry.wheels)
        for entry in _refused(spec).facts
    }
    assert covered["is built for CUDA 12"] == (["2.0+cu126", "3.0+cu126"], 2)
    assert covered["for another Python"] == (["2.5", "3.0"], 2)
    assert covered["a>=2"] == ([], 0)


def test_the_wheels_of_a_project_are_counted_by_what_rules_them_out() -> None:
    spec = RandomWorld(
        requirements=("a",),
        wheels=(
            Wheel(project="a", version="1.0", tags=_OLD_PYTHON),
            Wheel(project="a", version="2.0", tags=_OLD_PYTHON),
            Wheel(project="a", version="2.0+cu126"),
            Wheel(project="a", version="3.0", requires=None),
            Wheel(project="a", version="4.0"),
        ),
        partial=frozenset({"a"}),
    )
    world = make_world(spec)
    for candidate in world.options("a").candidates:
        world.details(candidate)
    summary = summarise(world, "a")
    assert (summary.project, summary.wheels) == ("a", 5)
    assert summary.rejections == (
        ("for another Python", 2),
        ("CUDA 12", 1),
        ("without metadata that can be had", 1),
    )
    assert summary.indices == ("https://wheels.test/",)
    assert [str(version) for version in summary.versions] == [
        "1.0",
        "2.0",
        "2.0+cu126",
        "3.0",
        "4.0",
    ]


def test_the_kinds_are_ordered_from_what_is_told_least() -> None:
    assert min(FactKind) is FactKind.INCOMPLETE
    assert max(FactKind) is FactKind.REQUIREMENT
