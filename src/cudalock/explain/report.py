"""The words of an explanation.

Project names as the index spells them, literals in backticks, every clause with its source, and
nothing that needs colour to be understood.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from packaging.requirements import Requirement
from packaging.version import Version

from cudalock.host import Target, compat_package
from cudalock.resolver.conflict import Conflict, ConflictFact, ProjectSummary
from cudalock.resolver.facts import FactKind
from cudalock.resolver.held_back import format_versions, plural

__all__ = [
    "format_conflict",
    "format_fact",
    "format_seen",
    "format_source",
    "format_summary",
    "format_target",
]


def format_target(target: Target) -> str:
    """Say what the target is, in one sentence."""
    parts: list[str] = []
    if target.driver is not None:
        cuda = f" (CUDA {target.driver_cuda})" if target.driver_cuda is not None else ""
        package = "" if target.compat is None else f" with {compat_package(target.compat)}"
        parts.append(f"driver {target.driver}{cuda}{package}")
    elif target.driver_cuda is not None:
        parts.append(f"driver CUDA {target.driver_cuda}")
    if target.cpu:
        parts.append("no CUDA")
    elif target.cuda is not None:
        parts.append(f"wheels of CUDA {target.cuda} or older ({target.cuda_compat})")
    if target.capabilities:
        word = "capability" if len(target.capabilities) == 1 else "capabilities"
        parts.append(f"compute {word} {_joined([str(c) for c in target.capabilities])}")
    parts.append(f"Python {target.python}")
    parts.append(target.platform)
    return f"The target is {', '.join(parts)}."


def _joined(texts: Sequence[str]) -> str:
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def format_fact(described: ConflictFact) -> str:
    """Say one fact, without its source: a clause that stands after "because"."""
    fact = described.fact
    subject = _subject(fact.subject, described.versions)
    several = len(described.versions) > 1
    note = f"; {described.note}" if described.note else ""
    match fact.kind:
        case FactKind.REQUIREMENT:
            return f"you require `{fact.detail}`{note}"
        case FactKind.CONSTRAINT:
            return f"you constrain `{fact.detail}`{note}"
        case FactKind.OVERRIDE:
            return f"your override says `{fact.detail}`{note}"
        case FactKind.TARGET | FactKind.POLICY:
            return fact.detail
        case FactKind.DEPENDENCY:
            return f"{subject} {'require' if several else 'requires'} `{fact.detail}`{note}"
        case (
            FactKind.DEMAND
            | FactKind.PAIRING
            | FactKind.RELEASE
            | FactKind.FAMILY
            | FactKind.SYMBOL
            | FactKind.PATH
        ):
            return f"{subject} {plural(fact.detail) if several else fact.detail}"
        case FactKind.REJECTION | FactKind.UNKNOWN | FactKind.INCOMPLETE:
            return _rejected(described)
        case _:
            assert_never(fact.kind)


def _rejected(described: ConflictFact) -> str:
    if described.fact.object == "quarantined":
        # No wheel was seen: the index offers none.
        return f"{described.fact.subject} is {described.fact.detail}"
    count = described.wheels
    noun = "wheel" if count == 1 else "wheels"
    verb = "is" if count == 1 else "are"
    return f"{count} {noun} of {described.fact.subject} {verb} {described.fact.detail}"


def _subject(project: str, versions: tuple[Version, ...]) -> str:
    """Name a project with the versions a fact covers; many are named by their first and last."""
    return f"{project} {format_versions(versions)}" if versions else project


def format_summary(summary: ProjectSummary) -> str:
    """Count a project's wheels and why they are out: ``torch: 141 wheels: 98 for another Python``."""
    if not summary.wheels:
        return f"{summary.project}: no wheel on {_joined(summary.indices) or 'any index'}"
    noun = "wheel" if summary.wheels == 1 else "wheels"
    counts = ", ".join(f"{count} {reason}" for reason, count in summary.rejections)
    span = f"{summary.versions[0]} to {summary.versions[-1]}"
    listed = summary.versions[0] if len(summary.versions) == 1 else span
    return f"{summary.project}: {summary.wheels} {noun}, {listed}" + (
        f": {counts}" if counts else ""
    )


def format_conflict(conflict: Conflict, target: Target) -> str:
    """Tell a conflict: the machine, then the chain, then what there is of the projects in it."""
    told = [format_target(target), "", _chain(conflict.facts)]
    for facts in conflict.also:
        told += ["", _chain(facts, first="Apart from that, because")]
    unmet = _unmet(conflict)
    summaries = [
        format_summary(summary)
        for summary in conflict.projects
        if _counts(summary) or summary.project in unmet
    ]
    if summaries:
        told += ["", *summaries]
    return "\n".join(told)


def format_seen(facts: Iterable[ConflictFact]) -> str:
    """Tell the facts by which all that was seen is refused, one a line."""
    lines = [f"  {_sourced(described)}" for described in facts]
    return "\n".join(["What was seen does not do:", *lines]) if lines else ""


def _counts(summary: ProjectSummary) -> bool:
    return not summary.wheels or bool(summary.rejections)


def _unmet(conflict: Conflict) -> set[str]:
    """Return the projects of which something is required that no listed version meets.

    What there is instead tells a missing release, or a build that was never published, from a
    clash.
    """
    listed = {summary.project: summary.versions for summary in conflict.projects}
    found = set()
    for described in (*conflict.facts, *(f for facts in conflict.also for f in facts)):
        if described.fact.kind in (FactKind.REQUIREMENT, FactKind.DEPENDENCY, FactKind.OVERRIDE):
            wanted = Requirement(described.fact.detail).specifier
            project = described.fact.object
            if not any(wanted.contains(v, prereleases=True) for v in listed.get(project, ())):
                found.add(project)
    return found


def _chain(facts: Iterable[ConflictFact], *, first: str = "Because") -> str:
    """Tell facts as one sentence, a clause a line; what the user asked for comes last."""
    facts = list(facts)
    own = (FactKind.REQUIREMENT, FactKind.OVERRIDE, FactKind.CONSTRAINT)
    machine = (FactKind.TARGET, FactKind.POLICY)
    chain = [f for f in facts if f.fact.kind not in (*own, *machine)]
    ordered = [
        *chain,
        *(f for f in facts if f.fact.kind in machine),
        *(f for f in facts if f.fact.kind in own),
    ]
    if not chain and len(ordered) == 1:
        return _alone(ordered[0])
    clauses = [_sourced(described) for described in ordered]
    lines = [f"{first} {clauses[0]}", *(f"and {clause}" for clause in clauses[1:])]
    return "\n".join(lines) + ",\nno set of wheels does all of this."


def format_source(described: ConflictFact) -> str:
    """Say where a fact is written: the first place, and the last when there are several."""
    places = [source for source in described.sources if source]
    if len(places) > 2:
        return f"{places[0]} … {places[-1]}"
    return _joined(places)


def _sourced(described: ConflictFact) -> str:
    source = format_source(described)
    if not source:
        return format_fact(described)
    # What is to be said beside a requirement comes after the place where that stands.
    fact = format_fact(replace(described, note=""))
    return f"{fact} ({source})" + (f"; {described.note}" if described.note else "")


def _alone(described: ConflictFact) -> str:
    """Tell of a requirement that nothing listed satisfies."""
    alone = _sourced(replace(described, note=""))
    note = f" ({described.note})" if described.note else ""
    return f"{_capital(alone)}, and no index lists such a wheel{note}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
