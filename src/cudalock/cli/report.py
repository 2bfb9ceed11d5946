"""What `resolve` says to a person: the set, its warnings, or the conflict."""

import difflib
from collections.abc import Iterable

from cudalock.cli.terminal import Terminal
from cudalock.explain import format_conflict, format_target
from cudalock.host import Target
from cudalock.resolver.conflict import Conflict
from cudalock.resolver.facts import FactKind
from cudalock.resolver.resolution import Resolution, ResolvedPackage

__all__ = ["report_conflict", "report_near_names", "report_resolution"]

_QUIET_CODES = frozenset({"assumed-metadata"})
_NOTES = frozenset(
    {"held-back", "index", "unpublished", "major-only", "cuda-any", "as-of", "nightly-older"}
    | {"two-builds", "newer-minor"}
)


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
        if terminal.verbose or warning.code not in _QUIET_CODES:
            tell = terminal.note if warning.code in _NOTES else terminal.warn
            tell(warning.message)
        else:
            wheels = len(warning.facts)
            what = "one wheel requires" if wheels == 1 else f"{wheels} wheels require"
            terminal.warn(
                f"what {what} is assumed, not read from the wheel's own METADATA "
                "(-v names them, and the lock says from where)"
            )
        if terminal.verbose:
            for fact in warning.facts:
                terminal.say(f"  {fact}")
    count = _counted(len(resolution.packages), "package")
    where = f" in {written}" if written not in (None, "-") else ""
    word = "Resolved" if written is None else "Locked"
    asked = _counted(requests, "request") if requests else "no request"
    terminal.done(f"{word} {count}", f"{where} with {asked}.")
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
    """Tell a conflict: the machine, the chain, and the wheels that were looked at."""
    terminal.error("no set of wheels satisfies these requirements on this target")
    terminal.say()
    terminal.say(format_conflict(conflict, target))
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
