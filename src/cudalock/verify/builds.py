"""What the locked wheels are built for, concluded again from their names, labels and records.

The same functions that a resolve uses, on a `ListedFile` made from the lock. A record is evidence, too:
what a wheel's METADATA told stands nowhere else. Where the label or knowledge names another CUDA than
the record, that is a contradiction, and shown as one.

Evidence from a wheel's own bytes, once it stands in the record, belongs in `build_of`: it outranks the
label and knowledge there, as it does in a resolve.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import Version

from cudalock.host.target import Target
from cudalock.resolver.candidates import rejection_fact, rejection_kind
from cudalock.verify.problems import Problem
from cudalock.verify.selection import Entry, Selection
from cudalock.wheel.evidence import (
    Observation,
    Variant,
    add_device_code,
    conclude,
    may_hold_code,
    observe_file,
)
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile

__all__ = ["Build", "build_of", "builds_of", "contradictions", "excluded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A locked wheel and what it is built for; ``seen`` is what its name and knowledge tell alone."""

    entry: Entry
    file: ListedFile
    variant: Variant
    seen: Variant


def builds_of(selection: Selection, target: Target, knowledge: Knowledge) -> tuple[Build, ...]:
    """Return the build of each selected wheel, by project."""
    machine = target.machine if target.is_linux else target.platform
    return tuple(
        build_of(selection.entries[name], knowledge, machine) for name in sorted(selection.entries)
    )


def build_of(entry: Entry, knowledge: Knowledge, machine: str) -> Build:
    """Return what a wheel is built for on a machine (``x86_64``)."""
    file = ListedFile(
        wheel=parse_wheel_file(entry.wheel.name),
        url=entry.wheel.url or entry.wheel.path or "",
        index="",
        index_url=entry.package.index or "",
    )
    seen = conclude(observe_file(file, knowledge), native=may_hold_code(file))
    variant = _recorded(entry) or seen
    return Build(
        entry=entry,
        file=file,
        variant=add_device_code(variant, file, knowledge, machine=machine),
        seen=seen,
    )


def _recorded(entry: Entry) -> Variant | None:
    record = entry.record
    if record is None:
        return None
    if record.runtime is None:
        return Variant(state="none" if record.built_for == "none" else "unknown")
    text = record.evidence[0] if record.evidence else f"CUDA {record.cuda or record.runtime}"
    seen = Observation(
        kind="requires-dist",
        text=text,
        source="the lock",
        major=record.runtime,
        cuda=record.cuda,
    )
    return Variant(state="known", cuda=record.cuda, runtime=record.runtime, evidence=(seen,))


def excluded(builds: tuple[Build, ...], target: Target, knowledge: Knowledge) -> Iterator[Problem]:
    """Yield the wheels that no resolve takes for the target: for another vendor, for the CPU, empty."""
    python = Version(target.python)
    for build in builds:
        kind = rejection_kind(build.file, target, python, knowledge)
        if kind is not None:
            reason = rejection_fact(build.entry.name, kind).detail
            yield Problem(
                code="build",
                severity="broken",
                message=f"{build.entry} is {reason} ({build.entry.wheel.name})",
                package=build.entry.name,
            )


def contradictions(builds: tuple[Build, ...]) -> Iterator[Problem]:
    """Yield the wheels whose record names another CUDA than what it rests on does.

    Where a stronger observation outranked the label, the record shows both, and that is no
    contradiction.
    """
    for build in builds:
        record, seen = build.entry.record, build.seen
        told = seen.decisive
        if record is None or told is None:
            continue
        if record.runtime is not None and _outranked(told.text, record.evidence):
            continue
        if seen.runtime == record.runtime and seen.cuda in (None, record.cuda):
            continue
        found = "no CUDA" if record.runtime is None else f"CUDA {record.cuda or record.runtime}"
        yield Problem(
            code="evidence",
            severity="broken",
            message=f"{build.entry}: {told.text} says CUDA {seen.cuda or seen.runtime}, and its "
            f"record says {found}",
            package=build.entry.name,
            hint="lock again with `cudalock resolve`",
        )


def _outranked(text: str, evidence: tuple[str, ...]) -> bool:
    """Whether an observation stands behind one that decides; what a wheel holds decides nothing."""
    strong = [seen for seen in evidence if not seen.startswith("holds ")]
    shown = [seen.startswith(text) for seen in strong]
    return any(shown) and not shown[0]
