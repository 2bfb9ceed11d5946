"""Wheels of one set that install the same native file with different bytes: one overwrites the other.

Only native files are looked at: of those one is broken when another takes its place, whereas a licence
or an empty module of the same name harms nobody.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cudalock.resolver.engine import Solution
from cudalock.resolver.world import World
from cudalock.wheel.byte_evidence import installed_libraries

__all__ = ["PathClash", "path_clashes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathClash:
    """``projects`` install ``paths`` with different bytes.

    ``together``: one wheel of the set requires them all itself, so that this is its publisher's doing.
    """

    projects: tuple[str, ...]
    paths: tuple[str, ...]
    together: str | None


def path_clashes(world: World, solution: Solution) -> Iterator[PathClash]:
    """Yield the clashes among the wheels of a set, as far as they were read."""
    owners: dict[str, dict[str, tuple[int, int]]] = {}
    for project, candidate in solution.candidates.items():
        facts = world.facts.of(candidate.file)
        for path, told in () if facts is None else installed_libraries(facts.contents):
            owners.setdefault(path, {})[project] = told
    found: dict[tuple[str, ...], list[str]] = {}
    for path, told_by in sorted(owners.items()):
        if len(set(told_by.values())) > 1:
            found.setdefault(tuple(sorted(told_by)), []).append(path)
    for projects, paths in sorted(found.items()):
        yield PathClash(
            projects=projects,
            paths=tuple(paths),
            together=_required_together(world, solution, frozenset(projects)),
        )


def _required_together(world: World, solution: Solution, projects: frozenset[str]) -> str | None:
    for project, candidate in sorted(solution.candidates.items()):
        edges = list(world.edges(candidate))
        for extra in sorted(solution.extras.get(project, ())):
            edges.extend(world.edges(candidate, extra))
        if projects <= {edge.node for edge in edges}:
            return project
    return None
