"""Facts of wheels' bytes in files: those that come with cudalock, and those kept from earlier runs.

``indices/evidence/`` has one JSON file a wheel, by its file name, and ``exports.bin``, what releases of a
project export for extensions. Both are made by ``scripts/ship_evidence.py``. Facts that were read here are
kept in the cache by the wheel's sha256 and the reader's version; of both, the deeper reading counts.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.index.client import Client
from cudalock.index.locate import DataFileError
from cudalock.wheel.contents_form import (
    READER_VERSION,
    dump_contents,
    load_contents,
    shortened,
)
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.names import parse_version
from cudalock.wheel.wheel_facts import DIGEST, ExportTable, FactBook, WheelFacts

__all__ = ["Exports", "KeptFacts", "ShippedFacts", "format_exports", "format_facts", "open_book"]

_FOR_EVER = 10 * 365 * 24 * 3600.0
# What was read in parts is of no hash that was computed: another answer than the file looks broken, too.
_FAILURE_SECONDS = 7 * 24 * 3600.0
_KEPT_LIMIT = 64 * 1024 * 1024
_EXPORTS = "exports.bin"
_MASKS = 8


def format_facts(filename: str, sha256: str, facts: WheelFacts) -> str:
    """Return the file of one wheel's facts, a library a line."""
    form = dump_contents(shortened(facts.contents))
    libraries = form.pop("libraries")
    head = {"filename": filename, "sha256": sha256, "date": facts.date, **form}
    lines = [json.dumps(head, separators=(",", ":"))[:-1] + ',"libraries":[']
    lines += [json.dumps(each, separators=(",", ":")) + "," for each in libraries]
    lines[-1] = lines[-1].rstrip(",")
    return "\n".join([*lines, "]}"]) + "\n"


class ShippedFacts:
    """The facts in a folder, each file read when its wheel is asked for. Safe in threads."""

    def __init__(self, directory: Path) -> None:
        """Take the folder, which need not be there."""
        self._directory = directory

    @cached_property
    def _names(self) -> frozenset[str]:
        try:
            return frozenset(path.name for path in self._directory.iterdir())
        except OSError:
            return frozenset()

    def find(self, file: ListedFile) -> WheelFacts | None:
        """Return the facts of a wheel if a file has them for the one hash that its index claims.

        Raises `DataFileError` for a file that is broken.
        """
        name = f"{file.filename}.json"
        if name not in self._names:
            return None
        path = self._directory / name
        try:
            form = json.loads(path.read_bytes())
            if (form["sha256"],) != file.sha256:
                return None
            contents, date = load_contents(form), str(form["date"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError, WheelError) as error:
            raise DataFileError([f"expected the facts of a wheel: {error}"], where=name) from error
        return WheelFacts(filename=file.filename, contents=contents, origin="shipped", date=date)

    @cached_property
    def tables(self) -> tuple[ExportTable, ...]:
        """What releases export, newest first; raises `DataFileError` for a file that is broken."""
        if _EXPORTS not in self._names:
            return ()
        try:
            return _parse_exports((self._directory / _EXPORTS).read_bytes())
        except (OSError, ValueError, LookupError, TypeError, RecursionError, WheelError) as error:
            raise DataFileError([f"expected tables of exports: {error}"], where=_EXPORTS) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Exports:
    """The digests of what a release exports, and where that was read; ``partial``: see `ExportTable`."""

    source: str
    digests: frozenset[bytes]
    partial: bool = False


def format_exports(project: str, releases: Mapping[str, Exports]) -> bytes:
    """Return the file of several releases' exports, eight at most.

    A line of JSON, then each digest once, sorted, then for each a byte that says in which releases it is.
    """
    names = sorted(releases, key=Version)
    every = sorted(frozenset[bytes]().union(*(each.digests for each in releases.values())))
    head = {
        "project": project,
        "releases": [
            {"release": name, "source": releases[name].source, "partial": releases[name].partial}
            for name in names
        ],
        "digests": len(every),
    }
    masks = bytes(
        sum(1 << bit for bit, name in enumerate(names) if digest in releases[name].digests)
        for digest in every
    )
    return json.dumps(head).encode() + b"\n" + b"".join(every) + masks


def _parse_exports(data: bytes) -> tuple[ExportTable, ...]:
    line, _, rest = data.partition(b"\n")
    head: Any = json.loads(line)
    count, releases = head["digests"], head["releases"]
    if len(rest) != count * (DIGEST + 1) or len(releases) > _MASKS:
        raise ValueError(f"expected {count} digests with their masks")
    digests, masks = rest[: count * DIGEST], rest[count * DIGEST :]
    tables = [
        ExportTable(
            project=str(head["project"]),
            release=parse_version(each["release"]),
            source=str(each["source"]),
            digests=digests,
            masks=masks,
            bit=1 << bit,
            partial=each["partial"] is True,
        )
        for bit, each in enumerate(releases)
    ]
    return tuple(reversed(tables))


class KeptFacts:
    """Facts in the cache of a client. Safe in threads; a file that cannot be used is as none."""

    def __init__(self, client: Client) -> None:
        """Take the client whose cache it is."""
        self._client = client

    def find(self, file: ListedFile) -> WheelFacts | str | None:
        """Return what was read of a wheel before, or why it cannot be read."""
        key = _key(file)
        kept = None if key is None else self._client.load_kept(key)
        if kept is None:
            return None
        try:
            unpacker = zlib.decompressobj()
            form = json.loads(unpacker.decompress(kept, _KEPT_LIMIT))
            if "failure" in form:
                return str(form["failure"])
            return WheelFacts(filename=file.filename, contents=load_contents(form), origin="kept")
        except (zlib.error, ValueError, TypeError, RecursionError, WheelError):
            return None

    def keep(self, file: ListedFile, facts: WheelFacts) -> None:
        """Keep what was read of a wheel, if an index claims one hash for it."""
        self._store(file, dump_contents(facts.contents))

    def keep_failure(self, file: ListedFile, reason: str) -> None:
        """Keep for a week why the bytes of a wheel are no wheel's."""
        self._store(file, {"failure": reason}, seconds=_FAILURE_SECONDS)

    def _store(self, file: ListedFile, form: dict[str, Any], *, seconds: float = _FOR_EVER) -> None:
        key = _key(file)
        if key is not None:
            data = zlib.compress(json.dumps(form, separators=(",", ":")).encode())
            self._client.keep(key, data, seconds=seconds)


def open_book(directory: Path, client: Client) -> FactBook:
    """Return a book that knows the facts of a folder, and those kept in a client's cache."""
    shipped, kept = ShippedFacts(directory), KeptFacts(client)

    def find(file: ListedFile) -> WheelFacts | None:
        found = [each for each in (shipped.find(file), kept.find(file)) if each is not None]
        facts = [each for each in found if isinstance(each, WheelFacts)]
        # Of two as deep, the first: those that come along.
        return max(facts, key=lambda each: each.tier, default=None)

    return FactBook(tables=shipped.tables, find=find)


def _key(file: ListedFile) -> str | None:
    if len(file.sha256) != 1:
        return None
    return f"facts of sha256 {file.sha256[0]} by reader {READER_VERSION}"
