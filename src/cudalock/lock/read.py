"""Reading a lock: ``pylock.toml`` text to values, strictly (PEP 751, "File Format").

This module reads the shape (tables, keys, types); ``rules.py`` judges the values. Every fault of
the file is found and raised at once. A key the standard does not know is a fault, as in the
standard's own JSON schema: a misspelt ``marker`` would otherwise install something else.

Left out of the values, on purpose: the tables of other tools below ``tool``, the identities of
attestations, and in ``dependencies`` everything but name and version.
"""

import re
import tomllib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from typing import Any, TypeVar

from cudalock.lock.faults import FaultList, LockFaultsError, key_path, quoted
from cudalock.lock.model import LARGEST_LOCK, Lock, LockedPackage, LockedWheel, TomlValue
from cudalock.lock.rules import check_document, check_package, check_together

__all__ = ["decode_lock", "parse_lock"]

_T = TypeVar("_T")

_DOCUMENT_KEYS = frozenset(
    {
        "lock-version",
        "environments",
        "requires-python",
        "extras",
        "dependency-groups",
        "default-groups",
        "created-by",
        "packages",
        "tool",
    }
)
_PACKAGE_KEYS = frozenset(
    {
        "name",
        "version",
        "marker",
        "requires-python",
        "dependencies",
        "index",
        "wheels",
        "attestation-identities",
        # PEP 825; "tools that do not support variant-aware resolution ... SHOULD preserve it".
        "variants-json",
        "tool",
    }
)
_OTHER_SOURCES = frozenset({"vcs", "directory", "archive", "sdist"})
_WHEEL_KEYS = frozenset({"name", "upload-time", "url", "path", "size", "hashes"})
# A dependency may repeat whatever keys of the entry tell it apart.
_DEPENDENCY_KEYS = _PACKAGE_KEYS | _OTHER_SOURCES

_KINDS: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    list: "an array",
    dict: "a table",
    datetime: "a date-time",
    date: "a date",
    time: "a time",
}

# tomllib's time is quadratic in the number of dotted parts of one key (16,000 parts, a line of
# 32 KB, take four seconds), and no lock has a key of a hundred.
_PART = r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?:{_PART}){{100}}", re.ASCII)


def _single(message: str, where: str) -> LockFaultsError:
    faults = FaultList()
    faults.add("", message)
    return LockFaultsError(faults, where=where)


def _load(text: str, where: str) -> dict[str, Any]:
    if len(text) > LARGEST_LOCK:
        raise _single(f"expected at most {LARGEST_LOCK} characters, found {len(text)}", where)
    if _LONG_KEY.search(text):
        raise _single("expected keys of fewer than 100 parts, found a longer one", where)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise _single("expected a few levels of nesting, found too many", where) from error
    except ValueError as error:
        # The parser's own words repeat the file's; they end in the line and the column.
        raise _single(f"expected TOML, found an error: {quoted(str(error))}", where) from error


class _Reader:
    """Takes typed values out of tables and notes what is missing, misplaced or of another type."""

    __slots__ = ("faults", "package")

    def __init__(self) -> None:
        self.faults = FaultList()
        self.package: str | None = None

    def fault(self, path: str, message: str) -> None:
        self.faults.add(path, message, self.package)

    def is_a(self, value: object, kind: type[_T], path: str) -> bool:
        # bool is an int to Python, and datetime a date; TOML tells them apart.
        if type(value) is kind:
            return True
        self.fault(path, f"expected {_KINDS[kind]}, found {_KINDS[type(value)]}")
        return False

    def keys(self, table: Mapping[str, Any], known: AbstractSet[str], path: str) -> None:
        for key in table:
            if key not in known:
                names = ", ".join(sorted(known))
                self.fault(key_path(path, key), f"expected a key of {names}, found another")

    def get(self, table: Mapping[str, Any], key: str, kind: type[_T], path: str) -> _T | None:
        value: _T | None = table.get(key)
        if value is None or not self.is_a(value, kind, key_path(path, key)):
            return None
        return value

    def need(
        self, table: Mapping[str, Any], key: str, kind: type[_T], path: str, instead: _T
    ) -> _T:
        if key not in table:
            self.fault(key_path(path, key), f"expected {_KINDS[kind]}, found nothing")
            return instead
        value = self.get(table, key, kind, path)
        return instead if value is None else value

    def items(
        self, table: Mapping[str, Any], key: str, kind: type[_T], path: str
    ) -> list[tuple[str, _T]]:
        place = key_path(path, key)
        values: list[Any] = self.get(table, key, list, path) or []
        named = [(f"{place}[{position}]", value) for position, value in enumerate(values)]
        return [(name, value) for name, value in named if self.is_a(value, kind, name)]

    def words(self, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        return tuple(word for _, word in self.items(table, key, str, ""))

    def tool(self, table: Mapping[str, Any], path: str) -> Mapping[str, TomlValue] | None:
        tools = self.get(table, "tool", dict, path)
        return None if tools is None else self.get(tools, "cudalock", dict, f"{path}tool")


def _read_wheel(reader: _Reader, table: Mapping[str, Any], path: str) -> LockedWheel:
    reader.keys(table, _WHEEL_KEYS, path)
    hashes: dict[str, Any] = reader.need(table, "hashes", dict, path, {})
    return LockedWheel(
        name=reader.need(table, "name", str, path, ""),
        url=reader.get(table, "url", str, path),
        path=reader.get(table, "path", str, path),
        upload_time=reader.get(table, "upload-time", datetime, path),
        size=reader.get(table, "size", int, path),
        hashes={
            name: digest
            for name, digest in hashes.items()
            if reader.is_a(digest, str, key_path(f"{path}.hashes", name))
        },
    )


def _read_dependency(
    reader: _Reader, table: Mapping[str, Any], path: str
) -> tuple[str, str | None]:
    reader.keys(table, _DEPENDENCY_KEYS, path)
    return reader.need(table, "name", str, path, ""), reader.get(table, "version", str, path)


def _read_package(reader: _Reader, table: Mapping[str, Any], path: str) -> LockedPackage:
    name = reader.need(table, "name", str, path, "")
    reader.package = name or None
    reader.keys(table, _PACKAGE_KEYS | _OTHER_SOURCES, path)
    for source in sorted(_OTHER_SOURCES & table.keys()):
        reader.fault(f"{path}.{source}", f"expected wheels only, found {source}")
    reader.items(table, "attestation-identities", dict, path)
    return LockedPackage(
        name=name,
        version=reader.need(table, "version", str, path, ""),
        marker=reader.get(table, "marker", str, path),
        requires_python=reader.get(table, "requires-python", str, path),
        dependencies=tuple(
            _read_dependency(reader, dependency, place)
            for place, dependency in reader.items(table, "dependencies", dict, path)
        ),
        index=reader.get(table, "index", str, path),
        wheels=tuple(
            _read_wheel(reader, wheel, place)
            for place, wheel in reader.items(table, "wheels", dict, path)
        ),
        variants_json=reader.get(table, "variants-json", dict, path),
        tool=reader.tool(table, f"{path}."),
    )


def _read_document(
    reader: _Reader, document: Mapping[str, Any], insecure_hosts: AbstractSet[str]
) -> Lock:
    reader.keys(document, _DOCUMENT_KEYS, "")
    reader.need(document, "packages", list, "", [])
    packages: list[LockedPackage] = []
    whole = True
    for path, table in reader.items(document, "packages", dict, ""):
        before = reader.faults.count
        package = _read_package(reader, table, path)
        reader.package = None
        if reader.faults.count == before:
            check_package(
                package,
                int(path[len("packages[") : -1]),
                reader.faults,
                insecure_hosts=insecure_hosts,
            )
            packages.append(package)
        else:
            # What holds between entries cannot be told while one of them is unreadable.
            whole = False
    before = reader.faults.count
    lock = Lock(
        lock_version=reader.need(document, "lock-version", str, "", "1.0"),
        created_by=reader.need(document, "created-by", str, "", "unknown"),
        requires_python=reader.get(document, "requires-python", str, ""),
        environments=reader.words(document, "environments"),
        extras=reader.words(document, "extras"),
        dependency_groups=reader.words(document, "dependency-groups"),
        default_groups=reader.words(document, "default-groups"),
        packages=tuple(packages),
        tool=reader.tool(document, "") or {},
    )
    check_document(lock, reader.faults)
    if whole and reader.faults.count == before:
        check_together(lock, reader.faults)
    return lock


def decode_lock(content: bytes, where: str) -> str:
    """Decode the bytes of a lock file; raise ``LockFaultsError`` for what is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"expected UTF-8, found another byte at offset {error.start}"
        raise _single(message, where) from error


def parse_lock(text: str, *, where: str, insecure_hosts: AbstractSet[str] = frozenset()) -> Lock:
    """Parse the text of a lock; entries keep the order of the file.

    ``where`` names the file in messages. ``insecure_hosts`` are the hosts for which the user's
    own setting allows plain http. Raises ``LockFaultsError`` (an ``InvalidLockError``) with every
    fault, and nothing else, for any text. Linear in the text; about 0.2 ms a package, half of
    it tomllib.
    """
    reader = _Reader()
    lock = _read_document(reader, _load(text, where), insecure_hosts)
    if reader.faults.count:
        raise LockFaultsError(reader.faults, where=where)
    return lock
