"""Properties of the searches on small random worlds, checked against brute force."""

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudalock.errors import ResolutionStoppedError
from cudalock.resolver.conflict import Conflict, NoSolutionError
from cudalock.resolver.engine import Solution
from cudalock.resolver.exhaustive import Refusal, Witness, prove, search_facts
from cudalock.resolver.pins import look_at_pins
from cudalock.resolver.resolution import solve
from cudalock.resolver.world import World
from random_worlds import Oracle, RandomWorld, Wheel, key_of, make_world, random_world

# Large examples are what this is about, and hypothesis takes them for slow generation.
_quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_worlds = st.randoms(use_true_random=False).map(random_world)


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


@_quick
@given(_worlds)
def test_the_answer_is_that_of_brute_force(spec: RandomWorld) -> None:
    world = _read_all(make_world(spec), spec)
    answer = _decide(world)
    if isinstance(answer, Solution):
        assert Oracle(spec).holds(_chosen(spec, answer))
    elif answer is None:
        assert not Oracle(spec).satisfiable()
        assert _could_be(spec)
    else:
        assert not _could_be(spec)


@_quick
@given(_worlds)
def test_the_second_search_alone_agrees_with_brute_force(spec: RandomWorld) -> None:
    answer = prove(_read_all(make_world(spec), spec))
    assert isinstance(answer, Witness) is Oracle(spec).satisfiable()


@_quick
@given(_worlds)
def test_what_the_pins_alone_refuse_is_refused_by_brute_force(spec: RandomWorld) -> None:
    try:
        look_at_pins(_read_all(make_world(spec), spec))
    except NoSolutionError as error:
        assert not _could_be(spec)
        for described in (error.conflict.facts, *error.conflict.also):
            keys = {key_of(entry.fact) for entry in described}
            assert not Oracle(spec, keys.__contains__).satisfiable()


@_quick
@given(_worlds)
def test_a_conflict_is_unsatisfiable_and_minimal(spec: RandomWorld) -> None:
    world = make_world(spec)
    answer = _decide(world)
    if not isinstance(answer, Conflict):
        return
    for described in (answer.facts, *answer.also):
        core = frozenset(entry.fact for entry in described)
        keys = {key_of(fact) for fact in core}
        assert not Oracle(spec, keys.__contains__).satisfiable()
        assert isinstance(search_facts(world, core.__contains__), Refusal)
        for fact in core:
            assert isinstance(search_facts(world, (core - {fact}).__contains__), Witness)


@_quick
@given(_worlds)
def test_wheels_are_read_as_far_as_the_answer_needs(spec: RandomWorld) -> None:
    # Nothing is read ahead here. A wheel that pins a pre-release or asks for a URL is not known to
    # do so before it was read, so such worlds are left to the test above.
    texts = [text for wheel in spec.wheels for text in wheel.requires or ()]
    if any(" @ " in text or "dev" in text or "rc" in text for text in texts):
        spec = replace(spec, wheels=tuple(_without_openings(wheel) for wheel in spec.wheels))
    answer = _decide(make_world(spec))
    if isinstance(answer, Solution):
        assert Oracle(spec).holds(_chosen(spec, answer))
    elif answer is None:
        assert not Oracle(spec).satisfiable()
    else:
        assert not _could_be(spec)


def _without_openings(wheel: Wheel) -> Wheel:
    if wheel.requires is None:
        return wheel
    kept = tuple(
        text for text in wheel.requires if not any(word in text for word in (" @ ", "dev", "rc"))
    )
    return replace(wheel, requires=kept, nightly=False)


@_quick
@given(_worlds, st.randoms(use_true_random=False))
def test_the_order_of_files_and_requirements_changes_nothing(
    spec: RandomWorld, order: Random
) -> None:
    first, second = _decide(make_world(spec)), _decide(make_world(spec, shuffle=order))
    assert type(first) is type(second)
    if isinstance(first, Solution) and isinstance(second, Solution):
        assert first == second
    elif isinstance(first, Conflict) and isinstance(second, Conflict):
        assert first.facts == second.facts


@_quick
@given(_worlds)
def test_a_file_that_nobody_asks_for_changes_nothing(spec: RandomWorld) -> None:
    unused = (
        Wheel(project="z", version="1.0", requires=("a==9.0",)),
        Wheel(project="a", version="9.0", tags="cp39-cp39-win_amd64"),
    )
    first = _decide(make_world(spec))
    second = _decide(make_world(replace(spec, wheels=(*spec.wheels, *unused))))
    assert type(first) is type(second)
    if isinstance(first, Solution):
        assert first == second
