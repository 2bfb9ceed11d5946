"""The kinds of knowledge entries, and what makes values of each.

The types are those of `cudalock.wheel.knowledge`; `knowledge_files.py` has the table of what each
kind holds.
"""

import re
from collections.abc import Callable, Iterator

from cudalock.index.knowledge_entry import Entry
from cudalock.wheel.knowledge import (
    CudaNumber,
    Family,
    Pairing,
    Placeholder,
    ProjectMark,
    Rename,
    RuntimeLibrary,
    StandInMetadata,
    TestedSet,
    Toolkit,
    ToolkitPart,
    Train,
)

__all__ = ["KINDS", "make_values"]

_MINOR = re.compile(r"\d{1,4}\.\d{1,4}\Z", re.ASCII)
_NO_VERSIONS = frozenset(
    {"family", "train", "toolkit", "toolkit-part", "cuda-number"}
    | {"needs-pairing", "compiles", "cuda-project"}
)
_NO_VALUE = frozenset({"toolkit", "cuda-number", "placeholder", "compiles", "cuda-project"})


def make_values(entry: Entry) -> Iterator[object]:
    """Yield the values that an entry of a known kind stands for, noting its faults."""
    if entry.kind in _NO_VERSIONS:
        entry.forbid("versions")
    if entry.kind in _NO_VALUE:
        entry.forbid("value")
    yield from KINDS[entry.kind][1](entry)


def _groups(entry: Entry) -> Iterator[Family | Train]:
    group = Family if entry.kind == "family" else Train
    yield group(
        name=next(entry.projects(), ""),
        projects=entry.names(),
        source=entry.source,
        date=entry.date,
    )


def _pairings(entry: Entry) -> Iterator[Pairing]:
    versions, partners = entry.specifiers(), entry.pairs()
    for minor in partners.values():
        if not _MINOR.match(minor):
            entry.fault("value", f"expected a minor release such as `2.9`, found `{minor}`")
    for project in entry.projects():
        for partner, minor in sorted(partners.items()):
            yield Pairing(
                project=project,
                versions=versions,
                partner=partner,
                minor=minor,
                source=entry.source,
                date=entry.date,
            )


def _renames(entry: Entry) -> Iterator[Rename]:
    since, successor = entry.bound(">="), entry.name("value", entry.text("the successor's name"))
    for project in entry.projects():
        yield Rename(
            project=project,
            successor=successor,
            since=since,
            source=entry.source,
            date=entry.date,
        )


def _tested_sets(entry: Entry) -> Iterator[TestedSet]:
    version = entry.bound("==")
    pins = tuple(
        (name, entry.version(f"value.{name}", text)) for name, text in sorted(entry.pairs().items())
    )
    for project in entry.projects():
        yield TestedSet(
            project=project, version=version, pins=pins, source=entry.source, date=entry.date
        )


def _stand_ins(entry: Entry) -> Iterator[StandInMetadata]:
    versions, requirements = entry.specifiers(), entry.requirements()
    for project in entry.projects():
        yield StandInMetadata(
            project=project,
            versions=versions,
            requires_dist=requirements,
            source=entry.source,
            date=entry.date,
        )


def _toolkits(entry: Entry) -> Iterator[Toolkit]:
    for project in entry.projects():
        yield Toolkit(project=project, source=entry.source, date=entry.date)


def _toolkit_parts(entry: Entry) -> Iterator[ToolkitPart]:
    value = entry.text("`toolkit-number` or `own-number`")
    if value not in ("toolkit-number", "own-number"):
        entry.fault("value", f"expected `toolkit-number` or `own-number`, found `{value}`")
    for project in entry.projects():
        yield ToolkitPart(
            project=project,
            own_number=value == "own-number",
            source=entry.source,
            date=entry.date,
        )


def _runtime_libraries(entry: Entry) -> Iterator[RuntimeLibrary]:
    versions, major = entry.specifiers(required=False), entry.number()
    for project in entry.projects():
        yield RuntimeLibrary(
            project=project,
            major=major,
            versions=versions,
            source=entry.source,
            date=entry.date,
        )


def _cuda_numbers(entry: Entry) -> Iterator[CudaNumber]:
    for project in entry.projects():
        yield CudaNumber(project=project, source=entry.source, date=entry.date)


def _placeholders(entry: Entry) -> Iterator[Placeholder]:
    versions = entry.specifiers()
    for project in entry.projects():
        yield Placeholder(project=project, versions=versions, source=entry.source, date=entry.date)


def _marks(entry: Entry) -> Iterator[ProjectMark]:
    value = ""
    if entry.kind == "needs-pairing":
        value = entry.name("value", entry.text("the partner's name"))
    for project in entry.projects():
        yield ProjectMark(
            kind=entry.kind, project=project, value=value, source=entry.source, date=entry.date
        )


# Kind, the field of `Knowledge` it fills, and what makes the values of one entry.
KINDS: dict[str, tuple[str, Callable[[Entry], Iterator[object]]]] = {
    "family": ("families", _groups),
    "train": ("trains", _groups),
    "pairing": ("pairings", _pairings),
    "rename": ("renames", _renames),
    "tested-set": ("tested_sets", _tested_sets),
    "metadata": ("stand_ins", _stand_ins),
    "toolkit": ("toolkits", _toolkits),
    "toolkit-part": ("toolkit_parts", _toolkit_parts),
    "runtime-library": ("runtime_libraries", _runtime_libraries),
    "cuda-number": ("cuda_numbers", _cuda_numbers),
    "placeholder": ("placeholders", _placeholders),
    "needs-pairing": ("marks", _marks),
    "compiles": ("marks", _marks),
    "cuda-project": ("marks", _marks),
}
