"""Shared libraries for tests, without a compiler or a linker: 64-bit little-endian ELF files.

The layout is that of GNU ld: tables, read-only data, ``.dynamic``, section headers. Addresses of the
writable part differ from its places in the file, as they do in real ones.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Symbol", "make_library"]

_PAGE = 0x1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A dynamic symbol: undefined unless ``defined``."""

    name: str
    defined: bool = False
    bind: int = 1
    kind: int = 2
    other: int = 0


def make_library(
    *,
    needed: Sequence[str] = (),
    soname: str | None = None,
    symbols: Sequence[Symbol] = (),
    strings: Sequence[str] = (),
    fatbin: bytes = b"",
    relocatable: bytes = b"",
    rodata: bytes = b"",
    data: bytes = b"",
    moved: Literal["", "end", "before-dynamic"] = "",
    between: bytes = b"",
    rpath_hole: int = 0,
    sections: bool = True,
    machine: int = 62,
    dynamic: bool = True,
    elf_type: int = 3,
    padding: int = 0,
) -> bytes:
    """Return a library.

    ``moved`` puts the string table elsewhere and fills its old place with ``X``, as patchelf does.
    ``between`` lies between symbols and strings, as other linkers do. ``strings`` are more strings in the
    table; ``rpath_hole`` zeros stand in the midst of it. ``padding`` zeros come before the tables.
    """
    table = bytearray(b"\0")
    places: dict[str, int] = {}
    wanted = [*(symbol.name for symbol in symbols), *strings]
    for number, name in enumerate([*wanted, *needed, *([soname] if soname else [])]):
        if number == len(wanted) and rpath_hole:
            table += bytes(rpath_hole)
        if name not in places:
            places[name] = len(table)
            table += name.encode() + b"\0"
    symbol_table = bytes(24) + b"".join(
        struct.pack(
            "<IBBHQQ",
            *(places[symbol.name], symbol.bind << 4 | symbol.kind, symbol.other),
            *((12, 0x400, 8) if symbol.defined else (0, 0, 0)),
        )
        for symbol in symbols
    )
    count = len(symbol_table) // 24
    # A hash table of one bucket.
    hashes = struct.pack(f"<II{1 + count}I", 1, count, 1, *range(count))
    image = bytearray(64 + 56 * 4 + padding)
    _align(image)
    hash_at = _put(image, hashes)
    _align(image)
    symbols_at = _put(image, symbol_table)
    image += between
    home = len(image)
    image += b"X" * len(table) if moved else table
    versions_at = _put(image, struct.pack(f"<{count}H", 0, *(2 + n % 3 for n in range(count - 1))))
    _align(image)
    image += rodata
    _align(image)
    image += relocatable
    _align(image)
    image += fatbin
    _align(image)
    read_only = len(image)
    strings_at = home
    if moved == "before-dynamic":
        # Far enough behind the head that nobody has kept it.
        image += bytes(_PAGE)
        strings_at = _put(image, bytes(table))
        image += bytes(2 * _PAGE)
        _align(image)
    dynamic_at = len(image)
    entries = [(1, places[name]) for name in needed]
    entries += [(14, places[soname])] if soname else []
    shift = _PAGE
    room = 16 * (len(entries) + 6) if dynamic else 0
    after = dynamic_at + room
    tail_at = after + len(data)
    if moved == "end":
        strings_at = tail_at
    strings_address = strings_at if strings_at < read_only else strings_at + shift
    entries += [(4, hash_at), (5, strings_address), (6, symbols_at), (10, len(table)), (11, 24)]
    if dynamic:
        image += b"".join(struct.pack("<qQ", *pair) for pair in (*entries, (0, 0)))
    image += data
    if moved == "end":
        image += table
    end = len(image)
    loads = [(4, 0, 0, read_only), (6, read_only, read_only + shift, tail_at - read_only)]
    if moved == "end":
        loads.append((6, tail_at, tail_at + shift, end - tail_at))
    headers = [struct.pack("<IIQQQQQQ", 1, f, o, a, a, n, n, _PAGE) for f, o, a, n in loads]
    if dynamic:
        place = dynamic_at + shift
        headers.append(struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, place, place, room, room, 8))
    sections_at = 0
    listed = [
        (0, 0, 0, 0, 0),
        (5, hash_at, len(hashes), 2, 4),
        (11, symbols_at, len(symbol_table), 3, 24),
        (3, strings_at, len(table), 0, 0),
        (0x6FFFFFFF, versions_at, 2 * count, 2, 2),
        *([(6, dynamic_at, room, 3, 16)] if dynamic else []),
    ]
    if sections:
        _align(image)
        sections_at = len(image)
        for kind, offset, length, link, size in listed:
            image += struct.pack(
                "<IIQQQQIIQQ", 0, kind, 2, offset, offset, length, link, 0, 8, size
            )
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    image[:64] = ident + struct.pack(
        "<HHIQQQIHHHHHH",
        *(elf_type, machine, 1, 0, 64, sections_at, 0, 64, 56, len(headers)),
        *(64, len(listed) if sections else 0, 0),
    )
    image[64 : 64 + 56 * len(headers)] = b"".join(headers)
    return bytes(image)


def _align(image: bytearray) -> None:
    image += bytes(-len(image) % 8)


def _put(image: bytearray, data: bytes) -> int:
    at = len(image)
    image += data
    return at
