"""Which options a node of the second search has left, and by which facts the others are out.

The rules are those of the main search, written a second time as reasons: every option that is
ruled out is ruled out by a set of facts, and by the decisions that put those facts in force.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cudalock.errors import CudalockError
from cudalock.resolver.admission import only_early_versions
from cudalock.resolver.candidates import Candidate, Ghost, ProjectOptions, rejection_fact
from cudalock.resolver.demands import Violation, variant_violations
from cudalock.resolver.facts import Fact
from cudalock.resolver.request import Edge, exact_pin
from cudalock.resolver.selection import virtual_key
from cudalock.resolver.world import World
from cudalock.wheel.evidence import Observation, conclude, label_of

__all__ = ["Active", "Because", "Judge", "Option"]

Option = Candidate | Ghost | str


@dataclass(frozen=True, slots=True)
class Because:
    """Why an option is out: facts, and the decisions (by depth) that put them in force."""

    facts: frozenset[Fact] = frozenset()
    depths: frozenset[int] = frozenset()

    def joined(self, other: "Because") -> "Because":
        """Return both reasons as one."""
        return Because(self.facts | other.facts, self.depths | other.depths)

    def above(self, depth: int) -> "Because":
        """Leave out the decision of this depth and deeper ones."""
        return Because(self.facts, frozenset(d for d in self.depths if d < depth))


@dataclass(frozen=True, slots=True)
class Active:
    """An edge in force, and why it is: its own fact and the decisions it follows from."""

    edge: Edge
    because: Because


class Judge:
    """Judges the options of a node by the edges on it, with only the enabled facts in force."""

    def __init__(self, world: World, enabled: Callable[[Fact], bool]) -> None:
        """Take the problem and the facts that count."""
        self._world = world
        self._enabled = enabled

    def judged(self, node: str, edges: list[Active]) -> tuple[list[Option], Because]:
        """Return the options left, and why the node is asked for and the others are out."""
        options: list[Option] = []
        because = edges[0].because
        pin = self._pin(node, edges)
        if pin is not None:
            because = because.joined(pin.because)
        for option, out in self._options_of(node, edges, pin):
            if out is None:
                options.append(option)
            else:
                because = because.joined(out)
        return options, because

    def _pin(self, node: str, edges: list[Active]) -> Active | None:
        """Return the edge that says which version a wheel would have that nobody saw."""
        ghosts = () if node.startswith("<") else self._options(node).ghosts
        if all(ghost.version is not None for ghost in ghosts):
            return None
        pins = [(pin, a) for a in edges if (pin := exact_pin(a.edge.specifier)) is not None]
        # `==1.0+cu130` says more than `==1.0`, which admits it.
        return next((a for pin, a in pins if pin.local), pins[0][1] if pins else None)

    def _options(self, node: str) -> ProjectOptions:
        return self._world.options(node, nightly=self._world.opens_nightly(node))

    def _options_of(
        self, node: str, edges: list[Active], pin: Active | None
    ) -> Iterator[tuple[Option, Because | None]]:
        if node.startswith("<"):
            yield from self._values_of(edges)
            return
        options = self._options(node)
        for candidate in (*self._by_url(node, edges), *options.candidates):
            yield candidate, self._why_not(options, candidate, edges)
        for ghost in options.ghosts:
            seen = ghost
            unlisted: list[Violation] = []
            if ghost.version is None and pin is not None:
                seen = replace(ghost, version=exact_pin(pin.edge.specifier))
                unlisted = self._unlisted_violations(seen)
            yield seen, self._why_no_ghost(seen, edges, unlisted)

    def _by_url(self, node: str, edges: list[Active]) -> Iterator[Candidate]:
        """Yield the wheels behind URLs: those asked for here, and those somebody may ask for."""
        asked = {active.edge.url for active in edges}
        for url in self._world.openings.urls(node):
            try:
                yield self._world.direct(node, url)
            except CudalockError:
                if url in asked:
                    raise

    @staticmethod
    def _values_of(edges: list[Active]) -> Iterator[tuple[Option, Because | None]]:
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
        self, options: ProjectOptions, candidate: Candidate, edges: list[Active]
    ) -> Because | None:
        """Return why a candidate is out: by what the user wrote, by facts alone, or by edges."""
        return (
            self._by_edges(candidate, edges, rooted=True)
            or self._by_facts(options, candidate)
            or self._by_edges(candidate, edges, rooted=False)
        )

    def _by_edges(
        self, option: Candidate | Ghost, edges: list[Active], *, rooted: bool
    ) -> Because | None:
        for active in edges:
            if bool(active.because.depths) is not rooted and not self.satisfies(
                active.edge, option
            ):
                return active.because
        return None

    def _by_facts(self, options: ProjectOptions, candidate: Candidate) -> Because | None:
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
        if candidate.late is not None:
            alone.append(frozenset({candidate.late}))
        for facts in alone:
            if all(self._enabled(fact) for fact in facts):
                return Because(facts)
        return None

    def _unlisted_violations(self, ghost: Ghost) -> list[Violation]:
        """Return what the target contradicts in the label of a pin: of any wheel it may mean."""
        local = None if ghost.version is None else ghost.version.local
        label = label_of(local)
        if label.cuda_major is None:
            return []
        seen = Observation(
            kind="label",
            text=f"label +{local}",
            source="the pin",
            major=label.cuda_major,
            cuda=label.cuda,
        )
        variant = conclude((seen,), native=True)
        return variant_violations(ghost.project, variant, self._world.pins)

    def _why_no_ghost(
        self, ghost: Ghost, edges: list[Active], unlisted: list[Violation]
    ) -> Because | None:
        by_user = self._by_edges(ghost, edges, rooted=True)
        if by_user is not None:
            return by_user
        alone = [frozenset({violation.fact, violation.pin}) for violation in unlisted]
        if ghost.version is not None:
            ruled = self._world.constraint_violations(ghost.project, ghost.version)
            alone.extend(frozenset({fact}) for fact in ruled)
        for facts in alone:
            if all(self._enabled(fact) for fact in facts):
                return Because(facts)
        if self._enabled(ghost.fact):
            return Because(frozenset({ghost.fact}))
        return self._by_edges(ghost, edges, rooted=False)

    @staticmethod
    def satisfies(edge: Edge, option: Option) -> bool:
        """Whether an option is what an edge asks for, its admission aside."""
        if isinstance(option, str):
            return edge.values is None or option in edge.values
        if isinstance(option, Ghost):
            # A listed wheel that is out for a reason of its own is not what a URL asks for.
            return edge.url is None and (option.version is None or edge.admits(option.version))
        if edge.url is not None:
            return edge.url == option.url
        return edge.admits(option.version)
