"""Reads `indices/knowledge/*.toml`: what metadata fails to say, each entry with its source.

An entry is an ``[[entry]]`` table with ``kind``, ``project``, ``versions``, ``value``, ``source``
and ``date``. ``project`` may be a list, which stands for one entry a project. What ``value`` holds
depends on the kind:

===============  =================  ==========================================================
kind             versions           value
===============  =================  ==========================================================
family, train    none               list of projects; ``project`` is the group's name
pairing          required           ``{ partner = "2.9" }``
rename           ``>=``, required   the successor's name
tested-set       ``==``, required   ``{ project = "version" }``
metadata         required           list of Requires-Dist, perhaps empty
toolkit          none               none
toolkit-part     none               ``toolkit-number`` or ``own-number``
runtime-library  optional           the CUDA major, a number
cuda-number      none               none
placeholder      required           none
needs-pairing    none               the partner
compiles         none               none
cuda-project     none               none
===============  =================  ==========================================================

The types are those of `cudalock.wheel.knowledge`. Strict: every fault of a file is reported at
once, since an entry that is silently dropped changes an answer silently.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.index.locate import DataFileError, FaultList, parse_toml, read_data_file
from cudalock.wheel.knowledge import (
    CudaNumber,
    Family,
    Knowledge,
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
from cudalock.wheel.names import (
    parse_project_name,
    parse_requirement,
    parse_specifiers,
    parse_version,
)

__all__ = ["load_knowledge", "parse_knowledge"]

_KEYS = ("kind", "project", "versions", "value", "source", "date")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_MINOR = re.compile(r"\d{1,4}\.\d{1,4}\Z", re.ASCII)
_NO_VERSIONS = frozenset(
    {"family", "train", "toolkit", "toolkit-part", "cuda-number"}
    | {"needs-pairing", "compiles", "cuda-project"}
)
_NO_VALUE = frozenset({"toolkit", "cuda-number", "placeholder", "compiles", "cuda-project"})


class _Entry:
    """One table with its faults. Methods return a value of the right type whatever was found."""

    def __init__(self, table: dict[str, object], key: str, faults: FaultList) -> None:
        self._table = table
        self._key = key
        self._faults = faults
        faults.check_keys(table, _KEYS, f"{key}.")
        self.kind = faults.text(table, "kind", f"{key}.")
        self.source = faults.text(table, "source", f"{key}.")
        self.date = faults.text(table, "date", f"{key}.")
        if self.date and not _DATE.match(self.date):
            self.fault("date", f"expected a date such as 2026-12-01, found `{self.date}`")
        if self.kind in _NO_VERSIONS and "versions" in table:
            self.fault("versions", f"expected none for kind `{self.kind}`")
        if self.kind in _NO_VALUE and "value" in table:
            self.fault("value", f"expected none for kind `{self.kind}`")

    def fault(self, name: str, message: str) -> None:
        self._faults.add(f"{self._key}.{name}", message)

    def projects(self) -> Iterator[str]:
        """Yield the normalised project names; ``*``, every project, only for placeholders."""
        value = self._table.get("project")
        names = value if isinstance(value, list) else [value]
        if not names:
            self.fault("project", "expected at least one project, found none")
        for name in names:
            if name == "*" and self.kind == "placeholder":
                yield "*"
            else:
                found = self.name("project", name)
                if found:
                    yield found

    def name(self, key: str, value: object) -> str:
        try:
            return parse_project_name(value if isinstance(value, str) else "")
        except WheelError:
            self.fault(key, f"expected the name of a project, found `{value!r}`")
            return ""

    def names(self) -> tuple[str, ...]:
        value = self._table.get("value")
        if not isinstance(value, list) or len(value) < 2:
            self.fault("value", f"expected a list of two projects or more, found `{value!r}`")
            return ()
        return tuple(name for item in value if (name := self.name("value", item)))

    def text(self, what: str) -> str:
        value = self._table.get("value")
        if not isinstance(value, str):
            self.fault("value", f"expected {what}, found `{value!r}`")
            return ""
        return value

    def number(self) -> int:
        value = self._table.get("value")
        if type(value) is not int or not 0 < value < 1000:
            self.fault("value", f"expected a CUDA major, found `{value!r}`")
            return 0
        return value

    def pairs(self) -> dict[str, str]:
        value = self._table.get("value")
        if not isinstance(value, dict) or not value:
            self.fault("value", f"expected a table of project = version, found `{value!r}`")
            return {}
        found = {}
        for name, version in value.items():
            project = self.name("value", name)
            if project and isinstance(version, str):
                found[project] = version
            elif project:
                self.fault(f"value.{name}", f"expected a version, found `{version!r}`")
        return found

    def specifiers(self, *, required: bool = True) -> SpecifierSet:
        value = self._table.get("versions")
        if value is None and not required:
            return SpecifierSet()
        if not isinstance(value, str) or not value:
            self.fault("versions", f"expected version specifiers, found `{value!r}`")
            return SpecifierSet()
        try:
            return parse_specifiers(value)
        except WheelError as error:
            self.fault("versions", error.message)
            return SpecifierSet()

    def bound(self, operator: str) -> Version:
        """Return the version of the single specifier ``operator`` in ``versions``."""
        specifiers = list(self.specifiers())
        if len(specifiers) == 1 and specifiers[0].operator == operator:
            return self.version("versions", specifiers[0].version)
        self.fault("versions", f"expected one version after `{operator}`")
        return Version("0")

    def version(self, key: str, text: str) -> Version:
        try:
            return parse_version(text)
        except WheelError as error:
            self.fault(key, error.message)
            return Version("0")

    def requirements(self) -> tuple[Requirement, ...]:
        value = self._table.get("value")
        if not isinstance(value, list):
            self.fault("value", f"expected a list of requirements, found `{value!r}`")
            return ()
        found = []
        for item in value:
            try:
                found.append(parse_requirement(item if isinstance(item, str) else ""))
            except WheelError as error:
                self.fault("value", error.message)
        return tuple(found)


def _groups(entry: _Entry) -> Iterator[Family | Train]:
    group = Family if entry.kind == "family" else Train
    yield group(
        name=next(entry.projects(), ""),
        projects=entry.names(),
        source=entry.source,
        date=entry.date,
    )


def _pairings(entry: _Entry) -> Iterator[Pairing]:
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


def _renames(entry: _Entry) -> Iterator[Rename]:
    since, successor = entry.bound(">="), entry.name("value", entry.text("the successor's name"))
    for project in entry.projects():
        yield Rename(
            project=project,
            successor=successor,
            since=since,
            source=entry.source,
            date=entry.date,
        )


def _tested_sets(entry: _Entry) -> Iterator[TestedSet]:
    version = entry.bound("==")
    pins = tuple(
        (name, entry.version(f"value.{name}", text)) for name, text in sorted(entry.pairs().items())
    )
    for project in entry.projects():
        yield TestedSet(
            project=project, version=version, pins=pins, source=entry.source, date=entry.date
        )


def _stand_ins(entry: _Entry) -> Iterator[StandInMetadata]:
    versions, requirements = entry.specifiers(), entry.requirements()
    for project in entry.projects():
        yield StandInMetadata(
            project=project,
            versions=versions,
            requires_dist=requirements,
            source=entry.source,
            date=entry.date,
        )


def _toolkits(entry: _Entry) -> Iterator[Toolkit]:
    for project in entry.projects():
        yield Toolkit(project=project, source=entry.source, date=entry.date)


def _toolkit_parts(entry: _Entry) -> Iterator[ToolkitPart]:
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


def _runtime_libraries(entry: _Entry) -> Iterator[RuntimeLibrary]:
    versions, major = entry.specifiers(required=False), entry.number()
    for project in entry.projects():
        yield RuntimeLibrary(
            project=project,
            major=major,
            versions=versions,
            source=entry.source,
            date=entry.date,
        )


def _cuda_numbers(entry: _Entry) -> Iterator[CudaNumber]:
    for project in entry.projects():
        yield CudaNumber(project=project, source=entry.source, date=entry.date)


def _placeholders(entry: _Entry) -> Iterator[Placeholder]:
    versions = entry.specifiers()
    for project in entry.projects():
        yield Placeholder(project=project, versions=versions, source=entry.source, date=entry.date)


def _marks(entry: _Entry) -> Iterator[ProjectMark]:
    value = ""
    if entry.kind == "needs-pairing":
        value = entry.name("value", entry.text("the partner's name"))
    for project in entry.projects():
        yield ProjectMark(
            kind=entry.kind, project=project, value=value, source=entry.source, date=entry.date
        )


# Kind, the field of `Knowledge` it fills, and what makes the values of one entry.
_KINDS: dict[str, tuple[str, Callable[[_Entry], Iterator[object]]]] = {
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


def parse_knowledge(text: str, *, where: str) -> Knowledge:
    """Parse one knowledge file, entries in their order; raise `DataFileError` with every fault."""
    table = parse_toml(text, where=where)
    faults = FaultList(where)
    faults.check_keys(table, ("entry",))
    entries = table.get("entry", [])
    if not isinstance(entries, list):
        faults.add("entry", "expected [[entry]] tables")
        entries = []
    found: dict[str, list[object]] = {}
    for number, item in enumerate(entries, 1):
        key = f"entry {number}"
        if not isinstance(item, dict):
            faults.add(key, f"expected a table, found `{item!r}`")
            continue
        entry = _Entry(item, key, faults)
        if entry.kind in _KINDS:
            name, make = _KINDS[entry.kind]
            found.setdefault(name, []).extend(make(entry))
        elif entry.kind:
            faults.check_keys({entry.kind: None}, _KINDS, f"{key}.kind: ")
    faults.raise_if_any()
    # Each list was filled by the maker of its own kind.
    return replace(Knowledge(), **{name: tuple(values) for name, values in found.items()})  # type: ignore[arg-type]


def load_knowledge(directory: Path) -> Knowledge:
    """Read every ``*.toml`` of a folder as one body of knowledge, by file name.

    Raises one `DataFileError` with all faults of all files. Cost: about 15 ms for 420 entries.
    """
    parts: list[Knowledge] = []
    faults: list[str] = []
    for path in sorted(directory.glob("*.toml")):
        try:
            parts.append(parse_knowledge(read_data_file(path).decode("utf-8"), where=path.name))
        except UnicodeDecodeError:
            faults.append(f"{path.name}: expected UTF-8")
        except DataFileError as error:
            faults += [f"{path.name}: {fault}" for fault in error.faults]
    names = [field.name for field in fields(Knowledge)]
    merged = {name: tuple(item for part in parts for item in getattr(part, name)) for name in names}
    faults += _find_contradictions(merged)
    if faults:
        raise DataFileError(faults, where=str(directory))
    return replace(Knowledge(), **merged)


def _find_contradictions(merged: dict[str, tuple[object, ...]]) -> list[str]:
    """Return what two entries say of one thing where a look-up would silently take the first."""
    faults = []
    for name, key in (
        ("toolkit_parts", ("project",)),
        ("renames", ("project",)),
        ("marks", ("kind", "project")),
        ("tested_sets", ("project", "version")),
        ("pairings", ("project", "versions", "partner")),
    ):
        seen: set[tuple[object, ...]] = set()
        for item in merged[name]:
            what = tuple(getattr(item, part) for part in key)
            if what in seen:
                faults.append(
                    f"{name}: expected one entry for {' '.join(map(str, what))}, found two"
                )
            seen.add(what)
    owners: dict[str, str] = {}
    for family in merged["families"]:
        if isinstance(family, Family):
            faults += [
                f"families: `{project}` is in two of them"
                for project in family.projects
                if owners.setdefault(project, family.name) != family.name
            ]
    return faults
