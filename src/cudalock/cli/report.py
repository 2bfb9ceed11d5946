"""What `resolve` says to a person: the set, its warnings, or the conflict."""

import difflib
from collections.abc import Iterable

from cudalock.cli.terminal import Terminal, one_line
from cudalock.explain.derivation import format_derivation
from cudalock.explain.report import conflict_rule, format_conflict, format_target
from cudalock.explain.rules import rule_of
from cudalock.host import Target
from cudalock.resolver.conflict import Conflict
from cudalock.resolver.facts import FactKind
from cudalock.resolver.resolution import Resolution, ResolvedPackage

__all__ = [
    "NOTES",
    "count_requests",
    "report_conflict",
    "report_near_names",
    "report_resolution",
    "rule_code",
]

_QUIET_CODES = frozenset({"assumed-metadata"})
NOTES = frozenset(
    {"held-back", "index", "unpublished", "major-only", "cuda-any", "as-of", "nightly-older"}
    | {"two-builds", "newer-minor"}
)
"""Codes of warnings that explain the choice; the others are about what may go wrong."""


def rule_code(word: str) -> str:
    """Return the code of a word's rule; empty for a word that has none."""
    rule = rule_of(word)
    return "" if rule is None else rule.code


def report_resolution(
    terminal: Terminal,
    resolution: Resolution,
    *,
    written: str | None,
    requests: int,
    extra: str | None = None,
) -> None:
    """Say what was locked: the wheels built for CUDA, one a line, then what should be known.

    ``extra`` is the one that selects the set in a lock of several targets.
    """
    terminal.say(format_target(resolution.target))
    known = [p for p in resolution.packages if p.variant.state == "known"]
    libraries = [
        p for p in known if any(o.kind == "knowledge" and o.decides for o in p.variant.evidence)
    ]
    rows = [_row(package) for package in known if package not in libraries]
    if known:
        terminal.say()
        for line in (*_table(rows), *_libraries(libraries)):
            terminal.say(line)
    native = [p for p in resolution.packages if p.variant.state == "unknown"]
    if terminal.verbose and native:
        names = ", ".join(f"{p.project} {p.version}" for p in native)
        terminal.say(f"  native, and nothing says for which CUDA, if any: {names}")
    terminal.say()
    for warning in resolution.warnings:
        code = rule_code(warning.code)
        if warning.code in NOTES:
            # What explains the choice needs no code in front, where nobody asked for more.
            terminal.note(one_line(warning.message), code if terminal.verbose else "")
        elif terminal.verbose or warning.code not in _QUIET_CODES:
            terminal.warn(one_line(warning.message), code)
        else:
            wheels = len(warning.facts)
            what = "one wheel requires" if wheels == 1 else f"{wheels} wheels require"
            terminal.warn(
                f"what {what} is assumed, not read from the wheel's own METADATA "
                "(-v names them, and the lock says from where)",
                code,
            )
        if terminal.verbose:
            for fact in warning.facts:
                terminal.say(f"  {one_line(fact)}")
    count = _counted(len(resolution.packages), "package")
    where = f" in {written}" if written not in (None, "-") else ""
    word = "Resolved" if written is None else "Locked"
    terminal.done(f"{word} {count}", f"{where} with {count_requests(requests)}.")
    if written not in (None, "-"):
        chosen = "" if extra is None else f" --extra {extra}"
        terminal.say(f"On the target, install it:\n  uv pip sync {written}{chosen}")
    if resolution.driver is not None:
        policy = resolution.target.cuda_compat
        terminal.say(f"The set needs NVIDIA driver {resolution.driver} or newer ({policy}).")
    if resolution.compat_package is not None:
        terminal.say(
            f"On driver {resolution.target.driver} the machine needs the package "
            f"{resolution.compat_package}."
        )


def count_requests(requests: int) -> str:
    """Say how many requests something took."""
    return _counted(requests, "request") if requests else "no request"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _cuda(package: ResolvedPackage) -> str:
    variant = package.variant
    return f"CUDA {variant.runtime if variant.cuda is None else variant.cuda}"


def _row(package: ResolvedPackage) -> tuple[str, str, str, str]:
    seen = package.variant.decisive
    told = seen.text if seen is not None else ""
    return package.project, str(package.version), _cuda(package), told


def _table(rows: list[tuple[str, str, str, str]]) -> list[str]:
    """Lay rows out for 80 columns: what does not fit of the last column is cut."""
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    lines = []
    for row in rows:
        line = "  ".join(row[i].ljust(widths[i]) for i in range(3))
        room = max(80 - len(line) - 4, 0)
        told = row[3] if len(row[3]) <= room else row[3][: max(room - 1, 0)] + "…"
        lines.append(f"  {line}  {told}".rstrip())
    return lines


def _libraries(packages: list[ResolvedPackage]) -> list[str]:
    """List the libraries of CUDA itself, a line a release."""
    groups: dict[str, list[str]] = {}
    for package in packages:
        groups.setdefault(_cuda(package), []).append(f"{package.project} {package.version}")
    return [f"  parts of {cuda}: {', '.join(names)}" for cuda, names in sorted(groups.items())]


def report_conflict(terminal: Terminal, conflict: Conflict, target: Target) -> None:
    """Tell a conflict: the machine and the chain; when verbose the full derivation, too."""
    terminal.error(
        "no set of wheels satisfies these requirements on this target", conflict_rule(conflict).code
    )
    terminal.say()
    terminal.say(format_conflict(conflict, target))
    terminal.say()
    if terminal.verbose:
        terminal.say(format_derivation(conflict))
        terminal.say()


def report_near_names(terminal: Terminal, conflict: Conflict, known: Iterable[str]) -> None:
    """Name projects spelled nearly like one that no index has."""
    absent = {summary.project for summary in conflict.projects if not summary.wheels}
    names = sorted(known)
    for described in conflict.facts:
        project = described.fact.object
        if described.fact.kind is FactKind.REQUIREMENT and project in absent:
            near = [n for n in difflib.get_close_matches(project, names, n=3) if n != project]
            if near:
                told = " or ".join(f"`{name}`" for name in near)
                terminal.say(f"  is {told} meant?")
