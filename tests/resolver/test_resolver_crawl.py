"""The crawl asks ahead, decides nothing, and asks for nothing the search would not take."""

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

import pytest
from packaging.specifiers import SpecifierSet

from cudalock.errors import IndexAccessError
from cudalock.resolver import crawl as crawl_module
from cudalock.resolver.crawl import Crawl
from cudalock.resolver.resolution import solve
from cudalock.resolver.source import MemorySource
from cudalock.resolver.world import World
from cudalock.wheel import CoreMetadata, ListedFile, ProjectListing
from random_worlds import RandomWorld, Wheel, make_world

_T = TypeVar("_T")
_OLD_PYTHON = "cp311-cp311-manylinux_2_28_x86_64"


class _Counting(MemorySource):
    """Remembers what was asked of it; refuses the listing of ``unreachable``."""

    def __init__(self, wheels: tuple[Wheel, ...], unreachable: str = "") -> None:
        super().__init__([wheel.listed() for wheel in wheels])
        self.listed: list[str] = []
        self.read: list[str] = []
        self._unreachable = unreachable

    def listing(self, project: str, *, admitted: SpecifierSet, nightly: bool) -> ProjectListing:
        self.listed.append(f"{project} nightly" if nightly else project)
        if project == self._unreachable:
            raise IndexAccessError("expected a page, found none")
        return super().listing(project, admitted=admitted, nightly=nightly)

    def metadata(self, file: ListedFile) -> CoreMetadata | None:
        self.read.append(f"{file.wheel.project} {file.wheel.version}")
        return super().metadata(file)


class _AtOnce(Executor):
    """Runs each task when it is submitted, so that a test sees what was asked in order."""

    def submit(self, task: Callable[..., _T], /, *args: object, **kwargs: object) -> Future[_T]:
        future: Future[_T] = Future()
        try:
            future.set_result(task(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - what an executor does with any error
            future.set_exception(error)
        return future


def _crawled(
    spec: RandomWorld, *, unreachable: str = "", executor: Executor | None = None
) -> tuple[_Counting, World]:
    source = _Counting(spec.wheels, unreachable)
    world = make_world(spec, source=source)
    crawl = Crawl(world, executor or _AtOnce())
    crawl.start()
    return source, world


def test_it_walks_to_the_first_wheel_of_each_project_that_fits() -> None:
    spec = RandomWorld(
        requirements=("a>=1", "b[x]==1.0"),
        wheels=(
            Wheel(project="a", version="3.0", tags=_OLD_PYTHON),
            Wheel(project="a", version="2.0+cu126"),
            Wheel(project="a", version="2.0rc1"),
            Wheel(project="a", version="1.0", requires=("c", "d; extra == 'x'")),
            Wheel(
                project="b", version="1.0", requires=("e; extra == 'x'", "e; sys_platform == 'x'")
            ),
            Wheel(project="b", version="2.0"),
            Wheel(project="c", version="1.0"),
            Wheel(project="d", version="1.0"),
            Wheel(project="e", version="1.0", requires=("a>=1",)),
        ),
    )
    source, _ = _crawled(spec)
    # Pinned ones first, since they say most; what is asked for twice is visited once.
    assert source.listed == ["b", "e", "a", "c"]
    assert source.read == ["b 1.0", "e 1.0", "a 1.0", "c 1.0"]


def test_nightly_folders_are_asked_only_where_a_pin_opens_them() -> None:
    spec = RandomWorld(
        requirements=("a==2.0.dev1", "b>=2.0.dev1"),
        wheels=(
            Wheel(project="a", version="2.0.dev1", nightly=True, requires=("c==1.0", "d>=1")),
            Wheel(project="b", version="1.0"),
            Wheel(project="b", version="2.0.dev1", nightly=True),
            Wheel(project="c", version="1.0", nightly=True),
            Wheel(project="d", version="1.0"),
        ),
    )
    source, _ = _crawled(spec)
    assert source.listed == ["a nightly", "c nightly", "d", "b"]
    assert source.read == ["a 2.0.dev1", "c 1.0", "d 1.0"]


def test_what_it_asked_the_search_does_not_ask_again() -> None:
    spec = RandomWorld(
        requirements=("a",),
        wheels=(
            Wheel(project="a", version="1.0", requires=("b",)),
            Wheel(project="b", version="1.0"),
        ),
    )
    source, world = _crawled(spec)
    before = (list(source.listed), list(source.read))
    solve(world)
    assert (source.listed, source.read) == before


def test_what_it_asked_ahead_is_not_known_before_a_search_asks() -> None:
    spec = RandomWorld(requirements=("a",), wheels=(Wheel(project="a", version="1.0"),))
    _, world = _crawled(spec)
    candidate = world.options("a").candidates[0]
    assert world.known(candidate) is None
    world.details(candidate)
    assert world.known(candidate) is not None


def test_errors_are_left_for_the_search_to_meet() -> None:
    spec = RandomWorld(
        requirements=("a", "b"),
        wheels=(
            Wheel(project="a", version="1.0", requires=("c",)),
            Wheel(project="b", version="1.0", requires=("d",)),
            Wheel(project="d", version="1.0"),
        ),
    )
    source, world = _crawled(spec, unreachable="c")
    assert source.read == ["a 1.0", "b 1.0", "d 1.0"]
    with pytest.raises(IndexAccessError):
        solve(world)


def test_it_gives_up_on_a_project_after_a_few_wheels_that_do_not_fit() -> None:
    broken = tuple(Wheel(project="a", version=f"{n}.0", requires=None) for n in range(1, 20))
    source, _ = _crawled(RandomWorld(requirements=("a",), wheels=broken))
    assert source.read == [f"a {n}.0" for n in (19, 18, 17, 16, 15, 14)]


def test_wheels_by_url_and_projects_without_wheels_are_left_to_the_search() -> None:
    url = Wheel(project="a", version="1.0").url
    source, _ = _crawled(RandomWorld(requirements=(f"a @ {url}", "nothing"), wheels=()))
    assert (source.listed, source.read) == (["nothing"], [])


def test_it_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_module, "_VISIT_LIMIT", 3)
    chain = tuple(Wheel(project=f"p{n}", version="1.0", requires=(f"p{n + 1}",)) for n in range(9))
    source, _ = _crawled(RandomWorld(requirements=("p0",), wheels=chain))
    assert source.listed == ["p0", "p1", "p2"]


class _Stopping(_AtOnce):
    """Stops the crawl it runs before, or in the middle of, a task."""

    crawl: Crawl

    def submit(self, task: Callable[..., _T], /, *args: object, **kwargs: object) -> Future[_T]:
        self.crawl.stop()
        return super().submit(task, *args, **kwargs)


def test_once_stopped_it_asks_for_nothing() -> None:
    wheels = (Wheel(project="a", version="1.0", requires=("b",)),)
    source = _Counting(wheels)
    world = make_world(RandomWorld(requirements=("a", "b"), wheels=wheels), source=source)
    executor = _Stopping()
    executor.crawl = Crawl(world, executor)
    executor.crawl.start()
    assert source.listed == []


def test_stopped_while_a_page_is_read_it_goes_no_further() -> None:
    wheels = (Wheel(project="a", version="1.0", requires=("b",)),)

    class Source(_Counting):
        def metadata(self, file: ListedFile) -> CoreMetadata | None:
            crawl.stop()
            return super().metadata(file)

    source = Source(wheels)
    world = make_world(RandomWorld(requirements=("a",), wheels=wheels), source=source)
    crawl = Crawl(world, _AtOnce())
    crawl.start()
    assert source.listed == ["a"]


def test_an_executor_that_was_shut_down_ends_it() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    spec = RandomWorld(requirements=("a",), wheels=(Wheel(project="a", version="1.0"),))
    source, _ = _crawled(spec, executor=pool)
    assert source.listed == []


def test_a_task_that_was_cancelled_or_failed_tells_nobody() -> None:
    cancelled: Future[None] = Future()
    cancelled.cancel()
    failed: Future[None] = Future()
    failed.set_exception(ValueError("a fault of ours"))
    for future in (cancelled, failed):
        future.add_done_callback(crawl_module._forget)


def test_in_threads_it_changes_no_answer() -> None:
    spec = RandomWorld(
        requirements=("a", "b"),
        wheels=tuple(
            Wheel(project=project, version=f"{n}.0", requires=(f"{other}=={n}.0",))
            for project, other in [("a", "c"), ("b", "c"), ("c", "d"), ("d", "a")]
            for n in range(1, 9)
        ),
    )
    alone = solve(make_world(spec))
    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            source = _Counting(spec.wheels)
            world = make_world(spec, source=source, executor=pool)
            crawl = Crawl(world, pool)
            crawl.start()
            assert solve(world) == alone
            crawl.stop()
        assert sorted(set(source.read)) == sorted(source.read)
