"""The words of an explanation.

Project names as the index spells them, literals in backticks, every clause with its source, and
nothing that needs colour to be understood.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import assert_never

from packaging.requirements import Requirement

from cudalock.explain.rules import Rule, fact_rule, rule_of
from cudalock.host import Target, compat_package
from cudalock.resolver.conflict import Conflict, ConflictFact, ProjectSummary
from cudalock.resolver.facts import FactKind
from cudalock.resolver.held_back import format_versions, plural

__all__ = [
    "conflict_reason",
    "conflict_rule",
    "format_chain",
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
    elif not target.cpu:
        parts.append("a machine whose driver is not known")
    if target.cpu:
        parts.append("a machine without CUDA")
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
    subject = _subject(described)
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
    fact, count = described.fact, described.wheels
    if fact.object == "quarantined":
        # No wheel was seen: the index offers none.
        return f"{fact.subject} is {fact.detail}"
    if fact.object == "pre-release":
        let_in = f"`--prerelease {fact.subject}` lets them in"
        return f"pre-releases of {fact.subject} are left out ({let_in})"
    # The versions of more than two would say less than how many wheels there are.
    subject = _subject(described) if len(described.versions) <= 2 else fact.subject
    if count == 1:
        return f"1 wheel of {subject} is {fact.detail}"
    # "A wheel variant", of one, is "wheel variants" of several.
    detail = re.sub(r"^a (wheel variant|placeholder)", r"\1s", fact.detail)
    return f"{count} wheels of {subject} are {detail.replace(' it suits', ' they suit')}"


def _subject(described: ConflictFact) -> str:
    """Name a project with the versions a fact covers; a range holds no other that may be taken."""
    project, versions = described.fact.subject, described.versions
    return f"{project} {format_versions(versions, described.besides)}" if versions else project


def format_summary(summary: ProjectSummary) -> str:
    """Count a project's wheels and why they are out: ``torch: 141 wheels: 98 for another Python``."""
    if not summary.wheels:
        return f"{summary.project}: no wheel on {_joined(summary.indices) or 'any index'}"
    noun = "wheel" if summary.wheels == 1 else "wheels"
    # Reasons have commas of their own.
    counts = "; ".join(f"{count} {reason}" for reason, count in summary.rejections)
    # A file whose name is no wheel's has no version.
    ends = dict.fromkeys((*summary.versions[:1], *summary.versions[-1:]))
    listed = f", {' to '.join(map(str, ends))}" if ends else ""
    told = f": {counts}" if counts else ""
    return f"{summary.project}: {summary.wheels} {noun}{listed}{told}"


def format_conflict(conflict: Conflict, target: Target) -> str:
    """Tell a conflict: the machine, then the chain, then what there is of a project that lacks.

    `cudalock.explain.derivation` tells the rest: every fact, and what rules the other wheels out.
    """
    told = [format_target(target), "", format_chain(conflict, conflict.facts)]
    for facts in conflict.also:
        told += ["", format_chain(conflict, facts, first="Apart from that, because")]
    unmet = _unmet(conflict)
    summaries = [
        format_summary(summary)
        for summary in conflict.projects
        if not summary.wheels or summary.project in unmet
    ]
    if summaries:
        told += ["", *summaries]
    return "\n".join(told)


_OWN = (FactKind.REQUIREMENT, FactKind.OVERRIDE, FactKind.CONSTRAINT)

# What tells most of a conflict, for the code at its head.
_TELLING = (
    FactKind.SYMBOL,
    FactKind.PATH,
    FactKind.PAIRING,
    FactKind.FAMILY,
    FactKind.DEMAND,
    FactKind.REJECTION,
    FactKind.RELEASE,
)


def conflict_rule(conflict: Conflict) -> Rule:
    """Return the rule that tells most of a conflict: what stands between the requirements."""
    return _most_telling(conflict)[0]


def conflict_reason(conflict: Conflict) -> str:
    """Say of a target in one clause what stands between the requirements, without its source."""
    rule, described = _most_telling(conflict)
    if rule.name == "absent":
        return f"no index lists `{described.fact.detail}` for it"
    return format_fact(described)


def _most_telling(conflict: Conflict) -> tuple[Rule, ConflictFact]:
    for kind in _TELLING:
        for described in conflict.facts:
            if described.fact.kind is kind:
                return fact_rule(described.fact), described
    alone = len(conflict.facts) == 1
    for described in conflict.facts:
        if alone or _is_unlisted(described, conflict):
            return rule_of("absent") or fact_rule(described.fact), described
    kinds = (FactKind.DEPENDENCY, FactKind.CONSTRAINT, FactKind.OVERRIDE)
    told = [f for kind in kinds for f in conflict.facts if f.fact.kind is kind]
    described = (told or list(conflict.facts))[0]
    return fact_rule(described.fact), described


def format_seen(facts: Iterable[ConflictFact]) -> str:
    """Tell the facts by which all that was seen is refused, one a line.

    Nothing where these are only what the user asked for: then nothing of use was seen.
    """
    told = list(facts)
    if all(described.fact.kind in _OWN for described in told):
        return ""
    lines = [f"  {_sourced(described)}" for described in told]
    return "\n".join(["By what was seen alone there is no set:", *lines])


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
            versions = listed.get(project)
            if versions is not None and not any(
                wanted.contains(version, prereleases=True) for version in versions
            ):
                found.add(project)
    return found


def _is_unlisted(
    described: ConflictFact, conflict: Conflict, facts: Iterable[ConflictFact] | None = None
) -> bool:
    """Whether a fact requires what no index lists, and is the only one to speak of that project.

    Where others speak of it too, an index that was not seen whole may have it, and the conflict
    does not rest on that.
    """
    fact = described.fact
    if fact.kind not in (FactKind.REQUIREMENT, FactKind.DEPENDENCY, FactKind.OVERRIDE):
        return False
    if fact.object not in _unmet(conflict) or Requirement(fact.detail).url or described.note:
        return False
    speaking = [
        f for f in facts or conflict.facts if fact.object in (f.fact.subject, f.fact.object)
    ]
    return speaking == [described]


def format_chain(
    conflict: Conflict, facts: Sequence[ConflictFact], *, first: str = "Because"
) -> str:
    """Tell facts as one sentence, a clause a line; what the user asked for comes last."""
    machine = (FactKind.TARGET, FactKind.POLICY)
    chain = [f for f in facts if f.fact.kind not in (*_OWN, *machine)]
    ordered = [
        *chain,
        *(f for f in facts if f.fact.kind in machine),
        *(f for f in facts if f.fact.kind in _OWN),
    ]
    if not chain and len(ordered) == 1:
        return _alone(ordered[0])
    clauses = []
    for _, group in groupby(ordered, key=_same_words):
        together = list(group)
        clause = _sourced(together[0]) if len(together) == 1 else _together(together)
        if _is_unlisted(together[0], conflict, facts):
            clause += ", which no index lists"
        clauses.append(clause)
    lines = [f"{first} {clauses[0]}", *(f"and {clause}" for clause in clauses[1:])]
    return "\n".join(lines) + ",\nno set of wheels does all of this."


def _same_words(described: ConflictFact) -> object:
    """Tell facts of one family together, which say the same of two projects."""
    fact = described.fact
    if fact.kind is FactKind.FAMILY:
        return (fact.kind, fact.object, fact.detail, format_source(described))
    return described


def _together(several: Sequence[ConflictFact]) -> str:
    subjects = _joined([_subject(described) for described in several])
    return _with_source(f"{subjects} {plural(several[0].fact.detail)}", format_source(several[0]))


def format_source(described: ConflictFact) -> str:
    """Say where a fact is written: the first place, and the last when there are several."""
    places = [source for source in described.sources if source]
    if len(places) > 2:
        return f"{places[0]} … {places[-1]}"
    return _joined(places)


def _sourced(described: ConflictFact) -> str:
    # What is to be said beside a requirement comes after the place where that stands.
    fact = format_fact(replace(described, note=""))
    told = _with_source(fact, format_source(described))
    told += f"; {described.note}" if described.note else ""
    # A clause is one line, whatever an index or a wheel put into it.
    return " ".join(told.split())


def _with_source(told: str, source: str) -> str:
    """Add a place in brackets, to those that a text ends in if it has some."""
    # That the target says what the target is needs no telling.
    if not source or source == "the target":
        return told
    return f"{told[:-1]}; {source})" if told.endswith(")") else f"{told} ({source})"


def _alone(described: ConflictFact) -> str:
    """Tell of a requirement that nothing listed satisfies."""
    alone = _sourced(replace(described, note=""))
    note = f" ({described.note})" if described.note else ""
    return f"{_capital(alone)}, and no index lists such a wheel{note}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
