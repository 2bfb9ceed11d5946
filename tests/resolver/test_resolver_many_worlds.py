"""What an answer promises, on many random worlds, each checked in full; 5,000 by `make fuzz`.

The worlds are drawn from numbered seeds, so that a failure names the world to look at:
``random_world(Random(seed))``.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from cudalock.errors import ResolutionStoppedError, WheelError
from cudalock.explain.remedies import Remedy, find_remedies
from cudalock.host import Target
from cudalock.resolver.conflict import Conflict, NoSolutionError
from cudalock.resolver.engine import Solution
from cudalock.resolver.exhaustive import Refusal, Witness, search_facts
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.notes import describe
from cudalock.resolver.request import Request
from cudalock.resolver.resolution import Resolution, solve
from cudalock.resolver.world import World
from random_worlds import Oracle, RandomWorld, Wheel, key_of, make_world, random_world

_EACH = 25
_FEW, _MANY = 300, 5000
# These relate wheels to each other or to what is asked. Of a wheel that is ruled out by itself one
# reason is told, where brute force knows several.
_RELATING = frozenset(
    {FactKind.REQUIREMENT, FactKind.CONSTRAINT, FactKind.OVERRIDE, FactKind.DEPENDENCY}
    | {FactKind.FAMILY, FactKind.PAIRING, FactKind.RELEASE}
)


@pytest.mark.parametrize("first", range(0, _FEW, _EACH))
def test_an_answer_keeps_its_promises(first: int) -> None:
    print(_checked(first))  # noqa: T201 - shown with -s


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(_FEW, _FEW + _MANY, _EACH))
def test_an_answer_keeps_its_promises_on_many_worlds(first: int) -> None:
    print(_checked(first))  # noqa: T201 - shown with -s


def _checked(first: int) -> Counter[str]:
    counts = Counter[str]()
    for seed in range(first, first + _EACH):
        try:
            rng = Random(seed)  # noqa: S311 - a number for a world, no secret
            _check(random_world(rng), rng, counts)
        except Exception as error:
            error.add_note(f"the world of seed {seed}")
            raise
    return counts


def _check(spec: RandomWorld, order: Random, counts: Counter[str]) -> None:
    world = _read_all(make_world(spec), spec)
    answer = _decide(world)
    if isinstance(answer, Solution):
        counts["yes"] += 1
        assert Oracle(spec).holds(_chosen(spec, answer))
    elif answer is None:
        counts["could not tell"] += 1
        assert not Oracle(spec).satisfiable()
        assert _could_be(spec)
    else:
        counts["no"] += 1
        assert not _could_be(spec)
        for described in (answer.facts, *answer.also):
            counts["conflicts"] += 1
            _check_conflict(world, spec, frozenset(entry.fact for entry in described))
        _check_remedies(world, spec, answer, counts)
    again = _decide(_read_all(make_world(spec, shuffle=order), spec))
    assert again == answer if isinstance(answer, Solution) else type(again) is type(answer)
    if isinstance(answer, Conflict) and isinstance(again, Conflict):
        assert (again.facts, again.also) == (answer.facts, answer.also)


def _check_conflict(world: World, spec: RandomWorld, core: frozenset[Fact]) -> None:
    """It refuses, nothing in it is idle, and everything in it is so."""
    assert isinstance(search_facts(world, core.__contains__), Refusal)
    assert not Oracle(spec, {key_of(fact) for fact in core}.__contains__).satisfiable()
    # Whether a nightly is let in is no fact to brute force, and one to the searches.
    projects = {name for fact in core for name in (fact.subject, fact.object)}
    nightly = any(wheel.nightly and wheel.project in projects for wheel in spec.wheels)
    for fact in core:
        rest = core - {fact}
        assert isinstance(search_facts(world, rest.__contains__), Witness)
        if fact.kind in _RELATING and not nightly:
            assert Oracle(spec, {key_of(other) for other in rest}.__contains__).satisfiable(), fact
        if fact.kind not in (FactKind.TARGET, FactKind.POLICY):
            assert key_of(fact) in Oracle(spec).facts(), fact


def _check_remedies(
    world: World, spec: RandomWorld, conflict: Conflict, counts: Counter[str]
) -> None:
    def attempt(request: Request, target: Target) -> Resolution | None:
        changed = _world_of(spec, request, target)
        try:
            return describe(changed, solve(changed))
        except (NoSolutionError, ResolutionStoppedError, WheelError):
            return None

    for remedy in find_remedies(
        conflict,
        request=world.request,
        target=world.target,
        knowledge=world.knowledge,
        solve=attempt,
    ):
        counts["remedies"] += 1
        changed = _changed(spec, remedy)
        assert isinstance(_decide(make_world(changed, target=remedy.target)), Solution), remedy
        if remedy.target == world.target:
            assert Oracle(changed).satisfiable(), remedy


def _changed(spec: RandomWorld, remedy: Remedy) -> RandomWorld:
    return replace(
        spec,
        requirements=tuple(str(entry.requirement) for entry in remedy.requirements),
        prereleases=spec.prereleases.union(remedy.prereleases),
    )


def _world_of(spec: RandomWorld, request: Request, target: Target) -> World:
    requirements = tuple(str(entry.requirement) for entry in request.requirements)
    changed = replace(spec, requirements=requirements, prereleases=request.prereleases)
    return make_world(changed, target=target)


def _decide(world: World) -> Solution | Conflict | None:
    """Solve; None is "could not tell"."""
    try:
        return solve(world)
    except NoSolutionError as error:
        return error.conflict
    except ResolutionStoppedError as error:
        if not error.message.startswith("could not tell"):
            raise
        return None


def _read_all(world: World, spec: RandomWorld) -> World:
    """Read every wheel first: what a wheel lets in is then known from the beginning."""
    for project in sorted({wheel.project for wheel in spec.wheels}):
        for nightly in (False, True):
            for candidate in world.options(project, nightly=nightly).candidates:
                world.details(candidate)
    return world


def _chosen(spec: RandomWorld, solution: Solution) -> dict[str, Wheel]:
    by_name = {wheel.filename: wheel for wheel in spec.wheels}
    return {p: by_name[c.file.filename] for p, c in solution.candidates.items()}


def _could_be(spec: RandomWorld) -> bool:
    """Whether a set may exist if what nobody could see were kind."""
    return Oracle(spec, lambda key: key[0] not in ("unknown", "incomplete")).satisfiable()
