"""A finished set is checked by itself, and comes from the second search where the first is wrong."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudalock.cuda import CudaVersion, parse_driver_version
from cudalock.errors import ResolutionStoppedError
from cudalock.host import Target
from cudalock.resolver import resolution
from cudalock.resolver.candidates import Candidate
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.engine import Solution
from cudalock.resolver.resolution import needed_driver, solve
from cudalock.resolver.world import World
from cudalock.wheel.evidence import Variant
from random_worlds import Oracle, RandomWorld, Wheel, make_world, random_world

_SPEC = RandomWorld(
    requirements=("a[x]", "b"),
    wheels=(
        Wheel(
            project="a", version="1.0", requires=("c==1.0; extra == 'x'",), extras=frozenset("x")
        ),
        Wheel(project="b", version="1.0"),
        Wheel(project="c", version="1.0"),
        Wheel(project="c", version="2.0"),
        Wheel(project="a", version="3.0+cu126"),
    ),
    families=(("a", "b"),),
)


def _candidate(world: World, project: str, version: str) -> Candidate:
    return next(c for c in world.options(project).candidates if str(c.version) == version)


def _faults(world: World, solution: Solution) -> list[str]:
    return list(resolution.find_faults(world, solution))


def test_a_set_that_holds_together_has_no_fault() -> None:
    world = make_world(_SPEC)
    solution = solve(world)
    assert {p: str(c.version) for p, c in solution.candidates.items()} == {
        "a": "1.0",
        "b": "1.0",
        "c": "1.0",
    }
    assert (solution.values, solution.extras) == ({"<a-b>": "1.0"}, {"a": frozenset("x")})
    assert _faults(world, solution) == []


@pytest.mark.parametrize(
    ("project", "version", "fault"),
    [
        ("c", "2.0", "c 2.0 does not satisfy what is asked of c"),
        ("c", None, "c is missing"),
        ("a", "3.0+cu126", "a 3.0+cu126 does not fit the target"),
    ],
)
def test_a_wheel_that_was_put_in_or_taken_out_is_noticed(
    project: str, version: str | None, fault: str
) -> None:
    world = make_world(_SPEC)
    solution = solve(world)
    changed = dict(solution.candidates)
    if version is None:
        del changed[project]
    else:
        changed[project] = _candidate(world, project, version)
    assert fault in _faults(world, replace(solution, candidates=changed))


def test_a_value_that_was_changed_and_an_extra_that_was_dropped_are_noticed() -> None:
    world = make_world(_SPEC)
    solution = solve(world)
    assert _faults(world, replace(solution, values={"<a-b>": "2.0"})) == ["<a-b> 2.0"]
    assert _faults(world, replace(solution, extras={})) == ["a lacks an extra that was asked for"]


def _nothing(*_: object, **__: object) -> None:
    return None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False).map(random_world))
def test_where_the_main_search_finds_nothing_the_second_one_does(spec: RandomWorld) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolution, "search", _nothing)
        try:
            solution = solve(make_world(spec))
        except (NoSolutionError, ResolutionStoppedError):
            return
    by_name = {wheel.filename: wheel for wheel in spec.wheels}
    chosen = {p: by_name[c.file.filename] for p, c in solution.candidates.items()}
    assert Oracle(spec).holds(chosen)


def test_extras_are_followed_through_the_wheels_of_a_witness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = RandomWorld(
        requirements=("a",),
        wheels=(
            Wheel(project="a", version="1.0", requires=("b[x]",)),
            Wheel(project="b", version="1.0", requires=("c[y]; extra == 'x'",)),
            Wheel(project="c", version="1.0", requires=("b[x]; extra == 'y'",)),
        ),
    )
    monkeypatch.setattr(resolution, "search", _nothing)
    assert solve(make_world(spec)).extras == {"b": frozenset("x"), "c": frozenset("y")}


def test_a_set_of_the_main_search_that_does_not_hold_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = make_world(_SPEC)
    good = solve(world)
    bad = replace(good, values={"<a-b>": "9"})
    monkeypatch.setattr(resolution, "search", lambda *_, **__: bad)
    assert solve(world) == good


def test_where_neither_search_gives_a_set_that_holds_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = make_world(_SPEC)
    bad = replace(solve(world), values={"<a-b>": "9"})
    monkeypatch.setattr(resolution, "search", _nothing)
    monkeypatch.setattr(resolution, "_from_witness", lambda *_: bad)
    with pytest.raises(ResolutionStoppedError, match="does not hold together: <a-b> 9"):
        solve(world)


def _variant(major: int, minor: int | None = None) -> Variant:
    cuda = CudaVersion(major, minor) if minor is not None else None
    return Variant(state="known", runtime=major, cuda=cuda)


@pytest.mark.parametrize(
    ("compat", "variants", "driver"),
    [
        ("strict", [_variant(12, 8), _variant(12, 6)], "570.26"),
        ("minor", [_variant(12, 8), _variant(12, 6)], "525.60.13"),
        ("strict", [_variant(13)], "580.65.06"),
        ("strict", [_variant(12, 99)], "525.60.13"),
        ("strict", [Variant(state="unknown"), Variant(state="none")], None),
    ],
)
def test_the_driver_a_set_needs_is_that_of_its_policy(
    compat: str, variants: list[Variant], driver: str | None
) -> None:
    target = Target(
        python="3.12",
        platform="manylinux_2_28_x86_64",
        cuda_compat="minor" if compat == "minor" else "strict",
    )
    expected = parse_driver_version(driver) if driver is not None else None
    assert needed_driver(target, variants) == expected
