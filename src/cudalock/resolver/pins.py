"""A first look at what the user pins exactly: a clash among those pins needs few pages to be seen.

Only the pinned projects count, and what their wheels say of each other: requirements, pairings,
families. Nothing else is asked for, neither a page nor METADATA of another project, and what the
target refuses is left to the searches. A refusal of so little is one of the whole problem too,
and goes through the same minimisation and check as any other.
"""

from cudalock.errors import CudalockError
from cudalock.resolver.conflict import Conflict, NoSolutionError, make_conflict
from cudalock.resolver.crawl import Crawl
from cudalock.resolver.exhaustive import Refusal, prove
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.request import Edge, exact_pin
from cudalock.resolver.world import World

__all__ = ["look_at_pins"]

_STEP_LIMIT = 20_000
_ASKS = (FactKind.REQUIREMENT, FactKind.OVERRIDE, FactKind.DEPENDENCY)
_LEFT_OUT = (FactKind.TARGET, FactKind.POLICY, FactKind.UNKNOWN, FactKind.INCOMPLETE)


def look_at_pins(world: World) -> None:
    """Raise `NoSolutionError` if wheels that the user pins exactly contradict each other.

    Returns when they do not, or when so little does not tell. Costs the page of each pinned
    project and the METADATA of the wheels its pin admits for the target.
    """
    edges = [edge for edge in world.roots if exact_pin(edge.specifier) and edge.url is None]
    pinned = frozenset(edge.node for edge in edges)
    if len(pinned) < 2:
        return

    def within(fact: Fact) -> bool:
        return fact.kind not in _ASKS or fact.object in pinned

    def counts(fact: Fact) -> bool:
        # What is not known, or may be opened by a wheel that nobody read, refuses nothing here.
        return within(fact) and fact.kind not in _LEFT_OUT and fact.object != "pre-release"

    conflict: Conflict | None = None
    crawl = None if world.executor is None else Crawl(world, world.executor, only=edges)
    if crawl is not None:
        crawl.start()
    try:
        if not all(_read_first(world, edge) for edge in edges):
            return
        answer = prove(world, counts, step_limit=_STEP_LIMIT)
        if isinstance(answer, Refusal):
            conflict = make_conflict(world, answer, within)
    except CudalockError:
        # What went wrong is met again by the searches, if it matters.
        return
    finally:
        if crawl is not None:
            crawl.stop()
    if conflict is not None:
        raise NoSolutionError(conflict, world.target)


def _read_first(world: World, edge: Edge) -> bool:
    """Read the first wheel that meets a pin; without one a wheel that something opens may do so."""
    options = world.options(edge.node, nightly=world.opens_nightly(edge.node))
    for candidate in options.candidates:
        if edge.admits(candidate.version) and not candidate.violations:
            world.details(candidate)
            return True
    return False
