"""METADATA out of a zip archive of which only parts are here (APPNOTE.TXT 6.3.10, sections 4.3 and 4.5).

Written for archives that lie: one central directory that ends where its end record begins, nothing
before or after, no name twice, exactly one ``*.dist-info/METADATA``, a local header that agrees. The
standard library takes the last of two METADATA and looks past junk; other readers differ, and what two
readers read differently is how one is fooled (GHSA-8qf3-x8v5-2pj8). Nothing is extracted; only METADATA
is inflated, up to its limit. Fetching the parts is left to the caller.
"""

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cudalock.errors import WheelError
from cudalock.wheel.metadata import METADATA_LIMIT
from cudalock.wheel.names import format_quoted

__all__ = ["DIRECTORY_LIMIT", "read_metadata_member"]

DIRECTORY_LIMIT = 32 * 1024 * 1024
_ENTRIES_LIMIT = 200_000
# Metadata mostly lies right before the directory, so a request for one brings the other.
_LOOK_BEHIND = 32 * 1024
_LOCAL_EXTRA_ROOM = 1024

_END = struct.Struct("<4sHHHHIIH")
_END64_LOCATOR = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_METADATA_NAME = re.compile(rb"[^/\\]+\.dist-info/METADATA\Z")
_DIST_INFO = re.compile(rb"([^/\\]+\.dist-info)/", re.IGNORECASE)
_UINT16 = 0xFFFF
_UINT32 = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class _Member:
    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


class _Parts:
    """The bytes of the archive that are here, from ``start`` to its end; more are fetched."""

    def __init__(
        self, tail: bytes, total: int, fetch: Callable[[int, int], bytes], where: str
    ) -> None:
        self.data = tail
        self.start = total - len(tail)
        self.total = total
        self._fetch = fetch
        self._where = where

    def fault(self, found: str) -> WheelError:
        return WheelError(f"expected a wheel, found {found}", where=self._where)

    def take(self, start: int, end: int, begin: int | None = None) -> bytes:
        """Return the bytes from ``start`` to ``end``; one request, from ``begin``, if not here."""
        if start >= self.start:
            return self.data[start - self.start : end - self.start]
        begin = start if begin is None else begin
        if end < self.start:
            # A part far from the rest is not kept: nothing is asked for twice.
            return self._request(begin, end)[start - begin :]
        self.data = self._request(begin, self.start) + self.data
        self.start = begin
        return self.data[start - begin : end - begin]

    def _request(self, begin: int, end: int) -> bytes:
        found = self._fetch(begin, end)
        if len(found) != end - begin:
            raise self.fault(f"{len(found)} bytes where {end - begin} were asked for")
        return found


def read_metadata_member(
    tail: bytes, *, total: int, fetch: Callable[[int, int], bytes], where: str
) -> bytes:
    """Return the bytes of ``*.dist-info/METADATA`` of an archive of ``total`` bytes.

    ``tail`` is the end of the archive. ``fetch(start, end)`` is called at most twice: when the
    directory begins before the tail, and when METADATA lies before what is here by then. Raises
    `WheelError` with ``where`` for an archive that is not sound, and what ``fetch`` raises.
    """
    parts = _Parts(tail, total, fetch, where)
    directory_offset, directory_end, entries = _locate_directory(parts)
    directory = parts.take(directory_offset, directory_end, max(0, directory_offset - _LOOK_BEHIND))
    member = _find_metadata(parts, directory, entries)
    return _read_member(parts, member, directory_offset)


def _locate_directory(parts: _Parts) -> tuple[int, int, int]:
    """Return where the central directory begins and ends, and its number of entries."""
    data = parts.data
    at = data.rfind(b"PK\x05\x06")
    if at < 0 or len(data) - at < _END.size:
        raise parts.fault("no end of a zip directory")
    _, disk, first_disk, here, entries, size, offset, comment = _END.unpack_from(data, at)
    if at + _END.size + comment != len(data):
        raise parts.fault("bytes after the end of the zip directory")
    end = parts.start + at
    large = _UINT16 in (disk, first_disk, here, entries) or _UINT32 in (size, offset)
    locator_at = at - _END64_LOCATOR.size
    if locator_at >= 0 and data[locator_at : locator_at + 4] == b"PK\x06\x07":
        _, locator_disk, end64_offset, disks = _END64_LOCATOR.unpack_from(data, locator_at)
        end64_at = locator_at - _END64.size
        if (
            locator_disk != 0
            or disks > 1
            or end64_at < 0
            or parts.start + end64_at != end64_offset
            or data[end64_at : end64_at + 4] != b"PK\x06\x06"
        ):
            raise parts.fault("a zip64 locator that does not point at the record before it")
        fields = _END64.unpack_from(data, end64_at)
        if fields[1] != _END64.size - 12:
            raise parts.fault("a zip64 end record of an unknown length")
        narrow = (disk, first_disk, here, entries, size, offset)
        disk, first_disk, here, entries, size, offset = fields[4:]
        caps = (_UINT16, _UINT16, _UINT16, _UINT16, _UINT32, _UINT32)
        wide = (disk, first_disk, here, entries, size, offset)
        if any(n not in (cap, w) for n, w, cap in zip(narrow, wide, caps, strict=True)):
            raise parts.fault("two ends of a zip directory that disagree")
        end = end64_offset
    elif large:
        raise parts.fault("a zip64 archive without its locator")
    if (disk, first_disk) != (0, 0) or here != entries:
        raise parts.fault("one part of a split zip archive")
    if entries > _ENTRIES_LIMIT or size > DIRECTORY_LIMIT:
        raise parts.fault(f"a zip directory of {entries} entries in {size} bytes")
    if offset + size != end:
        raise parts.fault("a zip directory that does not end where its end record begins")
    return offset, end, entries


def _find_metadata(parts: _Parts, directory: bytes, entries: int) -> _Member:
    names: set[bytes] = set()
    dist_infos: set[bytes] = set()
    found: list[_Member] = []
    first = parts.total
    for member in _members(parts, directory, entries):
        name = member.name
        first = min(first, member.offset)
        folder = _DIST_INFO.match(name)
        if folder is not None:
            dist_infos.add(folder[1])
            # Modules may differ in case only, and real wheels have such; METADATA may not.
            name = name.lower()
        if name in names:
            raise parts.fault(f"the name {_shown(member.name)} twice")
        names.add(name)
        if _METADATA_NAME.match(member.name):
            found.append(member)
    if names and first:
        raise parts.fault("bytes before the first member of the archive")
    if len(found) != 1 or len(dist_infos) != 1:
        raise parts.fault(
            f"{len(found)} METADATA in {len(dist_infos)} dist-info folders where one was expected"
        )
    return found[0]


def _members(parts: _Parts, directory: bytes, entries: int) -> Iterator[_Member]:
    at = 0
    for _ in range(entries):
        if at + _CENTRAL.size > len(directory) or directory[at : at + 4] != b"PK\x01\x02":
            raise parts.fault("a zip directory that is cut or damaged")
        fields = _CENTRAL.unpack_from(directory, at)
        flags, method, crc, packed, size = fields[3], fields[4], fields[7], fields[8], fields[9]
        name_length, extra_length, comment_length, offset = *fields[10:13], fields[16]
        name_at = at + _CENTRAL.size
        extra_at = name_at + name_length
        at = extra_at + extra_length + comment_length
        if at > len(directory):
            raise parts.fault("a zip directory that is cut or damaged")
        name = directory[name_at:extra_at]
        if not name or b"\0" in name:
            raise parts.fault("a member without a name, or with a zero byte in it")
        if _UINT32 in (packed, size, offset):
            extra = directory[extra_at : extra_at + extra_length]
            size, packed, offset = _wide_values(parts, extra, size, packed, offset)
        yield _Member(name, flags, method, crc, packed, size, offset)
    if at != len(directory):
        raise parts.fault("a zip directory with more in it than its entries")


def _wide_values(
    parts: _Parts, extra: bytes, size: int, packed: int, offset: int
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
    raise parts.fault("a large member without its zip64 values")


def _read_member(parts: _Parts, member: _Member, directory_offset: int) -> bytes:
    if member.flags & 0x2041:
        raise parts.fault("METADATA that is encrypted")
    if member.method not in (0, 8):
        raise parts.fault(f"METADATA packed by method {member.method}")
    if member.size > METADATA_LIMIT or member.packed > METADATA_LIMIT:
        raise parts.fault(f"METADATA of {member.size} bytes, of which {METADATA_LIMIT} are read")
    least = member.offset + _LOCAL.size + len(member.name) + member.packed
    if least > directory_offset:
        raise parts.fault("METADATA that would lie inside the zip directory")
    end = min(least + _LOCAL_EXTRA_ROOM, directory_offset)
    data = parts.take(member.offset, end)
    signature, _, flags, method, _, _, _, packed, size, name_length, extra_length = (
        _LOCAL.unpack_from(data)
    )
    name = data[_LOCAL.size : _LOCAL.size + name_length]
    if signature != b"PK\x03\x04" or name != member.name or method != member.method:
        raise parts.fault("a local header of METADATA that disagrees with the directory")
    streamed = flags & 8
    narrow = ((packed, member.packed), (size, member.size))
    if not streamed and any(value not in (_UINT32, wide) for value, wide in narrow):
        raise parts.fault("two lengths of METADATA that disagree")
    start = _LOCAL.size + name_length + extra_length
    content = data[start : start + member.packed]
    if len(content) != member.packed:
        raise parts.fault("a local header of METADATA that is longer than can be")
    if member.method == 8:
        content = _inflate(parts, content)
    if len(content) != member.size or zlib.crc32(content) != member.crc:
        raise parts.fault("METADATA whose length or checksum is not what the directory says")
    return content


def _inflate(parts: _Parts, packed: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=-15)
    try:
        content = inflater.decompress(packed, METADATA_LIMIT + 1)
    except zlib.error as error:
        raise parts.fault("METADATA that does not inflate") from error
    if not inflater.eof or inflater.unused_data:
        raise parts.fault("METADATA that is cut, longer than it says, or followed by something")
    return content


def _shown(name: bytes) -> str:
    return format_quoted(name.decode("utf-8", "replace"))
