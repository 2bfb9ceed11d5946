"""What ``.dynamic`` says, and the names and symbols it points to (gABI, chapter 5).

Addresses are those of the mapped library; the program headers tell the place in the file. Every
number here is untrusted: a table that lies nowhere, or in two places, is an anomaly and not read.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cudalock.wheel.elf_head import (
    NAME_TABLE_LIMIT,
    SYMBOL,
    SYMBOLS_LIMIT,
    is_possible_symbol,
)
from cudalock.wheel.torch_symbols import TorchSymbols, is_torch_symbol

__all__ = ["DynamicTable", "Span", "parse_dynamic", "read_symbols", "string_at"]

_ENTRY = struct.Struct("<qQ")
_NULL, _NEEDED, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME = 0, 1, 5, 6, 10, 11, 14
# Tables of which one that follows the symbols ends them: hash, relocations, versions and the like.
_TABLES = frozenset({
    4, 5, 7, 17, 23, 25, 26, 32, 36,
    0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE,
})  # fmt: skip
_NEEDED_LIMIT = 4096
_NAME_LIMIT = 8192
# Names that overlap each other must not make reading them quadratic.
_NAMES_BUDGET = NAME_TABLE_LIMIT
_UNDEFINED = 0
_LOCAL, _GLOBAL, _WEAK, _UNIQUE = 0, 1, 2, 10
# st_other, lower two bits: default and protected symbols are seen by other libraries.
_SEEN = frozenset({0, 3})


class _Mapped(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def address(self) -> int: ...


@dataclass(slots=True)
class Span:
    """A part of a file that is collected as its bytes go by, from ``start`` to before ``end``."""

    start: int
    end: int
    data: bytearray = field(default_factory=bytearray)

    @property
    def whole(self) -> bool:
        """Whether all of it is here."""
        return len(self.data) == self.end - self.start

    def take(self, at: int, chunk: bytes | bytearray) -> None:
        """Take from the bytes at ``at`` what comes next; a part whose beginning was missed is not."""
        here = self.start + len(self.data)
        if at <= here < at + len(chunk):
            self.data += memoryview(chunk)[here - at : self.end - at]

    def restart(self) -> None:
        """Forget a part that is not whole."""
        if not self.whole:
            self.data.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicTable:
    """``needed`` and ``soname`` are places in the string table; ``strings`` and ``symbols`` in the file."""

    needed: tuple[int, ...] = ()
    soname: int | None = None
    strings: tuple[int, int] | None = None
    symbols: tuple[int, int] | None = None
    anomalies: tuple[str, ...] = ()


def parse_dynamic(data: bytes, segments: Sequence[_Mapped], size: int) -> DynamicTable:
    """Read the entries of ``.dynamic`` up to the empty one. Never raises."""
    needed: list[int] = []
    found: dict[int, int] = {}
    tables: set[int] = set()
    anomalies: list[str] = []
    for tag, value in _ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]):
        if tag == _NULL:
            break
        if tag == _NEEDED:
            needed.append(value)
        elif tag in (_STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME) and (
            found.setdefault(tag, value) != value
        ):
            anomalies.append("two values of one dynamic entry")
        if tag in _TABLES:
            tables.add(value)
    else:
        anomalies.append("a dynamic section without an end")
    if len(needed) > _NEEDED_LIMIT:
        anomalies.append(f"{len(needed)} needed libraries")
        del needed[_NEEDED_LIMIT:]
    strings = _strings(found, segments, size)
    if strings is None and (needed or _STRTAB in found):
        anomalies.append("a string table that is nowhere in the file")
    symbols = None
    if found.get(_SYMENT, SYMBOL.size) == SYMBOL.size and _SYMTAB in found:
        symbols = _symbols(found[_SYMTAB], tables, segments)
    return DynamicTable(
        needed=tuple(needed),
        soname=found.get(_SONAME),
        strings=strings,
        symbols=symbols,
        anomalies=tuple(dict.fromkeys(anomalies)),
    )


def string_at(strings: bytes | bytearray, offset: int) -> bytes:
    """Return the string at a place of a table, empty when there is none of sane length."""
    end = strings.find(b"\0", offset, offset + _NAME_LIMIT)
    return bytes(strings[offset:end]) if end >= 0 else b""


def read_symbols(
    data: bytes | bytearray | memoryview,
    strings: bytes | bytearray,
    *,
    exact: bool = False,
) -> tuple[TorchSymbols, str]:
    """Sort the symbols with names of torch into wanted and offered; the text tells what was wrong.

    ``data`` has at most 2,000,000 symbols and begins with the symbol of zeros. Without ``exact`` it may be longer than the table, and
    what cannot be a symbol ends it.
    """
    undefined: set[bytes] = set()
    exported: set[bytes] = set()
    budget = _NAMES_BUDGET
    fault = ""
    # Tables may have a hundred megabytes, so they are not copied.
    whole = memoryview(data)[SYMBOL.size : len(data) // SYMBOL.size * SYMBOL.size]
    for place, info, other, section, value, _ in SYMBOL.iter_unpack(whole):
        if not exact and not is_possible_symbol(place, info, other, section, value):
            break
        # Every name of torch begins with one of these; most names of a library do not get further.
        initial = strings[place : place + 1]
        if initial not in (b"_", b"t", b"a"):
            exact = exact and bool(initial)
            continue
        bind = info >> 4
        wanted = section == _UNDEFINED and bind == _GLOBAL
        offered = section != _UNDEFINED and bind in (_GLOBAL, _WEAK, _UNIQUE) and other & 3 in _SEEN
        if not wanted and not offered:
            continue
        name = string_at(strings, place)
        budget -= len(name) or _NAME_LIMIT
        if budget < 0:
            fault = "symbol names that overlap without end"
            break
        if is_torch_symbol(name):
            (undefined if wanted else exported).add(name)
    return TorchSymbols(
        undefined=frozenset(name.decode("utf-8", "backslashreplace") for name in undefined),
        exported=frozenset(name.decode("utf-8", "backslashreplace") for name in exported),
        exact=exact and not fault,
    ), fault


def _strings(
    found: dict[int, int], segments: Sequence[_Mapped], size: int
) -> tuple[int, int] | None:
    length = found.get(_STRSZ, 0)
    start = _place(found.get(_STRTAB, -1), segments)
    if start is None or not 0 < length <= NAME_TABLE_LIMIT or start + length > size:
        return None
    return start, start + length


def _symbols(address: int, tables: set[int], segments: Sequence[_Mapped]) -> tuple[int, int] | None:
    start = _place(address, segments)
    if start is None:
        return None
    places = {_place(other, segments) for other in tables}
    ends = {segment.end for segment in segments if segment.start <= start < segment.end}
    end = min(place for place in places | ends if place is not None and place > start)
    return start, min(end, start + SYMBOL.size * SYMBOLS_LIMIT)


def _place(address: int, segments: Sequence[_Mapped]) -> int | None:
    """Return where in the file an address is; None for one that is nowhere, or in two places."""
    places = {
        segment.start + address - segment.address
        for segment in segments
        if segment.address <= address < segment.address + segment.end - segment.start
    }
    return places.pop() if len(places) == 1 else None
