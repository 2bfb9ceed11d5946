"""Facts that cannot hold together: made minimal, checked, and carried by `NoSolutionError`.

A conflict is minimal: take any fact away and what remains can be satisfied. That is found by
deletion (each fact is set aside in turn, and stays aside if the rest still refuses) with the
exhaustive search, which the main search shares no code with.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from packaging.requirements import Requirement
from packaging.version import Version

from cudalock.errors import CudalockError, ResolutionError, ResolutionStoppedError
from cudalock.host import Target
from cudalock.resolver.candidates import Candidate, ProjectOptions
from cudalock.resolver.exhaustive import Refusal, prove, search_facts
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.nightly_words import requirement_note
from cudalock.resolver.world import World

__all__ = [
    "Conflict",
    "ConflictFact",
    "NoSolutionError",
    "ProjectSummary",
    "UnprovedError",
    "make_conflict",
    "summarise",
]

_CHECK_STEPS = 50_000
_ALSO_LIMIT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictFact:
    """A fact with what it covers: ``versions`` (oldest first) and how many ``wheels``.

    ``besides`` are versions that may be taken as well and of which it does not speak.
    ``sources`` are the places that say so, in the order of the versions they speak of. ``note`` is
    what a person should know of a requirement beside it: why it leaves a nightly out.
    """

    fact: Fact
    sources: tuple[str, ...]
    versions: tuple[Version, ...] = ()
    besides: tuple[Version, ...] = ()
    wheels: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSummary:
    """How many wheels of a project were seen, and how many each reason rules out."""

    project: str
    wheels: int
    rejections: tuple[tuple[str, int], ...]
    indices: tuple[str, ...]
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A minimal set of facts, up to three further ones, and the projects they speak of."""

    facts: tuple[ConflictFact, ...]
    also: tuple[tuple[ConflictFact, ...], ...] = ()
    projects: tuple[ProjectSummary, ...] = ()

    @property
    def only_policy(self) -> bool:
        """Whether the machine would run it: only the chosen policy or release refuses."""
        return any(f.fact.kind is FactKind.POLICY for f in self.facts)


class NoSolutionError(ResolutionError):
    """Proved: no set of wheels satisfies what was asked for on ``target``.

    Carries the `Conflict`.
    """

    code: ClassVar[str] = "no-solution"
    exit_code: ClassVar[int] = 1

    def __init__(self, conflict: Conflict, target: Target) -> None:
        super().__init__("no set of wheels satisfies these requirements on this target")
        self.conflict = conflict
        self.target = target


class UnprovedError(ResolutionStoppedError):
    """Refused by what was seen, which is not all there is: could not tell.

    ``seen`` are the facts that refuse it, without those that prove nothing.
    """

    def __init__(self, message: str, *, where: str | None, seen: tuple[ConflictFact, ...]) -> None:
        super().__init__(message, where=where)
        self.seen = seen


def make_conflict(
    world: World, refusal: Refusal, within: Callable[[Fact], bool] = lambda _: True
) -> Conflict:
    """Make a refusal minimal and find further independent ones among the facts ``within``.

    Raises `UnprovedError` when the minimal set rests on something that could not be seen
    (a page that is not whole, a wheel without metadata): then a solution may exist.
    """
    core = _minimal(world, _preferred(world, refusal.facts), frozenset())
    unseen = sorted(fact for fact in core if fact.kind.proves_nothing)
    if unseen:
        raise _could_not_tell(unseen, _described(world, core.difference(unseen)))
    also: list[frozenset[Fact]] = []
    aside = _own(core)
    while len(also) < _ALSO_LIMIT and aside:
        # What symbols tell of an extension takes the place of what was assumed of it.
        told = {fact.subject for fact in aside if fact.kind is FactKind.SYMBOL}
        further = _further(world, aside, told, within)
        if further is None:
            break
        also.append(further)
        own = _own(further)
        if not own:
            break
        aside |= own
    subjects = {f.subject for f in core if not f.subject.startswith("<") and f.subject}
    subjects |= {f.object for f in core if f.kind is FactKind.REQUIREMENT or _unmet(world, f)}
    return Conflict(
        facts=_described(world, core),
        also=tuple(_described(world, facts) for facts in also),
        projects=tuple(summarise(world, project) for project in sorted(subjects)),
    )


def _unmet(world: World, fact: Fact) -> bool:
    """Whether something requires what no listed version of the project meets."""
    if fact.kind not in (FactKind.DEPENDENCY, FactKind.REQUIREMENT, FactKind.OVERRIDE):
        return False
    requirement = Requirement(fact.detail)
    options = world.options(fact.object, nightly=world.opens_nightly(fact.object))
    return requirement.url is None and not any(
        requirement.specifier.contains(file.wheel.version, prereleases=True)
        for file in options.listing.files
    )


def _preferred(world: World, facts: frozenset[Fact]) -> frozenset[Fact]:
    """Look for a refusal without what proves nothing, and then without the policy too.

    There may be one even where the first refusal needs such a fact: a search takes the first
    reason it meets. Before "could not tell" is said, wheels are read for it.
    """
    nothing = {FactKind.INCOMPLETE, FactKind.UNKNOWN}
    try:
        if any(fact.kind in nothing for fact in facts):
            answer = prove(world, _without(nothing))
            if not isinstance(answer, Refusal):
                return facts
            facts = answer.facts
        if any(fact.kind is FactKind.PAIRING for fact in facts):
            # What a wheel's bytes tell outranks what is assumed of it.
            answer = search_facts(world, _without({*nothing, FactKind.PAIRING}))
            if isinstance(answer, Refusal):
                facts = answer.facts
        if any(fact.kind is FactKind.POLICY for fact in facts):
            answer = search_facts(world, _without({*nothing, FactKind.POLICY}))
            if isinstance(answer, Refusal):
                facts = answer.facts
    except CudalockError:
        # Nothing more can be read, or the search took too long: the first refusal stands.
        return facts
    return facts


def _without(kinds: set[FactKind]) -> Callable[[Fact], bool]:
    return lambda fact: fact.kind not in kinds


def _own(core: frozenset[Fact]) -> frozenset[Fact]:
    """Return what makes a conflict different from another about the same wishes and machine.

    Wheels ruled out for another machine stay so, unless that is all there is.
    """
    shared = (FactKind.REQUIREMENT, FactKind.TARGET, FactKind.POLICY)
    left = frozenset(fact for fact in core if fact.kind not in shared)
    return frozenset(fact for fact in left if not _of_another_machine(fact)) or left


def _of_another_machine(fact: Fact) -> bool:
    return fact.kind is FactKind.REJECTION and fact.object in ("python", "platform")


def _further(
    world: World, aside: frozenset[Fact], told: set[str], within: Callable[[Fact], bool]
) -> frozenset[Fact] | None:
    """Find another refusal, if there is one: rather one that rests on bytes than on a pairing."""

    def left(fact: Fact) -> bool:
        replaced = fact.kind is FactKind.PAIRING and fact.subject in told
        return fact not in aside and not replaced and within(fact)

    def by_bytes(fact: Fact) -> bool:
        return left(fact) and fact.kind is not FactKind.PAIRING

    try:
        answer = search_facts(world, by_bytes, step_limit=_CHECK_STEPS)
        if not isinstance(answer, Refusal):
            answer = search_facts(world, left, step_limit=_CHECK_STEPS)
        if not isinstance(answer, Refusal):
            return None
        core = _minimal(world, answer.facts, aside)
    except ResolutionStoppedError:
        return None
    return None if any(fact.kind.proves_nothing for fact in core) else core


def _minimal(world: World, facts: frozenset[Fact], aside: frozenset[Fact]) -> frozenset[Fact]:
    """Set facts aside one by one, the least telling first, as long as the rest refuses."""
    core, before = facts - aside, None
    # One pass is enough where fewer facts allow more. They do not always: a pin that is set aside
    # lets no pre-release in any more, so the passes go on until one changes nothing.
    while core != before:
        before = core
        for fact in sorted(core):
            if fact not in core:
                continue
            rest = core - {fact}
            answer = search_facts(world, rest.__contains__, step_limit=_CHECK_STEPS)
            if isinstance(answer, Refusal):
                core = answer.facts
    return core


def _could_not_tell(unseen: list[Fact], seen: tuple[ConflictFact, ...]) -> UnprovedError:
    # "Without metadata" is said of wheels; "a wheel variant of which …" stands for itself.
    lines = [
        f"{fact.subject}: {'' if fact.detail.startswith('a ') else 'wheels '}{fact.detail}"
        for fact in unseen
    ]
    sources = sorted({fact.source for fact in unseen if fact.source})
    return UnprovedError(
        "could not tell whether a set exists: " + "; ".join(lines),
        where=", ".join(sources[:3]) or None,
        seen=seen,
    )


def _described(world: World, core: Iterable[Fact]) -> tuple[ConflictFact, ...]:
    """Return the facts in the order in which they are told: machine, wishes, then the chain."""
    facts = sorted(core, key=_telling_order)
    wishes = [
        edge
        for edge in world.roots
        if any(f.kind is FactKind.REQUIREMENT and f == edge.fact for f in facts)
    ]
    return tuple(_covering(world, fact, {edge.node for edge in wishes}) for fact in facts)


_TOLD = (
    FactKind.TARGET,
    FactKind.POLICY,
    FactKind.REQUIREMENT,
    FactKind.OVERRIDE,
    FactKind.CONSTRAINT,
    FactKind.SYMBOL,
    FactKind.PATH,
    FactKind.PAIRING,
    FactKind.FAMILY,
    FactKind.RELEASE,
    FactKind.DEMAND,
    FactKind.DEPENDENCY,
    FactKind.REJECTION,
    FactKind.UNKNOWN,
    FactKind.INCOMPLETE,
)


def _telling_order(fact: Fact) -> tuple[int, Fact]:
    return _TOLD.index(fact.kind), fact


def _covering(world: World, fact: Fact, wishes: set[str]) -> ConflictFact:
    """Find what a fact speaks of, within what was asked for: versions, wheels and places."""
    note = requirement_note(world, fact) or _place_note(world, fact)
    if not fact.subject or fact.subject.startswith("<"):
        return ConflictFact(fact=fact, sources=(fact.source,), note=note)
    options = world.options(fact.subject, nightly=world.opens_nightly(fact.subject))
    every = [ghost for ghost in options.ghosts if ghost.fact == fact]
    places: list[tuple[Version, str]] = []
    asked = [edge for edge in world.roots if edge.node == fact.subject and edge.node in wishes]
    ghosts = [
        ghost
        for ghost in every
        if ghost.version is None or all(edge.admits(ghost.version) for edge in asked)
    ] or every
    admitted: set[Version] = set()
    for candidate in options.candidates:
        if all(edge.admits(candidate.version) for edge in asked):
            if not candidate.violations:
                admitted.add(candidate.version)
            said = (other for other in _said(world, candidate) if other == fact)
            places.extend((candidate.version, other.source) for other in said)
    versions = {version for version, _ in places}
    versions |= {ghost.version for ghost in ghosts if ghost.version is not None}
    places.sort()
    early = any(version.is_prerelease for version in versions)
    return ConflictFact(
        fact=fact,
        sources=tuple(dict.fromkeys(source for _, source in places)) or (fact.source,),
        versions=tuple(sorted(versions)),
        besides=tuple(sorted(v for v in admitted - versions if early or not v.is_prerelease)),
        wheels=len(places) + sum(ghost.count for ghost in ghosts),
        note=note,
    )


def _place_note(world: World, fact: Fact) -> str:
    """Say on which other index something was seen that would meet a requirement, if none here does."""
    if not _unmet(world, fact):
        return ""
    listing = world.options(fact.object, nightly=world.opens_nightly(fact.object)).listing
    specifier = Requirement(fact.detail).specifier
    seen = [f for f in listing.elsewhere if specifier.contains(f.wheel.version, prereleases=True)]
    places = sorted({f"`{f.index}`{f' {f.folder}' if f.folder else ''}" for f in seen})
    if not places:
        return ""
    return f"only {' and '.join(places)} has it, from where {fact.object} is not taken"


def _said(world: World, candidate: Candidate) -> set[Fact]:
    """Return the facts that speak of one candidate, as far as it was read, or by its version alone."""
    details = world.known(candidate)
    late = set() if candidate.late is None else {candidate.late}
    if details is None:
        known = world.knowledge_demands(candidate.project, candidate.version)
        said = {violation.fact for violation in candidate.violations} | late
        return said | {demand.fact for demand in known}
    said = {violation.fact for violation in details.violations} | late
    said.update(demand.fact for demand in details.demands)
    said.update(edge.fact for edge in world.edges(candidate))
    for extra in details.metadata.provides_extra if details.metadata is not None else ():
        said.update(edge.fact for edge in world.edges(candidate, extra))
    if details.rejection is not None:
        said.add(details.rejection)
    return said


def summarise(world: World, project: str) -> ProjectSummary:
    """Count a project's wheels and the reasons that rule them out, most frequent first."""
    options = world.options(project, nightly=world.opens_nightly(project))
    counts: dict[str, int] = {}
    seen = {ghost.version for ghost in options.ghosts if ghost.version is not None}
    for ghost in options.ghosts:
        if ghost.fact.kind is FactKind.INCOMPLETE:
            continue
        counts[ghost.fact.detail] = counts.get(ghost.fact.detail, 0) + ghost.count
    for candidate in options.candidates:
        reason = _reason(world, options, candidate.url)
        if reason is not None:
            counts[reason] = counts.get(reason, 0) + 1
    return ProjectSummary(
        project=project,
        wheels=len(options.listing.files) + len(options.listing.unfit),
        rejections=tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        indices=tuple(dict.fromkeys(a.url for a in options.listing.answers)),
        versions=tuple(sorted({*seen, *(f.wheel.version for f in options.listing.files)})),
    )


def _reason(world: World, options: ProjectOptions, url: str) -> str | None:
    candidate = next(c for c in options.candidates if c.url == url)
    details = world.known(candidate)
    violations = details.violations if details is not None else candidate.violations
    if violations:
        return violations[0].fact.detail.removeprefix("is ").removeprefix("built for ")
    if details is not None and details.rejection is not None:
        return details.rejection.detail
    return None if candidate.late is None else candidate.late.detail
