"""Shared libraries in the ELF format, read as their bytes go by (gABI 4.1, chapters 4 and 5).

Read are the program headers, ``.dynamic``, and the names and symbols it points to: what a library
needs, what it is called, and what it wants of torch. Everything is bounded, nothing is mapped or run.
A library of which only the head was fed still tells the names in its string table (`elf_head`): they
hold all it needs, and seldom more. 32-bit and big-endian files are recognised and not read.
"""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cudalock.wheel.elf_dynamic import DynamicTable, Span, parse_dynamic, read_symbols, string_at
from cudalock.wheel.elf_head import HeadTables
from cudalock.wheel.torch_symbols import TorchSymbols

__all__ = ["CUBIN_MACHINE", "ElfFacts", "ElfReader", "LoadSegment"]

CUBIN_MACHINE = 190
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_EXECUTABLE, _SHARED = 2, 3
_LOAD, _DYNAMIC = 1, 2
_WRITABLE = 2
_DYNAMIC_SYMBOLS = 11
_SEGMENTS_LIMIT = 512
_DYNAMIC_LIMIT = 1024 * 1024
_FAR = 1024 * 1024
_SONAME = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,254}\.so(?:\.[A-Za-z0-9_.+-]{1,64})?\Z")
_SONAMES_LIMIT = 20_000

ElfKind: TypeAlias = Literal["library", "foreign", "damaged", "cut"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSegment:
    """A part of the file that is mapped: from byte ``start`` to ``end``, at ``address``."""

    start: int
    end: int
    address: int
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfFacts:
    """What a library says of itself.

    ``kind`` is ``foreign`` for a 32-bit or big-endian file or one that nothing loads, ``damaged`` for one whose headers cannot be
    true and ``cut`` for one that ends inside them: nothing else is known of those.
    ``needed`` is None when it could not be told, which is not the same as needing nothing; without
    ``needed_exact`` it is the shared-library names of the string table at the head, among which are
    its needs, its own name and, rarely, one more. ``torch`` is None when no names were seen.
    """

    kind: ElfKind
    machine: int = 0
    needed: frozenset[str] | None = None
    needed_exact: bool = False
    soname: str | None = None
    torch: TorchSymbols | None = None
    anomalies: tuple[str, ...] = ()


@dataclass(slots=True)
class ElfReader:
    """Reads one file of ``size`` bytes, fed in order and in pieces of any length.

    ``segments`` is known once the headers were fed, and stays None for a file that is no 64-bit
    little-endian ELF. ``head_done``: feeding more tells nothing before ``.dynamic`` comes. ``whole``: feeding more tells nothing.
    When the end was fed and ``missing`` is set, a table lay before what pointed to it: `rewind`
    and feed the file again. Memory: what the tables need, at most a few hundred megabytes.
    """

    size: int
    segments: tuple[LoadSegment, ...] | None = None
    _kind: ElfKind = "cut"
    _machine: int = 0
    _type: int = 0
    _at: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tables: HeadTables = field(default_factory=HeadTables)
    _frozen: bool = False
    _headers_read: bool = False
    _again: bool = False
    _dynamic: Span | None = None
    _table: DynamicTable | None = None
    _strings: Span | None = None
    _symbols: Span | None = None
    _sections: Span | None = None
    _anomalies: list[str] = field(default_factory=list)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        start = self._at
        self._at += len(chunk)
        if not self._frozen:
            self._head += chunk
        if not self._headers_read:
            self._read_headers()
            self._fill(0, self._head)
        else:
            self._fill(start, chunk)
        if self._table is None and self._dynamic is not None and self._dynamic.whole:
            self._point(self._dynamic)
            self._fill(0, self._head)
            self._fill(start, chunk)
        self._look_at_head(last=self._at >= self.size)

    @property
    def head_done(self) -> bool:
        """Whether the head has told what it can."""
        return self._frozen

    @property
    def whole(self) -> bool:
        """Whether every table was seen, or none can be."""
        if self._headers_read and self.segments is None:
            return True
        spans = (self._dynamic, self._strings, self._symbols, self._sections)
        return self._headers_read and all(span is None or span.whole for span in spans)

    @property
    def missing(self) -> bool:
        """Whether feeding the file once more would tell more."""
        spans = (self._strings, self._symbols)
        return not self._again and any(span is not None and not span.whole for span in spans)

    def rewind(self) -> None:
        """Begin at the first byte again, for the tables that are missing."""
        self._look_at_head(last=True)
        self._at = 0
        self._again = True
        for span in (self._strings, self._symbols):
            if span is not None:
                span.restart()

    def finish(self) -> ElfFacts:
        """Tell what was learnt; more may be fed afterwards, and told again."""
        self._look_at_head(last=self._at >= self.size)
        if self.segments is None:
            return ElfFacts(kind=self._kind, machine=self._machine, anomalies=self._noted())
        if self._dynamic is None and self._kind == "library" and not self._anomalies:
            # Statically linked: there is no one to ask for other libraries.
            return self._facts(frozenset(), exact=True)
        strings = self._strings
        if self._table is None or strings is None or not strings.whole:
            return self._head_facts()
        return self._exact_facts(self._table, strings.data)

    def _read_headers(self) -> None:
        if len(self._head) < min(_HEADER.size, self.size) or len(self._head) < 16:
            self._headers_read = self._at >= self.size
            return
        ident = bytes(self._head[:16])
        if ident[:4] != b"\x7fELF" or ident[4:7] != b"\x02\x01\x01":
            foreign = ident[:4] == b"\x7fELF" and ident[4] in (1, 2) and ident[5] in (1, 2)
            self._stop("foreign" if foreign else "damaged", "")
            return
        if len(self._head) < _HEADER.size:
            self._headers_read = True
            return
        fields = _HEADER.unpack_from(self._head)
        self._type = fields[1]
        if self._type not in (_EXECUTABLE, _SHARED):
            # An object file or a core dump: nothing loads it.
            self._stop("foreign", "")
            return
        self._machine, place, sections_at = fields[2], fields[5], fields[6]
        entry, count, section_entry, sections = fields[9], fields[10], fields[11], fields[12]
        if count > _SEGMENTS_LIMIT or (count and entry != _PROGRAM_HEADER.size) or place > _FAR:
            self._stop("damaged", f"{count} program headers of {entry} bytes at {place}")
            return
        end = place + count * _PROGRAM_HEADER.size
        if len(self._head) < end:
            if self._at >= self.size:
                self._stop("cut", "program headers beyond the end of the file")
            return
        self._headers_read, self._kind = True, "library"
        self._read_segments(bytes(self._head[place:end]))
        if not self.segments:
            self.segments = self._dynamic = None
            self._stop("damaged", "no part of it is mapped")
            return
        end = sections_at + sections * _SECTION_HEADER.size
        if sections and section_entry == _SECTION_HEADER.size and end <= self.size:
            self._sections = Span(sections_at, end)

    def _read_segments(self, table: bytes) -> None:
        segments: list[LoadSegment] = []
        for kind, flags, start, address, _, length, _, _ in _PROGRAM_HEADER.iter_unpack(table):
            if kind not in (_LOAD, _DYNAMIC) or not length:
                continue
            if start + length > self.size:
                self._note("a segment that ends beyond the file")
                if start >= self.size:
                    continue
            if kind == _LOAD:
                end = min(start + length, self.size)
                writable = bool(flags & _WRITABLE)
                segments.append(
                    LoadSegment(start=start, end=end, address=address, writable=writable)
                )
            elif self._dynamic is not None or length > _DYNAMIC_LIMIT or start + length > self.size:
                self._note("a dynamic section that cannot be read")
            else:
                self._dynamic = Span(start, start + length)
        if self._dynamic is None and self._type == _SHARED:
            self._note("a shared library without a dynamic section")
        self.segments = tuple(segments)

    def _stop(self, kind: ElfKind, anomaly: str) -> None:
        self._headers_read = self._frozen = True
        self._kind = kind
        self._head.clear()
        if anomaly:
            self._note(anomaly)

    def _fill(self, start: int, data: bytes | bytearray) -> None:
        for span in (self._dynamic, self._strings, self._symbols, self._sections):
            if span is not None and not span.whole:
                span.take(start, data)

    def _point(self, dynamic: Span) -> None:
        """Note where the tables are that ``.dynamic`` points to."""
        table = parse_dynamic(bytes(dynamic.data), self.segments or (), self.size)
        self._table = table
        for anomaly in table.anomalies:
            self._note(anomaly)
        if table.strings is not None:
            self._strings = Span(*table.strings)
        if table.symbols is not None:
            self._symbols = Span(*table.symbols)

    def _look_at_head(self, *, last: bool) -> None:
        if self._frozen or not self._headers_read:
            return
        if self.segments is None:
            self._frozen = True
            return
        self._tables.advance(self._head, last=last)
        if self._tables.done:
            self._frozen = True
            del self._head[self._tables.keep :]

    def _head_facts(self) -> ElfFacts:
        place, symbols = self._tables.strings, self._tables.symbols
        if not self._frozen or place is None or symbols is None:
            return self._facts(None, exact=False)
        head = memoryview(self._head)
        strings = bytes(head[place[0] : place[1]])
        names = [name for name in strings.split(b"\0") if _SONAME.match(name)]
        if len(names) > _SONAMES_LIMIT:
            self._note(f"{len(names)} names of libraries")
            return self._facts(None, exact=False)
        # The names begin where the symbols end: no symbol is left out between them.
        torch, fault = read_symbols(
            head[symbols[0] : symbols[1]], strings, exact=symbols[1] == place[0]
        )
        self._note(fault)
        return self._facts(frozenset(_texts(names)), exact=False, torch=torch)

    def _exact_facts(self, table: DynamicTable, strings: bytearray) -> ElfFacts:
        exact = not self._anomalies
        names: list[bytes] = []
        for offset in table.needed:
            name = string_at(strings, offset)
            if name:
                names.append(name)
            else:
                exact = False
                self._note("a needed library without a name")
        soname = None if table.soname is None else string_at(strings, table.soname)
        return self._facts(
            frozenset(_texts(names)),
            exact=exact,
            soname=next(iter(_texts([soname])), None) if soname else None,
            torch=self._exact_symbols(strings),
        )

    def _exact_symbols(self, strings: bytearray) -> TorchSymbols | None:
        span = self._symbols
        if span is None:
            return None
        counted = self._section_of_symbols(span.start)
        whole = counted is not None and counted <= len(span.data)
        torch, fault = read_symbols(memoryview(span.data)[:counted], strings, exact=whole)
        self._note(fault)
        return torch

    def _section_of_symbols(self, start: int) -> int | None:
        """Return the length of the symbol table as the section headers tell it."""
        if self._sections is None or not self._sections.whole:
            return None
        found = {
            length
            for _, kind, _, _, offset, length, *_ in _SECTION_HEADER.iter_unpack(
                self._sections.data
            )
            if kind == _DYNAMIC_SYMBOLS and offset == start
        }
        return found.pop() if len(found) == 1 else None

    def _facts(
        self,
        needed: frozenset[str] | None,
        *,
        exact: bool,
        soname: str | None = None,
        torch: TorchSymbols | None = None,
    ) -> ElfFacts:
        return ElfFacts(
            kind=self._kind,
            machine=self._machine,
            needed=needed,
            needed_exact=exact,
            soname=soname,
            torch=torch,
            anomalies=self._noted(),
        )

    def _note(self, anomaly: str) -> None:
        if anomaly and anomaly not in self._anomalies:
            self._anomalies.append(anomaly)

    def _noted(self) -> tuple[str, ...]:
        return tuple(self._anomalies)


def _texts(names: Iterable[bytes]) -> list[str]:
    return [name.decode("utf-8", "backslashreplace") for name in names]
