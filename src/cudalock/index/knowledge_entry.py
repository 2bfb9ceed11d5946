"""One ``[[entry]]`` table of a knowledge file, read with every fault of it.

Methods return a value of the right type whatever was found, and note what was wrong: all faults of
a file are reported at once. What the kinds mean is for `knowledge_kinds.py`.
"""

import re
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.index.locate import FaultList
from cudalock.wheel.names import (
    parse_project_name,
    parse_requirement,
    parse_specifiers,
    parse_version,
)

__all__ = ["Entry"]

_KEYS = ("kind", "project", "versions", "value", "source", "date")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)


class Entry:
    """One table with its faults."""

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

    def forbid(self, *names: str) -> None:
        """Note each of these keys that is there: its kind has no use for it."""
        for name in names:
            if name in self._table:
                self.fault(name, f"expected none for kind `{self.kind}`")

    def fault(self, name: str, message: str) -> None:
        """Note that the key ``name`` of this entry is wrong."""
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
        """Return a project's normalised name."""
        try:
            return parse_project_name(value if isinstance(value, str) else "")
        except WheelError:
            self.fault(key, f"expected the name of a project, found `{value!r}`")
            return ""

    def names(self) -> tuple[str, ...]:
        """Return the value, a list of two projects or more."""
        value = self._table.get("value")
        if not isinstance(value, list) or len(value) < 2:
            self.fault("value", f"expected a list of two projects or more, found `{value!r}`")
            return ()
        return tuple(name for item in value if (name := self.name("value", item)))

    def text(self, what: str) -> str:
        """Return the value, a text; ``what`` says what is expected."""
        value = self._table.get("value")
        if not isinstance(value, str):
            self.fault("value", f"expected {what}, found `{value!r}`")
            return ""
        return value

    def number(self) -> int:
        """Return the value, a CUDA major."""
        value = self._table.get("value")
        if type(value) is not int or not 0 < value < 1000:
            self.fault("value", f"expected a CUDA major, found `{value!r}`")
            return 0
        return value

    def table(self, *keys: str) -> dict[str, object]:
        """Return the value, a table of these keys; none of them need be there."""
        value = self._table.get("value")
        if not isinstance(value, dict) or not value:
            self.fault("value", f"expected a table of {', '.join(keys)}, found `{value!r}`")
            return {}
        self._faults.check_keys(value, keys, f"{self._key}.value.")
        return value

    def pairs(self) -> dict[str, str]:
        """Return the value, a table of project = version."""
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
        """Return ``versions``; without it every version, unless it is ``required``."""
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
        """Return a version that stands at ``key``."""
        try:
            return parse_version(text)
        except WheelError as error:
            self.fault(key, error.message)
            return Version("0")

    def requirements(self) -> tuple[Requirement, ...]:
        """Return the value, a list of requirements."""
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
