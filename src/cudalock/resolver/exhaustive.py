"""The second opinion: a small exhaustive search with unit propagation, over facts.

It shares the data of a `World` with the main search and none of its code. Every option it rules
out, it rules out by a set of facts; a dead end is the union of the sets that made it, and backing
up follows them (conflict-directed backjumping), so that a refusal comes with facts that cannot
hold together.

What was never read is taken to require nothing. A refusal under that reading holds all the more
for the real world; a solution under it is a solution once the wheels it uses were read, so
`prove` reads those and searches again.

The facts can be limited to a subset, and then whatever another fact would say is left out: that
is how a minimal conflict is found and checked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cudalock.errors import ResolutionStoppedError
from cudalock.resolver.admission import only_early_versions
from cudalock.resolver.candidates import Candidate, Ghost, ProjectOptions, rejection_fact
from cudalock.resolver.facts import Fact
from cudalock.resolver.request import Edge, exact_pin
from cudalock.resolver.selection import virtual_key
from cudalock.resolver.world import World

__all__ = ["STEP_LIMIT", "Refusal", "Witness", "prove", "search_facts"]

STEP_LIMIT = 200_000
_READ_LIMIT = 400

_Option = Candidate | Ghost | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """These facts cannot hold together (not yet minimal)."""

    facts: frozenset[Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Options that satisfy every enabled fact. ``unread`` are wheels whose metadata is unknown."""

    chosen: dict[str, _Option]
    unread: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class _Because:
    """Why an option is out: facts, and the decisions (by depth) that put them in force."""

    facts: frozenset[Fact] = frozenset()
    depths: frozenset[int] = frozenset()

    def joined(self, other: "_Because") -> "_Because":
        return _Because(self.facts | other.facts, self.depths | other.depths)


@dataclass(frozen=True, slots=True)
class _Active:
    """An edge in force, and why it is: its own fact and the decisions it follows from."""

    edge: Edge
    because: _Because


@dataclass(slots=True)
class _Frame:
    """One decision: its node, the options left to try, and why the tried ones failed."""

    node: str
    options: Iterator[_Option]
    failed: _Because
    added: list[str] = field(default_factory=list)


class _Search:
    def __init__(self, world: World, enabled: Callable[[Fact], bool], step_limit: int) -> None:
        self._world = world
        self._enabled = enabled
        self._steps = step_limit
        self._edges: dict[str, list[_Active]] = {}
        self._order: list[str] = []
        self._chosen: dict[str, tuple[_Option, int]] = {}
        self._domains: dict[str, tuple[int, _Active, list[_Option], _Because]] = {}

    def run(self) -> Refusal | Witness:
        for edge in self._world.roots:
            self._add(_Active(edge, _Because(frozenset({edge.fact}))), [])
        frames: list[_Frame] = []
        while True:
            self._steps -= 1
            if self._steps < 0:
                raise ResolutionStoppedError(
                    "the second search ran out of steps: this proves nothing"
                )
            node, domain, because = self._next()
            if node is None:
                return self._witness()
            if domain:
                # What is ruled out already is part of the reason should the rest fail as well.
                frames.append(_Frame(node=node, options=iter(domain), failed=because))
            else:
                refusal = self._back(frames, because)
                if refusal is not None:
                    return refusal
                continue
            refusal = self._try(frames)
            if refusal is not None:
                return refusal

    def _try(self, frames: list[_Frame]) -> Refusal | None:
        """Take the next option of the last frame that does not clash with what is decided."""
        while True:
            frame = frames[-1]
            depth = len(frames)
            option = next(frame.options, None)
            if option is None:
                frames.pop()
                return self._back(frames, frame.failed)
            self._steps -= 1
            self._chosen[frame.node] = (option, depth)
            clash = self._activate(frame, option, depth)
            if clash is None:
                return None
            self._undo(frame)
            frame.failed = frame.failed.joined(
                _Because(clash.facts, frozenset(d for d in clash.depths if d < depth))
            )

    def _back(self, frames: list[_Frame], because: _Because) -> Refusal | None:
        """Return to the deepest decision that took part in the dead end."""
        while frames:
            frame = frames[-1]
            depth = len(frames)
            if frame.node in self._chosen:
                self._undo(frame)
            if depth in because.depths:
                rest = frozenset(d for d in because.depths if d < depth)
                frame.failed = frame.failed.joined(_Because(because.facts, rest))
                return self._try(frames)
            frames.pop()
        return Refusal(facts=because.facts)

    def _undo(self, frame: _Frame) -> None:
        self._chosen.pop(frame.node, None)
        for node in reversed(frame.added):
            edges = self._edges[node]
            edges.pop()
            if not edges:
                del self._edges[node]
                self._order.remove(node)
        frame.added.clear()

    def _add(self, active: _Active, added: list[str]) -> bool:
        """Put an edge in force, if its fact is enabled; say whether it was."""
        node = active.edge.node
        if not self._enabled(active.edge.fact):
            return False
        if node not in self._edges:
            self._edges[node] = []
            self._order.append(node)
        self._edges[node].append(active)
        added.append(node)
        return True

    def _activate(self, frame: _Frame, option: _Option, depth: int) -> _Because | None:
        """Put the option's edges in force; return why not, if one contradicts a decision."""
        waiting = list(self._edges_of(frame.node, option, depth))
        while waiting:
            active = waiting.pop()
            if not self._add(active, frame.added):
                continue
            edge = active.edge
            decided = self._chosen.get(edge.node)
            if decided is None:
                continue
            chosen, at = decided
            because = active.because.joined(_Because(depths=frozenset({at})))
            if not self._satisfies(edge, chosen):
                return because
            # An extra asked for late adds its own edges to a project that is decided.
            waiting.extend(self._extra_edges(chosen, edge.extras, because))
        return None

    def _extra_edges(
        self, option: _Option, extras: frozenset[str], because: _Because
    ) -> Iterator[_Active]:
        if isinstance(option, Candidate) and self._world.known(option) is not None:
            for extra in sorted(extras):
                for edge in self._world.edges(option, extra):
                    yield _Active(edge, because.joined(_Because(frozenset({edge.fact}))))

    def _edges_of(self, node: str, option: _Option, depth: int) -> Iterator[_Active]:
        world, here = self._world, frozenset({depth})
        asked = self._edges.get(node, ())
        if isinstance(option, Candidate):
            if world.known(option) is None:
                return
            for edge in world.edges(option):
                yield _Active(edge, _Because(frozenset({edge.fact}), here))
            for active in asked:
                because = active.because.joined(_Because(depths=here))
                yield from self._extra_edges(option, active.edge.extras, because)
        elif isinstance(option, Ghost):
            pins = (exact_pin(active.edge.specifier) for active in asked)
            pinned = next((pin for pin in pins if pin is not None), None)
            for demand in world.ghost_demands(option, pinned):
                edge = Edge(node=demand.package, fact=demand.fact, values=demand.values)
                yield _Active(edge, _Because(frozenset({edge.fact}), here))

    def _next(self) -> tuple[str | None, list[_Option], _Because]:
        """Return the undecided node with the fewest options: none first, then one, then more."""
        best: tuple[int, str, list[_Option], _Because] | None = None
        for node in self._order:
            if node in self._chosen:
                continue
            options, because = self._domain(node)
            if best is None or len(options) < best[0]:
                best = (len(options), node, options, because)
                if not options:
                    break
        if best is None:
            return None, [], _Because()
        return best[1], best[2], best[3]

    def _domain(self, node: str) -> tuple[list[_Option], _Because]:
        """Return the options left for a node, and why it is asked for and the others are out."""
        edges = self._edges[node]
        cached = self._domains.get(node)
        if cached is not None and cached[0] == len(edges) and cached[1] is edges[-1]:
            return cached[2], cached[3]
        options: list[_Option] = []
        because = edges[0].because
        for option, out in self._judged(node, edges):
            if out is None:
                options.append(option)
            else:
                because = because.joined(out)
        self._domains[node] = (len(edges), edges[-1], options, because)
        return options, because

    def _judged(self, node: str, edges: list[_Active]) -> Iterator[tuple[_Option, _Because | None]]:
        if node.startswith("<"):
            yield from self._judged_values(edges)
            return
        world = self._world
        nightly = world.opens_nightly(node)
        options = world.options(node, nightly=nightly)
        urls = sorted({active.edge.url for active in edges if active.edge.url is not None})
        for candidate in (*(world.direct(node, url) for url in urls), *options.candidates):
            yield candidate, self._why_not(options, candidate, edges)
        for ghost in options.ghosts:
            yield ghost, self._why_no_ghost(ghost, edges)

    @staticmethod
    def _judged_values(edges: list[_Active]) -> Iterator[tuple[_Option, _Because | None]]:
        every = frozenset(v for active in edges for v in active.edge.values or ())
        for value in sorted(every, key=virtual_key, reverse=True):
            against = [active for active in edges if value not in (active.edge.values or ())]
            if not against:
                yield value, None
                continue
            # Somebody names the value and somebody else does not: both are the reason.
            named = next(active for active in edges if value in (active.edge.values or ()))
            yield value, named.because.joined(against[0].because)

    def _why_not(
        self, options: ProjectOptions, candidate: Candidate, edges: list[_Active]
    ) -> _Because | None:
        """Return why a candidate is out: by what the user wrote, by facts alone, or by edges."""
        return (
            self._by_edges(candidate, edges, rooted=True)
            or self._by_facts(options, candidate)
            or self._by_edges(candidate, edges, rooted=False)
        )

    def _by_edges(
        self, option: Candidate | Ghost, edges: list[_Active], *, rooted: bool
    ) -> _Because | None:
        for active in edges:
            if bool(active.because.depths) is not rooted and not self._satisfies(
                active.edge, option
            ):
                return active.because
        return None

    def _by_facts(self, options: ProjectOptions, candidate: Candidate) -> _Because | None:
        world, project = self._world, candidate.project
        details = world.known(candidate)
        violations = details.violations if details is not None else candidate.violations
        alone = [frozenset({v.fact, v.pin}) for v in violations]
        if details is not None and details.rejection is not None:
            alone.append(frozenset({details.rejection}))
        constraints = world.constraint_violations(project, candidate.version)
        alone.extend(frozenset({fact}) for fact in constraints)
        if not candidate.direct:
            early = candidate.version.is_prerelease and not only_early_versions(options)
            nightly = candidate.file.nightly and not world.opens_nightly(project)
            if nightly or (early and not world.opens_early(project)):
                alone.append(frozenset({rejection_fact(project, "pre-release")}))
        for facts in alone:
            if all(self._enabled(fact) for fact in facts):
                return _Because(facts)
        return None

    def _why_no_ghost(self, ghost: Ghost, edges: list[_Active]) -> _Because | None:
        by_user = self._by_edges(ghost, edges, rooted=True)
        if by_user is not None:
            return by_user
        if self._enabled(ghost.fact):
            return _Because(frozenset({ghost.fact}))
        return self._by_edges(ghost, edges, rooted=False)

    @staticmethod
    def _satisfies(edge: Edge, option: _Option) -> bool:
        if isinstance(option, str):
            return edge.values is None or option in edge.values
        if isinstance(option, Ghost):
            return option.version is None or edge.admits(option.version)
        if edge.url is not None:
            return edge.url == option.url
        return edge.admits(option.version)

    def _witness(self) -> Witness:
        chosen = {node: option for node, (option, _) in self._chosen.items()}
        unread = tuple(
            option
            for option in chosen.values()
            if isinstance(option, Candidate)
            and not option.violations
            and self._world.known(option) is None
        )
        return Witness(chosen=chosen, unread=unread)


def search_facts(
    world: World, enabled: Callable[[Fact], bool], *, step_limit: int = STEP_LIMIT
) -> Refusal | Witness:
    """Search with only the enabled facts in force.

    Raises `ResolutionStoppedError` past the step limit: that proves nothing.
    """
    return _Search(world, enabled, step_limit).run()


def prove(world: World, *, step_limit: int = STEP_LIMIT) -> Refusal | Witness:
    """Decide the whole problem: refused by facts, or a witness that uses only read wheels.

    Reads the metadata of at most 400 wheels that the main search did not need.
    """
    for _ in range(_READ_LIMIT):
        answer = search_facts(world, lambda _: True, step_limit=step_limit)
        if isinstance(answer, Refusal) or not answer.unread:
            return answer
        for candidate in answer.unread:
            world.details(candidate)
    raise ResolutionStoppedError("the second search read too many wheels: this proves nothing")
