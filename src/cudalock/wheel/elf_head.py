"""The symbol and string tables at the head of a shared library, found before anything points there.

Linkers put ``.dynsym`` and ``.dynstr`` first in the file, and ``.dynamic``, which says where they are,
behind the code (gABI, chapters 4 and 5). Inflating a packed library as far as its tables costs
64 KiB where all of it costs gigabytes. So they are recognised: a first symbol of zeros, a run of
possible symbols, and a string table that their names fit. ``patchelf`` moves ``.dynstr`` to the end of the
file and fills its old place with ``X``; then there are symbols here and no names, which is said.
"""

import re
import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["NAME_TABLE_LIMIT", "SYMBOL", "SYMBOLS_LIMIT", "HeadTables", "is_possible_symbol"]

# Elf64_Sym: st_name, st_info, st_other, st_shndx, st_value, st_size.
SYMBOL = struct.Struct("<IBBHQQ")
SYMBOLS_LIMIT = 2_000_000
NAME_TABLE_LIMIT = 128 * 1024 * 1024
# The hash table of the largest library comes before its symbols and has a few megabytes.
_SEEK_LIMIT = 16 * 1024 * 1024
_KEPT_WITHOUT_TABLES = 256 * 1024
_FIRST_LOOK = 4096
_NULL_SYMBOL = bytes(SYMBOL.size)
# One byte is looked for at a time: a pattern that repeats would walk a long run of zeros from each of them.
_NOT_ZERO = re.compile(rb"[^\0]")
# st_info is binding * 16 + type: local, global, weak, unique; none to file, TLS, ifunc.
_INFOS = frozenset(16 * bind + kind for bind in (0, 1, 2, 10) for kind in (0, 1, 2, 3, 4, 6, 10))
# Other linkers put version and hash tables between the symbols and their names.
_BETWEEN = 64 * 1024
_BETWEEN_EACH = 16
_SAMPLES = 16
# With fewer than these, strings anywhere but beside the symbols would be a guess.
_FEW_SAMPLES = 4
_STRING_START = re.compile(rb"\0(?=[!-~\x80-\xff]{2})")
_STARTS_LIMIT = 20_000

_Step: TypeAlias = Literal["seek", "count", "beside", "beyond", "close", "done"]


def is_possible_symbol(name: int, info: int, other: int, section: int, value: int) -> bool:
    """Whether these fields can be those of a symbol after the first."""
    if info not in _INFOS or other & 0xFC or name >= NAME_TABLE_LIMIT:
        return False
    # All zeros is padding, or the first symbol of a second table.
    return bool(section or (info and not value))


@dataclass(slots=True)
class HeadTables:
    """Looks for the tables in the growing head of a file; results do not depend on how it grew.

    ``symbols`` and ``strings`` are places in the file once ``done``, None where they were not found;
    ``keep`` is then how much of the head they need. ``steps`` counts the looks taken; a byte is looked
    at a bounded number of times.
    """

    symbols: tuple[int, int] | None = None
    strings: tuple[int, int] | None = None
    keep: int = 0
    steps: int = 0
    _step: _Step = "seek"
    _need: int = _FIRST_LOOK
    _from: int = 0
    # Of the run of symbols that is looked at: its place, its length, and names that it begins with.
    _start: int = 0
    _count: int = 0
    _names: tuple[int, ...] = ()
    _strings_at: int = 0

    @property
    def done(self) -> bool:
        """Whether more of the file would change nothing."""
        return self._step == "done"

    def advance(self, head: bytearray, *, last: bool) -> None:
        """Look at the head, which is all of the file if ``last``."""
        while not self.done and (last or len(head) >= self._need):
            self.steps += 1
            before = (self._step, self._from)
            match self._step:
                case "seek":
                    self._seek(head)
                case "count":
                    self._count_on(head)
                case "beside":
                    self._look_beside(head)
                case "beyond":
                    self._look_beyond(head)
                case _:
                    self._close(head)
            if last and (self._step, self._from) == before:
                self._end(len(head))

    def _seek(self, head: bytearray) -> None:
        zeros = head.find(_NULL_SYMBOL, self._from, _SEEK_LIMIT)
        match = None if zeros < 0 else _NOT_ZERO.search(head, zeros, _SEEK_LIMIT)
        if match is None:
            if len(head) >= _SEEK_LIMIT:
                self._end(_KEPT_WITHOUT_TABLES)
                return
            # A run of zeros at the end may go on, and only its last ones count.
            self._from = max(self._from, len(head) - SYMBOL.size)
            self._need = min(2 * len(head), _SEEK_LIMIT)
            return
        # The first symbol after the one of zeros may begin with zeros itself.
        first = match.start() & ~7
        if first - SYMBOL.size < zeros:
            self._from = match.start()
            return
        self._start, self._count = first - SYMBOL.size, 1
        self._step, self._from = "count", first

    def _count_on(self, head: bytearray) -> None:
        whole = (len(head) - self._from) // SYMBOL.size * SYMBOL.size
        for name, info, other, section, value, _ in SYMBOL.iter_unpack(
            memoryview(head)[self._from : self._from + whole]
        ):
            if not is_possible_symbol(name, info, other, section, value):
                self._end_of_run(head)
                return
            self._from += SYMBOL.size
            self._count += 1
            if self._count > SYMBOLS_LIMIT:
                self._end(_KEPT_WITHOUT_TABLES)
                return
        self._need = max(2 * len(head), self._from + SYMBOL.size)
        # At the end of the file this is the end of the table as well.
        if whole == 0:
            self._end_of_run(head)

    def _end_of_run(self, head: bytearray) -> None:
        if self._count < 2:
            self._seek_on()
        else:
            self._sample(head, _SAMPLES)

    def _seek_on(self) -> None:
        """Look for another table: its zeros may begin inside what was taken for the last symbol."""
        self._from -= SYMBOL.size - 1
        self._step, self._need = "seek", self._from

    def _sample(self, head: bytearray, count: int) -> None:
        """Go on with the names of the first symbols: a version table behind the last looks like more."""
        last = min(self._count, 1 + count)
        places = (self._start + SYMBOL.size * number for number in range(1, last))
        self._names = tuple(name for at in places if (name := SYMBOL.unpack_from(head, at)[0]))
        most = max(self._names, default=0)
        if not most or most > _BETWEEN + 4096 * self._count:
            # Names are at most a few kilobytes long: larger places are no names.
            self._fail(head)
        else:
            self._step, self._need = "beside", self._from + most + 256

    def _fail(self, head: bytearray) -> None:
        """Try again with fewer symbols, for a table that is short; or look for another one."""
        if len(self._names) > _FEW_SAMPLES:
            self._sample(head, _FEW_SAMPLES)
        elif self._count < 4:
            self._seek_on()
        else:
            self._step = "beyond"
            self._end(self._from)

    def _look_beside(self, head: bytearray) -> None:
        end = self._from
        if _fits(head, end, self._names):
            self._found(end)
        elif head[end : end + 16] == b"X" * 16:
            self._end(end)
        elif len(self._names) < _FEW_SAMPLES:
            self._fail(head)
        else:
            self._step = "beyond"
            self._need = self._window + max(self._names) + 256

    def _look_beyond(self, head: bytearray) -> None:
        # Not behind the run: its end may be that of something else.
        begin = self._start + SYMBOL.size * min(self._count, 1 + len(self._names))
        found = _find_strings(head, begin, self._window, self._names)
        if found is None:
            self._fail(head)
        else:
            self._found(found)

    @property
    def _window(self) -> int:
        return self._from + _BETWEEN + _BETWEEN_EACH * self._count

    def _found(self, start: int) -> None:
        self.symbols = (self._start, min(self._from, start))
        self._strings_at = start
        self._step, self._from = "close", start + 1
        self._need = start + max(self._names) + 2

    def _close(self, head: bytearray) -> None:
        # Only the first string is empty. Zeros in the midst are what is left of a search path that an
        # installer shortened; behind the last string come small numbers, those of a version table.
        zeros = head.find(b"\0\0", self._from)
        match = None if zeros < 0 else _NOT_ZERO.search(head, zeros)
        if match is not None and 0x21 <= match[0][0] <= 0x7E:
            self._from = match.start()
        elif match is not None:
            self.strings = (self._strings_at, match.start())
            self._step, self.keep = "done", match.start()
        elif len(head) - self._strings_at > NAME_TABLE_LIMIT:
            self._step = "seek"
            self._end(_KEPT_WITHOUT_TABLES)
        else:
            self._from = max(self._from, len(head) - 1 if zeros < 0 else zeros)
            self._need = 2 * len(head)

    def _end(self, keep: int) -> None:
        """End with what is known: the file ends here, or what it has is not worth more."""
        match self._step:
            case "close":
                self.strings = (self._strings_at, keep)
            case "beside" | "beyond":
                self.symbols = (self._start, self._from)
            case _:
                self.symbols = None
        self._step, self.keep = "done", keep


def _fits(head: bytearray, start: int, names: tuple[int, ...]) -> bool:
    """Whether a string table at ``start`` has a name wherever one is wanted."""
    if start + max(names) >= len(head) or head[start] != 0:
        return False
    # A linker lets a name that ends another one share its bytes, so not all begin after a zero.
    begun = sum(head[start + name - 1] == 0 for name in names)
    return 4 * begun >= 3 * len(names) and all(head[start + name] > 0x20 for name in names)


def _find_strings(head: bytearray, end: int, window: int, names: tuple[int, ...]) -> int | None:
    for number, match in enumerate(_STRING_START.finditer(head, end, window)):
        if number > _STARTS_LIMIT:
            break
        if _fits(head, match.start(), names):
            return match.start()
    return None
