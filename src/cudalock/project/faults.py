"""Everything wrong with one file, collected and raised once.

A person who is told one fault a run fixes a file in as many runs as it has faults. The readers
of this room therefore note each fault by the key it stands at and go on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from cudalock.errors import UsageError
from cudalock.project.requirement import RequestedRequirement, near_name, parse_requirement
from cudalock.wheel.published import AsOf, parse_as_of

__all__ = ["Fault", "Faults", "ProjectFileError", "join", "kind"]

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong at ``key``, such as ``tool.cudalock.targets.box.cuda``."""

    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.key}: {self.message}" if self.key else self.message


class ProjectFileError(UsageError):
    """A project file asks for something that cannot be; ``faults`` lists all of it."""

    code = "project-file"

    def __init__(self, faults: tuple[Fault, ...], *, where: str) -> None:
        self.faults = faults
        if len(faults) == 1:
            message = str(faults[0])
        else:
            shown = "".join(f"\n  {fault}" for fault in faults[:_MOST_SHOWN])
            more = len(faults) - _MOST_SHOWN
            message = f"{len(faults)} faults:{shown}" + (f"\n  and {more} more" if more > 0 else "")
        super().__init__(message, where=where)

    def __str__(self) -> str:
        # A list reads better under the file's name than before it.
        if len(self.faults) == 1:
            return super().__str__()
        return f"{self.where}: {self.message}"


class Faults:
    """Reads values of a TOML document, noting what is not of the expected kind.

    Every reader returns an empty value after noting a fault, so reading goes on.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._faults: list[Fault] = []

    def add(self, key: str, message: str) -> None:
        """Note one fault."""
        self._faults.append(Fault(key=key, message=message))

    def finish(self) -> None:
        """Raise `ProjectFileError` with everything noted, in the order it was found."""
        if self._faults:
            raise ProjectFileError(tuple(self._faults), where=self.where)

    def table(self, parent: Mapping[str, object], name: str, prefix: str) -> Mapping[str, object]:
        """Read a table; absent is empty."""
        value = parent.get(name, {})
        if isinstance(value, dict):
            return value
        self.add(join(prefix, name), f"expected a table, found {kind(value)}")
        return {}

    def items(self, parent: Mapping[str, object], name: str, prefix: str) -> list[object]:
        """Read an array of anything; absent is empty."""
        value = parent.get(name, [])
        if isinstance(value, list):
            return value
        self.add(join(prefix, name), f"expected an array, found {kind(value)}")
        return []

    def text(self, parent: Mapping[str, object], name: str, prefix: str) -> str | None:
        """Read a string that is not empty; absent is ``None``."""
        value = parent.get(name)
        if value is None or (isinstance(value, str) and value):
            return value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        hint = f'; write "{value}" (as a number, 12.10 would be 12.1)' if number else ""
        self.add(join(prefix, name), f"expected a string, found {kind(value)}{hint}")
        return None

    def as_of(self, parent: Mapping[str, object], name: str, prefix: str) -> AsOf | None:
        """Read a point in time: a date or a time with its offset, of TOML or as a string."""
        value = parent.get(name)
        if value is None:
            return None
        text = value.isoformat() if isinstance(value, date) else value
        if not isinstance(text, str):
            self.add(join(prefix, name), f"expected a date, found {kind(value)}")
            return None
        try:
            return parse_as_of(text, where=join(prefix, name))
        except UsageError as error:
            self.add(join(prefix, name), error.message)
            return None

    def flag(self, parent: Mapping[str, object], name: str, prefix: str) -> bool:
        """Read ``true`` or ``false``; absent is false."""
        value = parent.get(name, False)
        if isinstance(value, bool):
            return value
        self.add(join(prefix, name), f"expected true or false, found {kind(value)}")
        return False

    def texts(self, parent: Mapping[str, object], name: str, prefix: str) -> tuple[str, ...]:
        """Read an array of strings; absent is empty."""
        found = []
        for number, item in enumerate(self.items(parent, name, prefix)):
            if isinstance(item, str) and item:
                found.append(item)
            else:
                key = f"{join(prefix, name)}[{number}]"
                self.add(key, f"expected a string, found {kind(item)}")
        return tuple(found)

    def requirements(
        self, parent: Mapping[str, object], name: str, prefix: str
    ) -> tuple[RequestedRequirement, ...]:
        """Read an array of requirements; each knows its key; absent is empty."""
        found = []
        for number, item in enumerate(self.items(parent, name, prefix)):
            requirement = self.requirement(item, f"{join(prefix, name)}[{number}]")
            if requirement is not None:
                found.append(requirement)
        return tuple(found)

    def requirement(self, item: object, key: str) -> RequestedRequirement | None:
        """Read one requirement."""
        if not isinstance(item, str):
            self.add(key, f"expected a requirement in a string, found {kind(item)}")
            return None
        try:
            return parse_requirement(item, where=f"{self.where}: {key}")
        except UsageError as error:
            self.add(key, error.message)
            return None

    def known_keys(self, table: Mapping[str, object], known: Iterable[str], prefix: str) -> None:
        """Note each key of ``table`` that is not in ``known``, with the nearest that is."""
        names = sorted(known)
        for key in table:
            if key not in names:
                expected = ", ".join(names)
                self.add(
                    join(prefix, key),
                    f"unknown key{near_name(key, names)}; the keys here are {expected}",
                )


def join(prefix: str, name: str) -> str:
    """Write a key below another as TOML would, quoted where it has to be."""
    bare = name.replace("-", "").replace("_", "")
    shown = name if bare.isalnum() and bare.isascii() else ascii(name[:80])
    return f"{prefix}.{shown}" if prefix else shown


def kind(value: object) -> str:
    """Word what a TOML value is."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {str(value)[:40]}"
        case str():
            return f"the string `{value[:80]}`" if value else "an empty string"
        case list():
            return "an array"
        case dict():
            return "a table"
        case _:
            return "a date or time"
