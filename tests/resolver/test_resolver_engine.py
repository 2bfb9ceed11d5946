"""The main search: order, progress, budget, reading ahead, and what it must survive."""

import inspect
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

import pytest

from cudalock.errors import ResolutionStoppedError
from cudalock.resolver import engine
from cudalock.resolver.engine import Solution, search
from cudalock.resolver.world import World
from random_worlds import RandomWorld, Wheel, make_world

_T = TypeVar("_T")


def _versions(solution: Solution | None) -> dict[str, str] | None:
    if solution is None:
        return None
    return {project: str(c.version) for project, c in solution.candidates.items()}


def _search(spec: RandomWorld, *, last_resort: bool = False) -> dict[str, str] | None:
    return _versions(search(make_world(spec), last_resort=last_resort))


def test_newest_first_and_as_old_as_it_must() -> None:
    spec = RandomWorld(
        requirements=("a", "b"),
        wheels=(
            Wheel(project="a", version="1.0", requires=("c==1.0",)),
            Wheel(project="a", version="2.0", requires=("c==2.0",)),
            Wheel(project="b", version="1.0", requires=("c<2",)),
            Wheel(project="c", version="1.0"),
            Wheel(project="c", version="2.0"),
        ),
    )
    assert _search(spec) == {"a": "1.0", "b": "1.0", "c": "1.0"}


def test_what_is_left_over_from_an_earlier_round_is_not_in_the_set() -> None:
    # b 3.0 is tried, requires c and a cycle between c and d, and is then taken back.
    spec = RandomWorld(
        requirements=("b[y]",),
        wheels=(
            Wheel(project="a", version="3.0", requires=("a",)),
            Wheel(project="b", version="3.0", requires=("b[y]==2.0", "c"), extras=frozenset("y")),
            Wheel(project="b", version="2.0", extras=frozenset("y")),
            Wheel(project="c", version="1.0", requires=("d",)),
            Wheel(project="d", version="1.0", requires=("c",)),
        ),
    )
    assert _search(spec) == {"b": "2.0"}


def test_a_project_that_was_taken_back_and_requires_itself_has_an_end() -> None:
    spec = RandomWorld(
        requirements=("c[y]",),
        wheels=(
            Wheel(project="a", version="3.0", requires=("a",)),
            Wheel(project="c", version="2.0", extras=frozenset("y")),
            Wheel(project="c", version="3.0", requires=("c[y]==2.0", "a"), extras=frozenset("xy")),
        ),
    )
    assert _search(spec) == {"c": "2.0"}


@pytest.fixture
def little_stack() -> Iterator[None]:
    """Leave room for few calls, so that a short chain shows what a long one would do."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 120)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("little_stack")
def test_a_long_chain_of_requirements_is_no_recursion() -> None:
    chain = tuple(
        Wheel(project=f"p{n}", version="1.0", requires=(f"p{n + 1}",) if n < 300 else ())
        for n in range(301)
    )
    found = _search(RandomWorld(requirements=("p0",), wheels=chain))
    assert found is not None
    assert len(found) == 301


def test_picks_in_a_changing_order_are_a_sequence() -> None:
    order = ["b", "a"]
    picks = engine._Following(lambda: (engine._Pick(node=name) for name in order))
    assert (len(picks), picks[0].node) == (2, "b")
    order.sort()
    assert [pick.node for pick in picks] == ["a", "b"]
    order.clear()
    assert not picks


def test_where_nothing_fits_it_finds_nothing() -> None:
    spec = RandomWorld(requirements=("a>1",), wheels=(Wheel(project="a", version="1.0"),))
    assert _search(spec) is None


def test_a_last_resort_is_taken_only_when_it_is_asked_for_and_then_last() -> None:
    spec = RandomWorld(
        requirements=("a[x]",),
        wheels=(
            Wheel(project="a", version="1.0", extras=frozenset("x"), requires=("b==9",)),
            Wheel(project="a", version="1.1", extras=frozenset("x")),
            Wheel(project="a", version="2.0"),
        ),
    )
    assert _search(spec) == {"a": "1.1"}
    assert _search(spec, last_resort=True) == {"a": "1.1"}
    without = RandomWorld(requirements=("a[x]",), wheels=spec.wheels[2:])
    assert _search(without) is None
    assert _search(without, last_resort=True) == {"a": "2.0"}


def test_progress_is_told_wheel_by_wheel() -> None:
    spec = RandomWorld(
        requirements=("a",),
        wheels=(
            Wheel(project="a", version="1.0", requires=("b[x]",)),
            Wheel(project="b", version="1.0", extras=frozenset("x")),
        ),
        families=(("a", "c"),),
    )
    told: list[tuple[str, int]] = []
    search(make_world(spec), progress=lambda what, count: told.append((what, count)))
    assert told[0] == ("a 1.0", 1)
    assert [count for _, count in told] == list(range(1, len(told) + 1))
    assert {what for what, _ in told} == {"a 1.0", "b 1.0"}


def test_past_its_budget_it_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ROUND_LIMIT", 2)
    chain = tuple(Wheel(project=f"p{n}", version="1.0", requires=(f"p{n + 1}",)) for n in range(9))
    with pytest.raises(ResolutionStoppedError, match="after 2 rounds"):
        _search(RandomWorld(requirements=("p0",), wheels=chain))


class _Remembering(Executor):
    """Remembers what is handed to it, and does none of it."""

    def __init__(self) -> None:
        self.submitted: list[str] = []

    def submit(self, task: Callable[..., _T], /, *args: object, **kwargs: object) -> Future[_T]:
        del task, kwargs
        self.submitted.append(str(args[0]))
        return Future()


def test_while_it_backs_up_it_reads_the_next_wheels_ahead() -> None:
    spec = RandomWorld(
        requirements=("a", "b==1.0"),
        wheels=(
            *(Wheel(project="a", version=f"{n}.0", requires=(f"b=={n}.0",)) for n in range(1, 9)),
            Wheel(project="b", version="1.0"),
        ),
    )
    executor = _Remembering()
    world = make_world(spec, executor=executor)
    for candidate in world.options("a").candidates[-2:]:
        world.details(candidate)
    assert _versions(search(world)) == {"a": "1.0", "b": "1.0"}
    # What is known already is not read again.
    assert set(executor.submitted) == {f"a {n}.0" for n in range(3, 8)}


def test_reading_ahead_changes_neither_the_set_nor_what_is_known() -> None:
    spec = RandomWorld(
        requirements=("a", "b==1.0"),
        wheels=(
            *(Wheel(project="a", version=f"{n}.0", requires=(f"b=={n}.0",)) for n in range(1, 9)),
            Wheel(project="b", version="1.0"),
        ),
    )

    def known(world: World) -> list[str]:
        search(world)
        return [str(c) for c in world.options("a").candidates if world.known(c) is not None]

    alone = known(make_world(spec))
    with ThreadPoolExecutor(4) as pool:
        assert known(make_world(spec, executor=pool)) == alone
