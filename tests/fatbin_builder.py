"""Fat binaries and cubins for tests, without a compiler: headers as nvcc writes them, payloads of junk.

The numbers are those measured on what nvcc 13.0 writes; nothing here is taken from a file of NVIDIA's.
"""

import struct
from typing import Literal

__all__ = ["container", "cubin_file", "entry", "segment_record"]

_KINDS = {"ptx": 1, "cubin": 2, "lto": 8}
_SUFFIXES = {"": 0, "a": 0x100000, "f": 0x200000}
# LZ4 blocks and Zstandard frames.
_PACKED = {"": 0, "lz4": 0x2000, "zstd": 0x8000}


def entry(
    kind: str,
    number: int,
    suffix: str = "",
    *,
    version: tuple[int, int] | None = None,
    payload: bytes = b"\x00code\xff\xfe\xfd" * 3,
    header: int = 64,
    packed: Literal["", "lz4", "zstd"] = "",
    kind_number: int | None = None,
    flags: int = 0,
) -> bytes:
    """Return an entry: ``kind`` is ptx, cubin or lto; a packed one has junk for a payload.

    ``version`` is the format of a cubin, which is 1.8 unless told, or the ISA of PTX, 9.0.
    """
    major, minor = version or ((9, 0) if kind == "ptx" else (1, 8))
    payload += bytes(-len(payload) % 8)
    bits = 0x11 | _SUFFIXES[suffix] | _PACKED[packed] | flags
    if kind == "cubin" and number >= 100:
        bits |= 0x1000000
    fields = struct.pack(
        "<HHIQIIHHIIIQQQ",
        *(_KINDS[kind] if kind_number is None else kind_number, 0x0101, header, len(payload)),
        *(len(payload) - 3 if packed else 0, 0, minor, major, number, 0, 0, bits, 0),
        4 * len(payload) if packed else 0,
    )
    return fields.ljust(header, b"\0") + payload


def container(*entries: bytes, body: int | None = None, version: int = 1) -> bytes:
    """Return a container; ``body`` is the length it declares, if not the true one."""
    data = b"".join(entries)
    head = struct.pack("<IHHQ", 0xBA55ED50, version, 16, len(data) if body is None else body)
    return head + data


def segment_record(address: int) -> bytes:
    """Return what ``.nvFatBinSegment`` holds for a container: no container, though some call it one."""
    return struct.pack("<IIQQ", 0x466243B1, 1, address, 0)


def cubin_file(
    number: int,
    suffix: str = "",
    *,
    abi: Literal["old", "cuda12", "cuda13"] = "cuda13",
    note: str = "",
    elf_type: int = 2,
) -> bytes:
    """Return the head of a cubin and a little more; CUDA 13 writes no suffix into it."""
    if abi == "old":
        ident, version = 0x33, 7
        flags = number | number << 16 | 0x500 | (0x800 if suffix == "a" else 0)
    else:
        ident, version = 0x41, 8
        flags = number << 8 | 0x6000002 | (0x8 if abi == "cuda12" and suffix == "a" else 0)
    head = b"\x7fELF\x02\x01\x01" + bytes([ident, version]) + bytes(7)
    head += struct.pack("<HHIQQQIHHHHHH", elf_type, 190, 1, 0, 0, 64, flags, 64, 0, 0, 64, 0, 0)
    return head + note.encode().ljust(128, b"\0")
