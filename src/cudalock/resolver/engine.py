"""The search: resolvelib over a `World`.

Nodes are projects, extras of projects (``project[extra]``, which requires its project at exactly
the same wheel) and virtual packages. resolvelib's own list of causes is not used: it is a hint at
best (in more than a third of unsatisfiable random worlds its causes alone are satisfiable), so a
refusal only sends the problem to the second search.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolvelib import AbstractProvider, BaseReporter
from resolvelib.resolvers import Resolution, ResolutionImpossible, ResolutionTooDeep
from resolvelib.structs import RequirementInformation

from cudalock.cuda import parse_cuda_version
from cudalock.errors import ResolutionStoppedError
from cudalock.resolver.admission import needs_nightly, obstacle
from cudalock.resolver.candidates import Candidate
from cudalock.resolver.demands import TOOLKIT
from cudalock.resolver.details import Details
from cudalock.resolver.request import Edge, exact_pin
from cudalock.resolver.selection import release_distance, virtual_key
from cudalock.resolver.world import World

__all__ = ["ROUND_LIMIT", "Progress", "Solution", "search"]

ROUND_LIMIT = 200_000
_AHEAD = 4

Progress = Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A candidate for each project, and a value for each virtual package."""

    candidates: dict[str, Candidate]
    values: dict[str, str]
    extras: dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pick:
    """What stands for a node: a wheel, or a value of a virtual package."""

    node: str
    candidate: Candidate | None = None
    extra: str | None = None
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Need:
    """A requirement on a node: an edge, or exactly one wheel (an extra's hold on its project)."""

    node: str
    edge: Edge | None = None
    exactly: Candidate | None = None


_Info = RequirementInformation[_Need, _Pick]


class _Matches:
    """The picks for a node, found one by one and remembered between the passes over them."""

    def __init__(self, picks: Iterator[_Pick]) -> None:
        self._picks = picks
        self._found: list[_Pick] = []

    def __call__(self) -> Iterator[_Pick]:
        position = 0
        while True:
            while position < len(self._found):
                yield self._found[position]
                position += 1
            pick = next(self._picks, None)
            if pick is None:
                return
            self._found.append(pick)


class _Following(Sequence[_Pick]):
    """Picks in an order that follows the set's release, which may be decided after they are asked.

    resolvelib keeps what it took from a callable; a sequence it goes through anew each time.
    """

    def __init__(self, picks: Callable[[], Iterator[_Pick]]) -> None:
        self._picks = picks

    def __iter__(self) -> Iterator[_Pick]:
        return self._picks()

    def __bool__(self) -> bool:
        return next(self._picks(), None) is not None

    def __len__(self) -> int:
        return sum(1 for _ in self._picks())

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - an index or a slice
        return tuple(self._picks())[index]


class _Provider(AbstractProvider[_Need, _Pick, str]):
    def __init__(self, world: World, *, last_resort: bool) -> None:
        self._world = world
        self._last_resort = last_resort
        self._depth: dict[str, int] = {}
        self._resolutions: Mapping[str, _Pick] = {}

    def needs_of(self, edges: Iterable[Edge], depth: int) -> list[_Need]:
        """Turn edges into needs: one on the project, and one on each extra."""
        needs = []
        for edge in edges:
            nodes = [edge.node, *(f"{edge.node}[{extra}]" for extra in sorted(edge.extras))]
            for node in nodes:
                self._depth.setdefault(node, depth)
                needs.append(_Need(node=node, edge=edge))
        return needs

    def identify(self, requirement_or_candidate: _Need | _Pick) -> str:
        return requirement_or_candidate.node

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[str],
        resolutions: Mapping[str, _Pick],
        candidates: Mapping[str, Iterator[_Pick]],
        information: Mapping[str, Iterator[_Info]],
        backtrack_causes: Sequence[_Info],
    ) -> Iterable[str]:
        """Prefer what the last conflict was about, then what is pinned to one version."""
        del candidates
        self._resolutions = resolutions
        names = list(identifiers)
        causes = {cause.requirement.node for cause in backtrack_causes}
        causes |= {cause.parent.node for cause in backtrack_causes if cause.parent is not None}
        wanted = [name for name in names if name in causes and not name.startswith("<")]
        if wanted:
            return wanted
        pinned = [name for name in names if self._pinned(information[name])]
        return pinned or names

    @staticmethod
    def _pinned(information: Iterator[_Info]) -> bool:
        for info in information:
            need = info.requirement
            if need.exactly is not None:
                return True
            if need.edge is not None and (
                need.edge.url is not None or exact_pin(need.edge.specifier) is not None
            ):
                return True
        return False

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, _Pick],
        candidates: Mapping[str, Iterator[_Pick]],
        information: Mapping[str, Iterator[_Info]],
        backtrack_causes: Sequence[_Info],
    ) -> tuple[int, int, str]:
        """Decide near projects first; what follows the set's CUDA release waits for the rest."""
        del resolutions, candidates, information, backtrack_causes
        project = identifier.partition("[")[0]
        if identifier.startswith("<"):
            group = 1
        elif self._world.knowledge.toolkit_part(project) is not None:
            group = 2
        elif self._world.knowledge.cuda_number(project) is not None:
            group = 3
        else:
            group = 0
        return (group, self._depth.get(identifier, 0), identifier)

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[_Need]],
        incompatibilities: Mapping[str, Iterator[_Pick]],
    ) -> Callable[[], Iterator[_Pick]] | Sequence[_Pick]:
        needs = list(requirements[identifier])
        refused = set(incompatibilities[identifier])
        if identifier.startswith("<"):
            picks = self._values(identifier, needs)
        elif self._world.release_for(identifier.partition("[")[0]) is not None:
            return _Following(
                lambda: (pick for pick in self._wheels(identifier, needs) if pick not in refused)
            )
        else:
            picks = self._wheels(identifier, needs)
        return _Matches(pick for pick in picks if pick not in refused)

    def _values(self, node: str, needs: list[_Need]) -> Iterator[_Pick]:
        accepted = [need.edge.values for need in needs if need.edge is not None]
        common = frozenset.intersection(*(values for values in accepted if values is not None))
        for value in sorted(common, key=virtual_key, reverse=True):
            yield _Pick(node=node, value=value)

    def _wheels(self, node: str, needs: list[_Need]) -> Iterator[_Pick]:
        project, _, rest = node.partition("[")
        extra = rest.rstrip("]") or None
        edges = [need.edge for need in needs if need.edge is not None]
        exactly = [need.exactly for need in needs if need.exactly is not None]
        options = self._world.options(project, nightly=needs_nightly(edges))
        fitting = [
            candidate
            for candidate in self._candidates(project, options.candidates, edges)
            if all(candidate == other for other in exactly)
            and obstacle(self._world, options, candidate, edges) is None
            and not candidate.violations
        ]
        ordered = self._by_release(project, fitting)
        put_off = []
        for position, candidate in enumerate(ordered):
            if candidate.last_resort is not None and not self._last_resort:
                continue
            if position:
                self._read_ahead(ordered[position : position + _AHEAD])
            details = self._world.details(candidate)
            if not details.usable:
                continue
            if self._is_last_resort(candidate, details, extra):
                put_off.append(candidate)
            else:
                yield _Pick(node=node, candidate=candidate, extra=extra)
        if self._last_resort:
            for candidate in put_off:
                yield _Pick(node=node, candidate=candidate, extra=extra)

    def _candidates(
        self, project: str, listed: tuple[Candidate, ...], edges: list[Edge]
    ) -> tuple[Candidate, ...]:
        urls = sorted({edge.url for edge in edges if edge.url is not None})
        return (*(self._world.direct(project, url) for url in urls), *listed)

    def _by_release(self, project: str, candidates: list[Candidate]) -> list[Candidate]:
        """Put a project numbered by CUDA in the order of nearness to the set's release."""
        release = self._world.release_for(project)
        if release is None:
            return candidates
        decided = self._resolutions.get(TOOLKIT)
        toolkit = parse_cuda_version(decided.value) if decided is not None else release
        return sorted(candidates, key=lambda c: release_distance(c.version, toolkit))

    @staticmethod
    def _is_last_resort(candidate: Candidate, details: Details, extra: str | None) -> bool:
        """Whether a wheel is for when nothing else solves: by its page, its metadata, an extra."""
        if candidate.last_resort is not None or details.last_resort is not None:
            return True
        metadata = details.metadata
        return extra is not None and metadata is not None and extra not in metadata.provides_extra

    def _read_ahead(self, candidates: list[Candidate]) -> None:
        executor = self._world.executor
        if executor is not None:
            for candidate in candidates:
                if self._world.known(candidate) is None:
                    executor.submit(self._world.fetch, candidate)

    def is_satisfied_by(self, requirement: _Need, candidate: _Pick) -> bool:
        if candidate.candidate is None:
            values = requirement.edge.values if requirement.edge is not None else None
            return values is None or candidate.value in values
        if requirement.exactly is not None:
            return requirement.exactly == candidate.candidate
        edge = requirement.edge
        if edge is not None and edge.url is not None:
            return edge.url == candidate.candidate.url
        return edge is None or edge.admits(candidate.candidate.version)

    def get_dependencies(self, candidate: _Pick) -> Iterable[_Need]:
        wheel = candidate.candidate
        if wheel is None:
            return []
        depth = self._depth.get(candidate.node, 0) + 1
        needs = self.needs_of(self._world.edges(wheel, candidate.extra), depth)
        if candidate.extra is not None:
            needs.append(_Need(node=wheel.project, exactly=wheel))
        return needs


class _Reporter(BaseReporter[_Need, _Pick, str]):
    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._pinned = 0

    def pinning(self, candidate: _Pick) -> None:
        if self._progress is not None and candidate.candidate is not None:
            self._pinned += 1
            self._progress(str(candidate.candidate), self._pinned)


def search(
    world: World, *, last_resort: bool = False, progress: Progress | None = None
) -> Solution | None:
    """Return a solution, or None when resolvelib finds none (which alone proves nothing).

    Newest first and deterministic. ``last_resort`` lets in wheels that are used only when nothing
    else solves. Raises `ResolutionStoppedError` past 200,000 rounds, and whatever the source does.
    """
    provider = _Provider(world, last_resort=last_resort)
    # By name, so that the order in which things were asked for changes nothing, not even what is
    # read before a refusal.
    edges = sorted(world.roots, key=lambda edge: (edge.node, edge.fact))
    roots = provider.needs_of(edges, 0)
    # `Resolver` would build a graph of the result by recursion, which has no end where projects
    # that are in the set no more require each other: what the set holds is found below instead.
    resolution: Resolution[_Need, _Pick, str] = Resolution(provider, _Reporter(progress))
    try:
        state = resolution.resolve(roots, max_rounds=ROUND_LIMIT)
    except ResolutionImpossible:
        return None
    except ResolutionTooDeep as error:
        raise ResolutionStoppedError(
            f"no answer after {ROUND_LIMIT} rounds of the search: this proves nothing"
        ) from error
    return _solution(_reached(provider, roots, state.mapping))


def _reached(
    provider: _Provider, roots: Iterable[_Need], mapping: Mapping[str, _Pick]
) -> dict[str, _Pick]:
    """Return the picks that the requirements lead to; others are left from earlier rounds."""
    reached: dict[str, _Pick] = {}
    pending = [need.node for need in roots]
    while pending:
        node = pending.pop()
        if node not in reached:
            reached[node] = mapping[node]
            pending.extend(need.node for need in provider.get_dependencies(mapping[node]))
    return reached


def _solution(mapping: Mapping[str, _Pick]) -> Solution:
    candidates: dict[str, Candidate] = {}
    values: dict[str, str] = {}
    extras: dict[str, set[str]] = {}
    for node in sorted(mapping):
        pick = mapping[node]
        if pick.candidate is None:
            values[node] = pick.value
            continue
        candidates[pick.candidate.project] = pick.candidate
        if pick.extra is not None:
            extras.setdefault(pick.candidate.project, set()).add(pick.extra)
    return Solution(
        candidates=candidates,
        values=values,
        extras={project: frozenset(names) for project, names in extras.items()},
    )
