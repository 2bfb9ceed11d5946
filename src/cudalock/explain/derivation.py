"""The full derivation of a conflict, for ``-v``: every fact with its rule, versions and sources.

What `cudalock.explain.report` says in a sentence is here as a list that leaves nothing out: all
versions a fact covers, all places that say so, and why the other wheels of each project are out.
"""

from collections.abc import Iterator

from packaging.version import Version

from cudalock.explain.report import format_fact
from cudalock.explain.rules import fact_rule
from cudalock.resolver.conflict import Conflict, ConflictFact, ProjectSummary

__all__ = ["format_derivation"]


def format_derivation(conflict: Conflict) -> str:
    """Tell every fact of a conflict and of those beside it, then what was seen of each project."""
    lines = ["The facts, each with its rule (`cudalock explain CODE`):"]
    for facts in (conflict.facts, *conflict.also):
        lines.append("")
        for described in facts:
            lines += _fact(described)
    for summary in conflict.projects:
        lines += ["", *_project(summary)]
    return "\n".join(lines)


def _fact(described: ConflictFact) -> Iterator[str]:
    rule = fact_rule(described.fact)
    yield f"  {rule.code} {rule.name}: {_one_line(format_fact(described))}"
    if len(described.versions) > 2:
        yield f"    versions: {_versions(described.versions)}"
    for source in dict.fromkeys(source for source in described.sources if source):
        yield f"    from: {_one_line(source)}"


def _project(summary: ProjectSummary) -> Iterator[str]:
    noun = "wheel" if summary.wheels == 1 else "wheels"
    yield f"  {summary.project}: {summary.wheels} {noun}"
    for index in summary.indices:
        yield f"    asked: {index}"
    if summary.versions:
        yield f"    versions: {_versions(summary.versions)}"
    for reason, count in summary.rejections:
        yield f"    {count} {reason}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _versions(versions: tuple[Version, ...]) -> str:
    return ", ".join(str(version) for version in versions)
