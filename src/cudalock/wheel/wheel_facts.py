"""What was read of wheels' bytes, as the resolver is given it: facts by wheel, and what torch exports.

Facts belong to the sha256 that an index claims for a file, and never change. Wheels of which an index
claims no hash, or several, are known by their address, for one question only.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from cudalock.wheel.listing import ListedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.wheel.contents import WheelContents
    from cudalock.wheel.reading import Depth

__all__ = ["DEPTHS", "ExportTable", "FactBook", "Tier", "WheelFacts", "fact_key", "symbol_digest"]

Tier = Literal["T1", "T2", "T3", "T4"]
DEPTHS: "dict[Tier, Depth]" = {"T1": "names", "T2": "needs", "T3": "presence", "T4": "full"}
_TIERS: "dict[Depth, Tier]" = {depth: tier for tier, depth in DEPTHS.items()}

DIGEST = 5
"""Bytes of a symbol's digest: two names of 150,000 share one with a chance of 1 in 7,000,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFacts:
    """What was read of one wheel. ``origin``: with cudalock, kept from an earlier run, or just now."""

    filename: str
    contents: "WheelContents"
    origin: Literal["shipped", "kept", "read"] = "read"
    date: str = ""

    @property
    def tier(self) -> Tier:
        """How deep it was read."""
        return _TIERS[self.contents.depth]


def symbol_digest(name: str) -> bytes:
    """Return what an export table holds of a name."""
    return hashlib.blake2b(name.encode("utf-8", "backslashreplace"), digest_size=DIGEST).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTable:
    """The symbols that a release of a project exports for extensions: ``digests``, sorted, end to end.

    ``name in table`` may be true of a name that is not there, once in millions, and is never false of
    one that is. Of a release whose libraries were not all read, ``partial``, it is false only of names that
    another release has in one of those that were.
    """

    project: str
    release: Version
    source: str
    digests: bytes
    masks: bytes = b""
    bit: int = 0
    partial: bool = False

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        digest = symbol_digest(name)
        place = bisect_left(_Digests(self.digests), digest)
        at = place * DIGEST
        if self.digests[at : at + DIGEST] != digest:
            return self.partial
        return not self.masks or bool(self.masks[place] & self.bit)


class _Digests:
    """Digests end to end, as a sequence to search in."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data) // DIGEST

    def __getitem__(self, place: int) -> bytes:
        return self._data[place * DIGEST : (place + 1) * DIGEST]


def fact_key(file: ListedFile) -> str:
    """Return what a wheel's facts are known by."""
    return file.sha256[0] if len(file.sha256) == 1 else file.url


class FactBook:
    """The facts of one question. Looking up may read a file and is safe in threads; `add` is not.

    ``find`` looks for facts that ship with cudalock or were kept, and is asked once a wheel.
    """

    def __init__(
        self,
        *,
        tables: Iterable[ExportTable] = (),
        find: Callable[[ListedFile], WheelFacts | None] = lambda _: None,
    ) -> None:
        """Begin with what was known before."""
        self.tables = tuple(tables)
        self._find = find
        self._facts: dict[str, WheelFacts | None] = {}
        self._added: dict[str, WheelFacts] = {}
        self._failures: dict[str, str] = {}

    def of(self, file: ListedFile) -> WheelFacts | None:
        """Return what is known of a wheel's bytes."""
        key = fact_key(file)
        if key not in self._facts:
            self._facts[key] = self._find(file)
        return self._facts[key]

    def read_now(self, file: ListedFile) -> WheelFacts | None:
        """Return what was added for a wheel in this question; nothing is looked up."""
        return self._added.get(fact_key(file))

    def add(self, file: ListedFile, facts: WheelFacts) -> None:
        """Take what was read of a wheel in place of what was known."""
        self._facts[fact_key(file)] = self._added[fact_key(file)] = facts
        self._failures.pop(fact_key(file), None)

    def add_failure(self, file: ListedFile, reason: str) -> None:
        """Remember why a wheel could not be read."""
        self._failures[fact_key(file)] = reason

    def failure(self, file: ListedFile) -> str | None:
        """Return why a wheel could not be read, if that was tried."""
        return self._failures.get(fact_key(file))
