"""One answer: the search with what fetches ahead of it, and the reading of the wheels it chose.

This is where the resolver, which asks nobody, meets what reads for it.
"""

from collections.abc import Callable
from functools import partial

from cudalock.host import Target
from cudalock.index.wheel_reading import ReadingTask, WheelReading
from cudalock.resolver.crawl import Crawl
from cudalock.resolver.engine import Solution
from cudalock.resolver.learning import Wanted, learn
from cudalock.resolver.notes import describe
from cudalock.resolver.pins import look_at_pins
from cudalock.resolver.resolution import Resolution, solve
from cudalock.resolver.world import World

__all__ = ["Progress", "resolve_and_read", "resolve_world"]

Progress = Callable[[str, str, int], None]
"""Told what is going on: (phase, what, how many so far). Called from one thread."""


def resolve_world(world: World, *, progress: Progress | None = None) -> Resolution:
    """Solve a world by what is known of it, fetching ahead where it has an executor.

    Not before a look at the pins: where they clash, nothing else need be fetched.
    """
    look_at_pins(world)
    crawl = Crawl(world, world.executor) if world.executor is not None else None
    if crawl is not None:
        crawl.start()
    try:
        return describe(world, solve(world, progress=_searching(progress)))
    finally:
        if crawl is not None:
            crawl.stop()


def resolve_and_read(
    make_world: Callable[[frozenset[str]], World],
    reading: WheelReading,
    target: Target,
    *,
    progress: Progress | None = None,
) -> Resolution:
    """Solve, read what was chosen, and solve again until nothing new is learnt.

    ``make_world`` makes the problem, given the paths that two wheels own. Raises what `learn` does.
    """
    crawls: list[Crawl] = []

    def find(world: World) -> Solution:
        if not crawls:
            look_at_pins(world)
            if world.executor is not None:
                crawls.append(Crawl(world, world.executor))
                crawls[0].start()
        return solve(world, progress=_searching(progress))

    def read(wanted: list[Wanted]) -> bool:
        tasks = [
            ReadingTask(file=each.file, tier=each.tier, whole_below=each.whole_below)
            for each in wanted
        ]
        return reading.read(tasks, targets=target.capabilities, driver_cuda=target.driver_cuda)

    try:
        learnt = learn(make_world, read, find)
    finally:
        for crawl in crawls:
            crawl.stop()
    return describe(learnt.world, learnt.solution, learnt.searched)


def _searching(progress: Progress | None) -> Callable[[str, int], None] | None:
    return None if progress is None else partial(progress, "resolve")
