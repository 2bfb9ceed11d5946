"""The central directory of a zip archive, read strictly (APPNOTE.TXT 6.3.10, sections 4.3 and 4.5).

Written for archives that lie: one central directory that ends where its end record begins, nothing
before or after, no name twice, local headers that agree. The standard library looks past junk; other
readers differ, and what two readers read differently is how one is fooled (GHSA-8qf3-x8v5-2pj8).
Nothing is extracted here: names, lengths and checksums only.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from cudalock.errors import WheelError
from cudalock.wheel.names import format_quoted
from cudalock.wheel.range_source import RangeSource

__all__ = [
    "DIRECTORY_LIMIT",
    "DIRECTORY_TAIL",
    "LOCAL_HEADER_SIZE",
    "DirectoryPlace",
    "ZipDirectory",
    "ZipMember",
    "check_packing",
    "local_data_start",
    "locate_directory",
    "parse_members",
    "read_directory",
]

DIRECTORY_LIMIT = 32 * 1024 * 1024
_ENTRIES_LIMIT = 200_000
# The longest comment there can be, the end record, its zip64 form and the locator of that.
DIRECTORY_TAIL = 65535 + 22 + 56 + 20

_END = struct.Struct("<4sHHHHIIH")
_END64_LOCATOR = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
LOCAL_HEADER_SIZE = _LOCAL.size
_DIST_INFO = re.compile(rb"([^/\\]+\.dist-info)/", re.IGNORECASE)
_UINT16 = 0xFFFF
_UINT32 = 0xFFFFFFFF
# General purpose bits (APPNOTE 4.4.4): 0 encrypted, 6 strong encryption, 13 a masked directory.
_ENCRYPTED = 0x2041
_UTF8 = 0x800
_STREAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipMember:
    """What the directory says of one member: lengths in bytes, ``offset`` of its local header.

    ``name`` is the text for a person and for comparing paths, ``raw_name`` what the archive holds.
    """

    name: str
    raw_name: bytes
    crc32: int
    packed: int
    size: int
    method: int
    offset: int
    flags: int

    @property
    def least_end(self) -> int:
        """Where its data ends at the earliest: only its local header tells the length of that."""
        return self.offset + LOCAL_HEADER_SIZE + len(self.raw_name) + self.packed


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryPlace:
    """Where a central directory begins and ends, and how many entries it says it has."""

    start: int
    end: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipDirectory:
    """The members of an archive in the order of the directory, which begins at ``start``."""

    members: tuple[ZipMember, ...]
    start: int
    end: int


def read_directory(source: RangeSource) -> ZipDirectory:
    """Read the central directory with one read, or two when it is longer than the last 64 KiB.

    Raises `WheelError` for an archive that is not sound or that holds more than 200,000 members or
    32 MiB of directory, for members that overlap, and what the source raises.
    """
    tail_start = max(0, source.size - DIRECTORY_TAIL)
    tail = source.read(tail_start, source.size) if source.size else b""
    place = locate_directory(tail, total=source.size, where=source.where)
    if place.start >= tail_start:
        data = tail[place.start - tail_start : place.end - tail_start]
    else:
        missing = source.read(place.start, tail_start)
        data = (missing + tail)[: place.end - place.start]
    members = parse_members(data, place.entries, where=source.where)
    _refuse_overlaps(members, place.start, source.where)
    return ZipDirectory(members=members, start=place.start, end=place.end)


def locate_directory(tail: bytes, *, total: int, where: str) -> DirectoryPlace:
    """Find the directory of an archive of ``total`` bytes from its end; raises `WheelError`."""
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise _fault("no end of a zip directory", where)
    _, disk, first_disk, here, entries, size, offset, comment = _END.unpack_from(tail, at)
    if at + _END.size + comment != len(tail):
        raise _fault("bytes after the end of the zip directory", where)
    start = total - len(tail)
    end = start + at
    large = _UINT16 in (disk, first_disk, here, entries) or _UINT32 in (size, offset)
    locator_at = at - _END64_LOCATOR.size
    if locator_at >= 0 and tail[locator_at : locator_at + 4] == b"PK\x06\x07":
        _, locator_disk, end64_offset, disks = _END64_LOCATOR.unpack_from(tail, locator_at)
        end64_at = locator_at - _END64.size
        if (
            locator_disk != 0
            or disks > 1
            or end64_at < 0
            or start + end64_at != end64_offset
            or tail[end64_at : end64_at + 4] != b"PK\x06\x06"
        ):
            raise _fault("a zip64 locator that does not point at the record before it", where)
        fields = _END64.unpack_from(tail, end64_at)
        if fields[1] != _END64.size - 12:
            raise _fault("a zip64 end record of an unknown length", where)
        narrow = (disk, first_disk, here, entries, size, offset)
        disk, first_disk, here, entries, size, offset = fields[4:]
        caps = (_UINT16, _UINT16, _UINT16, _UINT16, _UINT32, _UINT32)
        wide = (disk, first_disk, here, entries, size, offset)
        if any(n not in (cap, w) for n, w, cap in zip(narrow, wide, caps, strict=True)):
            raise _fault("two ends of a zip directory that disagree", where)
        end = end64_offset
    elif large:
        raise _fault("a zip64 archive without its locator", where)
    if (disk, first_disk) != (0, 0) or here != entries:
        raise _fault("one part of a split zip archive", where)
    if entries > _ENTRIES_LIMIT or size > DIRECTORY_LIMIT:
        raise _fault(f"a zip directory of {entries} entries in {size} bytes", where)
    if offset + size != end:
        raise _fault("a zip directory that does not end where its end record begins", where)
    return DirectoryPlace(start=offset, end=end, entries=entries)


def parse_members(directory: bytes, entries: int, *, where: str) -> tuple[ZipMember, ...]:
    """Read the entries of a directory, in order; raises `WheelError`.

    Refused are a name twice (inside ``*.dist-info`` also one that differs in case only) and bytes
    before the first member.
    """
    names: set[bytes] = set()
    members: list[ZipMember] = []
    for member in _iterate(directory, entries, where):
        name = member.raw_name
        # Modules may differ in case only, and real wheels have such; METADATA may not.
        name = name.lower() if _DIST_INFO.match(name) else name
        if name in names:
            raise _fault(f"the name {format_quoted(member.name)} twice", where)
        names.add(name)
        members.append(member)
    if min((member.offset for member in members), default=0) != 0:
        raise _fault("bytes before the first member of the archive", where)
    return tuple(members)


def check_packing(member: ZipMember, *, what: str, where: str) -> None:
    """Raise `WheelError` for a member that is encrypted, or packed by other than deflate."""
    if member.flags & _ENCRYPTED:
        raise _fault(f"{what} that is encrypted", where)
    if member.method not in (0, 8):
        raise _fault(f"{what} packed by method {member.method}", where)


def local_data_start(data: bytes, member: ZipMember, *, what: str, where: str) -> int:
    """Return the length of the local header that ``data`` begins with: the packed bytes follow it.

    ``data`` holds at least 30 bytes, and the name where there is one. Raises `WheelError` when the
    header says something else than the directory, which another reader might believe.
    """
    signature, _, flags, method, _, _, _, packed, size, name_length, extra_length = (
        _LOCAL.unpack_from(data)
    )
    name = data[_LOCAL.size : _LOCAL.size + name_length]
    if signature != b"PK\x03\x04" or name != member.raw_name or method != member.method:
        raise _fault(f"a local header of {what} that disagrees with the directory", where)
    narrow = ((packed, member.packed), (size, member.size))
    streamed = flags & _STREAMED
    if not streamed and any(value not in (_UINT32, wide) for value, wide in narrow):
        raise _fault(f"two lengths of {what} that disagree", where)
    return int(_LOCAL.size + name_length + extra_length)


def _iterate(directory: bytes, entries: int, where: str) -> Iterator[ZipMember]:
    at = 0
    for _ in range(entries):
        if at + _CENTRAL.size > len(directory) or directory[at : at + 4] != b"PK\x01\x02":
            raise _fault("a zip directory that is cut or damaged", where)
        fields = _CENTRAL.unpack_from(directory, at)
        flags, method, crc, packed, size = fields[3], fields[4], fields[7], fields[8], fields[9]
        name_length, extra_length, comment_length, offset = *fields[10:13], fields[16]
        name_at = at + _CENTRAL.size
        extra_at = name_at + name_length
        at = extra_at + extra_length + comment_length
        if at > len(directory):
            raise _fault("a zip directory that is cut or damaged", where)
        name = directory[name_at:extra_at]
        if not name or b"\0" in name:
            raise _fault("a member without a name, or with a zero byte in it", where)
        if _UINT32 in (packed, size, offset):
            extra = directory[extra_at : extra_at + extra_length]
            size, packed, offset = _wide_values(extra, size, packed, offset, where)
        yield ZipMember(
            name=_decode(name, flags),
            raw_name=name,
            crc32=crc,
            packed=packed,
            size=size,
            method=method,
            offset=offset,
            flags=flags,
        )
    if at != len(directory):
        raise _fault("a zip directory with more in it than its entries", where)


def _decode(name: bytes, flags: int) -> str:
    # APPNOTE, appendix D: without bit 11 a name is IBM Code Page 437. It is the same for ASCII.
    if name.isascii():
        return name.decode("ascii")
    return name.decode("utf-8", "backslashreplace") if flags & _UTF8 else name.decode("cp437")


def _wide_values(
    extra: bytes, size: int, packed: int, offset: int, where: str
) -> tuple[int, int, int]:
    """Return the 64-bit values of the zip64 extended information (APPNOTE 4.5.3), in its order."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        at += 4
        if kind == 1:
            value = extra[at : at + length]
            wide: list[int] = []
            for narrow in (size, packed, offset):
                if narrow != _UINT32:
                    wide.append(narrow)
                    continue
                if len(value) < 8:
                    break
                wide.append(int.from_bytes(value[:8], "little"))
                value = value[8:]
            else:
                return wide[0], wide[1], wide[2]
            break
        at += length
    raise _fault("a large member without its zip64 values", where)


def _refuse_overlaps(members: tuple[ZipMember, ...], directory_start: int, where: str) -> None:
    """Raise for members that share bytes: a small archive of that kind inflates without end."""
    ordered = sorted(members, key=lambda member: member.offset)
    ends = [member.offset for member in ordered[1:]] + [directory_start]
    for member, end in zip(ordered, ends, strict=True):
        if member.least_end > end:
            raise _fault(
                f"{format_quoted(member.name)} that overlaps what follows it in the archive", where
            )


def _fault(found: str, where: str) -> WheelError:
    return WheelError(f"expected a wheel, found {found}", where=where)
