"""The second opinion: a small exhaustive search with unit propagation, over facts.

It shares the data of a `World` with the main search and none of its code. Every option it rules
out, it rules out by a set of facts; a dead end is the union of the sets that made it, and backing
up follows them (conflict-directed backjumping), so that a refusal comes with facts that cannot
hold together.

What was never read is taken to require nothing. A refusal under that reading holds all the more
for the real world; a solution under it is a solution once the wheels it uses were read, so
`prove` reads those and searches again. Only what a wheel lets in (a pre-release it pins, a URL it
asks for) is not known before it was met: for pre-releases `prove` looks for such a wheel.

The facts can be limited to a subset, and then whatever another fact would say is left out: that
is how a minimal conflict is found and checked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cudalock.errors import ResolutionStoppedError
from cudalock.resolver.admission import left_out, needs_nightly
from cudalock.resolver.candidates import Candidate, rejection_fact
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.judging import Active, Because, Judge, Option
from cudalock.resolver.request import Edge
from cudalock.resolver.world import World

__all__ = ["STEP_LIMIT", "Refusal", "Witness", "prove", "search_facts"]

STEP_LIMIT = 200_000
_READ_LIMIT = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """These facts cannot hold together (not yet minimal)."""

    facts: frozenset[Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Options that satisfy every enabled fact. ``unread`` are wheels whose metadata is unknown."""

    chosen: dict[str, Option]
    unread: tuple[Candidate, ...]


@dataclass(slots=True)
class _Frame:
    """One decision: its node, the options left to try, and why the tried ones failed."""

    node: str
    options: Iterator[Option]
    failed: Because
    added: list[str] = field(default_factory=list)
    extras: list[tuple[str, str]] = field(default_factory=list)


class _Search:
    def __init__(self, world: World, enabled: Callable[[Fact], bool], step_limit: int) -> None:
        self._world = world
        self._enabled = enabled
        self._judge = Judge(world, enabled)
        self._steps = step_limit
        self._edges: dict[str, list[Active]] = {}
        self._order: list[str] = []
        self._chosen: dict[str, tuple[Option, int]] = {}
        self._extras: set[tuple[str, str]] = set()
        self._domains: dict[str, tuple[int, Active, list[Option], Because]] = {}

    def run(self) -> Refusal | Witness:
        # Sorted, so that the order in which things were asked for decides no explanation.
        for edge in sorted(self._world.roots, key=lambda edge: edge.fact):
            self._add(Active(edge, Because(frozenset({edge.fact}))), [])
        frames: list[_Frame] = []
        dead: Because | None = None
        while True:
            self._steps -= 1
            if self._steps < 0:
                raise ResolutionStoppedError(
                    "the second search ran out of steps: this proves nothing"
                )
            if dead is None:
                node, domain, because = self._next()
                if node is not None:
                    # What is ruled out already is part of the reason should the rest fail as well.
                    frames.append(_Frame(node=node, options=iter(domain), failed=because))
                else:
                    dead = self._not_let_in()
                    if dead is None:
                        return self._witness()
                    continue
            elif not self._back(frames, dead):
                return Refusal(facts=dead.facts)
            dead = self._try(frames)

    def _try(self, frames: list[_Frame]) -> Because | None:
        """Take the next option of the last frame that does not clash with what is decided.

        When none is left, the frame is taken away and the reason for that returned.
        """
        frame, depth = frames[-1], len(frames)
        for option in frame.options:
            self._steps -= 1
            self._chosen[frame.node] = (option, depth)
            clash = self._activate(frame, option, depth)
            if clash is None:
                return None
            self._undo(frame)
            frame.failed = frame.failed.joined(clash.above(depth))
        frames.pop()
        return frame.failed

    def _back(self, frames: list[_Frame], because: Because) -> bool:
        """Return to the deepest decision that took part in the dead end, if one did."""
        while frames:
            frame, depth = frames[-1], len(frames)
            self._undo(frame)
            if depth in because.depths:
                frame.failed = frame.failed.joined(because.above(depth))
                return True
            frames.pop()
        return False

    def _undo(self, frame: _Frame) -> None:
        self._chosen.pop(frame.node, None)
        for node in reversed(frame.added):
            edges = self._edges[node]
            edges.pop()
            if not edges:
                del self._edges[node]
                self._order.remove(node)
        frame.added.clear()
        self._extras.difference_update(frame.extras)
        frame.extras.clear()

    def _add(self, active: Active, added: list[str]) -> bool:
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

    def _activate(self, frame: _Frame, option: Option, depth: int) -> Because | None:
        """Put the option's edges in force; return why not, if one contradicts a decision."""
        waiting = list(self._edges_of(frame, option, depth))
        while waiting:
            active = waiting.pop()
            if not self._add(active, frame.added):
                continue
            edge = active.edge
            decided = self._chosen.get(edge.node)
            if decided is None:
                continue
            chosen, at = decided
            because = active.because.joined(Because(depths=frozenset({at})))
            if not self._judge.satisfies(edge, chosen):
                return because
            # An extra asked for late adds its own edges to a project that is decided.
            waiting.extend(self._extra_edges(frame, chosen, edge.extras, because))
        return None

    def _extra_edges(
        self, frame: _Frame, option: Option, extras: frozenset[str], because: Because
    ) -> Iterator[Active]:
        """Yield the edges of extras that were not asked for before: extras may ask in circles."""
        if isinstance(option, Candidate) and self._world.known(option) is not None:
            for extra in sorted(extras):
                if (option.project, extra) in self._extras:
                    continue
                self._extras.add((option.project, extra))
                frame.extras.append((option.project, extra))
                for edge in self._world.edges(option, extra):
                    yield Active(edge, because.joined(Because(frozenset({edge.fact}))))

    def _edges_of(self, frame: _Frame, option: Option, depth: int) -> Iterator[Active]:
        world, here = self._world, frozenset({depth})
        asked = self._edges.get(frame.node, ())
        if isinstance(option, Candidate) and world.known(option) is not None:
            for edge in world.edges(option):
                yield Active(edge, Because(frozenset({edge.fact}), here))
            for active in asked:
                because = active.because.joined(Because(depths=here))
                yield from self._extra_edges(frame, option, active.edge.extras, because)
        elif not isinstance(option, str) and option.version is not None:
            # What was never read demands what any wheel of its version does.
            for demand in world.knowledge_demands(option.project, option.version):
                edge = Edge(node=demand.package, fact=demand.fact, values=demand.values)
                yield Active(edge, Because(frozenset({edge.fact}), here))

    def _not_let_in(self) -> Because | None:
        """Return why the decided set is no solution: a wheel is in it that nobody lets in.

        A pre-release is let in by a pin on it. Who may do so is known: the reason is that none
        of them does, and when one of them could by another choice or an extra, all decisions are.
        """
        world = self._world
        for node, (option, depth) in self._chosen.items():
            if not isinstance(option, Candidate):
                continue
            edges = [active.edge for active in self._edges[node]]
            options = world.options(node, nightly=needs_nightly(edges))
            word = left_out(world, options, option, edges)
            fact = rejection_fact(node, "pre-release")
            if word is None or (word != "direct" and not self._enabled(fact)):
                continue
            facts = frozenset() if word == "direct" else frozenset({fact})
            depths = {depth}
            for opener in world.openings.openers(option):
                chosen = self._chosen.get(opener.project)
                if chosen is None or chosen[0] == opener:
                    return Because(facts, frozenset(at for _, at in self._chosen.values()))
                depths.add(chosen[1])
            return Because(facts, frozenset(depths))
        return None

    def _next(self) -> tuple[str | None, list[Option], Because]:
        """Return the undecided node with the fewest options: none first, then one, then more."""
        best: tuple[int, str, list[Option], Because] | None = None
        for node in self._order:
            if node in self._chosen:
                continue
            options, because = self._domain(node)
            # By name between equals, so that the order of what was asked changes nothing.
            if best is None or (len(options), node) < best[:2]:
                best = (len(options), node, options, because)
        if best is None:
            return None, [], Because()
        return best[1], best[2], best[3]

    def _domain(self, node: str) -> tuple[list[Option], Because]:
        """Return the options left for a node, and why it is asked for and the others are out."""
        edges = self._edges[node]
        cached = self._domains.get(node)
        if cached is not None and cached[0] == len(edges) and cached[1] is edges[-1]:
            return cached[2], cached[3]
        options, because = self._judge.judged(node, edges)
        self._domains[node] = (len(edges), edges[-1], options, because)
        return options, because

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


def prove(
    world: World,
    enabled: Callable[[Fact], bool] = lambda _: True,
    *,
    step_limit: int = STEP_LIMIT,
) -> Refusal | Witness:
    """Decide the whole problem: refused by facts, or a witness that uses only read wheels.

    Reads the metadata of about 400 wheels that the main search did not need, not more.
    """
    read = 0
    while read < _READ_LIMIT:
        answer = witness = search_facts(world, enabled, step_limit=step_limit)
        if isinstance(answer, Refusal) and any(map(_is_early, answer.facts)):
            # Would it do if pre-releases were let in? Then a wheel of that set may pin one.
            witness = search_facts(
                world, lambda fact: enabled(fact) and not _is_early(fact), step_limit=step_limit
            )
        if isinstance(witness, Refusal) or not witness.unread:
            return answer
        read += len(witness.unread)
        for candidate in witness.unread:
            world.details(candidate)
    raise ResolutionStoppedError("the second search read too many wheels: this proves nothing")


def _is_early(fact: Fact) -> bool:
    return fact.kind is FactKind.REJECTION and fact.object == "pre-release"
