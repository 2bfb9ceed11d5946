"""Whether an option may stand for a node under the edges in force: one rule for everybody.

The rules here are about one option and the edges on its own node; both searches, the crawl and
the check of a finished solution ask them. What to try next is not decided here.
"""

from collections.abc import Iterable

from cudalock.resolver.candidates import Candidate, ProjectOptions
from cudalock.resolver.dating import UNDATED
from cudalock.resolver.request import Edge
from cudalock.resolver.world import World

__all__ = ["admits_early_versions", "left_out", "needs_nightly", "obstacle", "only_early_versions"]


def needs_nightly(edges: Iterable[Edge]) -> bool:
    """Whether one of the edges opens the publisher's nightly folders."""
    return any(edge.nightly for edge in edges)


def only_early_versions(options: ProjectOptions) -> bool:
    """Whether a project has nothing but pre-releases, which then count as releases.

    Under ``--as-of`` what came later is not there; a release that nobody can date may be.
    """
    return all(
        candidate.version.is_prerelease
        for candidate in options.candidates
        if candidate.late is None or candidate.late.object == UNDATED
    )


def admits_early_versions(world: World, project: str, edges: Iterable[Edge]) -> bool:
    """Whether pre-releases of a project count: by a flag, or by an exact pin on one."""
    return world.allows_prereleases(project) or any(edge.pins_prerelease for edge in edges)


def _from_others(project: str, edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Return the edges that may let a wheel in: none of its own project's."""
    return tuple(edge for edge in edges if edge.fact.subject != project)


def obstacle(
    world: World, options: ProjectOptions, candidate: Candidate, edges: Iterable[Edge]
) -> Edge | str | None:
    """Return what keeps a candidate from standing for its node, or None.

    An `Edge` it does not satisfy, or a word: ``constraint``, ``date``, ``direct``,
    ``pre-release``, ``nightly``. Asks for no metadata.
    """
    edges = tuple(edges)
    for edge in edges:
        if edge.url is not None:
            if edge.url != candidate.url:
                return edge
        elif not edge.admits(candidate.version):
            return edge
    if world.constraint_violations(candidate.project, candidate.version):
        return "constraint"
    if candidate.late is not None:
        return "date"
    return left_out(world, options, candidate, edges)


def left_out(
    world: World, options: ProjectOptions, candidate: Candidate, edges: Iterable[Edge]
) -> str | None:
    """Return ``direct``, ``nightly`` or ``pre-release`` for a wheel that no edge lets in, or None."""
    edges = _from_others(candidate.project, edges)
    if candidate.direct:
        # A wheel by URL is there for those who ask for its URL, and for nobody else.
        return None if any(edge.url is not None for edge in edges) else "direct"
    early = admits_early_versions(world, candidate.project, edges)
    if candidate.file.nightly and not (early or needs_nightly(edges)):
        return "nightly"
    if candidate.version.is_prerelease and not early and not only_early_versions(options):
        return "pre-release"
    return None
