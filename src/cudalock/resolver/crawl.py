"""The speculative crawl: pages and metadata fetched ahead of the search, many at a time.

The crawl walks from the requirements to the first wheel of each project that fits them and on to
what that wheel requires. It decides nothing and its guesses may be wrong: everything it asks goes
through the world's and the source's memos, so the search finds the answers there and gets the
same ones when the crawl was never run. An error met here is met again by the search, if it
matters.
"""

from collections.abc import Iterable
from concurrent.futures import Executor, Future
from threading import Lock

from cudalock.errors import CudalockError
from cudalock.resolver.admission import obstacle
from cudalock.resolver.candidates import Candidate
from cudalock.resolver.request import Edge, exact_pin
from cudalock.resolver.world import World

__all__ = ["Crawl"]

_VISIT_LIMIT = 5000
_TRY_LIMIT = 6


class Crawl:
    """One crawl over a world; `start` returns at once, `stop` ends it."""

    def __init__(
        self, world: World, executor: Executor, *, only: Iterable[Edge] | None = None
    ) -> None:
        """Take the world; with ``only`` these edges are visited and no others."""
        self._world = world
        self._only = None if only is None else frozenset(only)
        self._executor = executor
        self._lock = Lock()
        self._seen: set[tuple[str, str, frozenset[str]]] = set()
        self._stopped = False

    def start(self) -> None:
        """Begin with the requirements; pinned ones first, since they say most."""
        roots = sorted(self._world.roots, key=lambda e: exact_pin(e.specifier) is None)
        for edge in roots:
            self._submit(edge)

    def stop(self) -> None:
        """Start nothing new; what is under way ends by itself."""
        self._stopped = True

    def _submit(self, edge: Edge) -> None:
        if self._stopped or edge.node.startswith("<") or edge.url is not None:
            return
        if self._only is not None and edge not in self._only:
            return
        key = (edge.node, str(edge.specifier), edge.extras)
        with self._lock:
            if key in self._seen or len(self._seen) >= _VISIT_LIMIT:
                return
            self._seen.add(key)
        try:
            future = self._executor.submit(self._visit, edge)
        except RuntimeError:
            # The executor was shut down between the check and the call: the search is over.
            return
        future.add_done_callback(_forget)

    def _visit(self, edge: Edge) -> None:
        if self._stopped:
            return
        try:
            candidate = self._first(edge)
            if candidate is None or self._stopped:
                return
            edges = list(self._world.edges(candidate))
            for extra in sorted(edge.extras):
                edges.extend(self._world.edges(candidate, extra))
        except CudalockError:
            return
        for found in edges:
            self._submit(found)

    def _first(self, edge: Edge) -> Candidate | None:
        """Return the first candidate that would stand for this edge alone."""
        world = self._world
        options = world.options(edge.node, nightly=edge.nightly)
        tries = 0
        for candidate in options.candidates:
            if candidate.violations or candidate.last_resort is not None:
                continue
            if obstacle(world, options, candidate, (edge,)) is not None:
                continue
            if world.fetch(candidate).usable:
                return candidate
            tries += 1
            if tries == _TRY_LIMIT:
                return None
        return None


def _forget(future: Future[None]) -> None:
    """Take an error off the future, so that nobody is told of a guess that failed."""
    if not future.cancelled():
        future.exception()
