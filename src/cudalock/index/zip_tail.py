"""METADATA out of a zip archive of which only parts are here.

What makes an archive sound is told by `wheel/zip_directory.py`; here it must hold exactly one
``*.dist-info/METADATA`` besides. The standard library takes the last of two, other readers the first.
Nothing is extracted; only METADATA is inflated, up to its limit. Fetching the parts is left to the
caller.
"""

import re
import zlib
from collections.abc import Callable

from cudalock.errors import WheelError
from cudalock.wheel.metadata import METADATA_LIMIT
from cudalock.wheel.zip_directory import (
    ZipMember,
    check_packing,
    local_data_start,
    locate_directory,
    parse_members,
)

__all__ = ["read_metadata_member"]

# Metadata mostly lies right before the directory, so a request for one brings the other.
_LOOK_BEHIND = 32 * 1024
_LOCAL_EXTRA_ROOM = 1024
_METADATA_NAME = re.compile(rb"[^/\\]+\.dist-info/METADATA\Z")
_DIST_INFO = re.compile(rb"([^/\\]+\.dist-info)/", re.IGNORECASE)


class _Parts:
    """The bytes of the archive that are here, from ``start`` to its end; more are fetched."""

    def __init__(
        self, tail: bytes, total: int, fetch: Callable[[int, int], bytes], where: str
    ) -> None:
        self.data = tail
        self.start = total - len(tail)
        self.total = total
        self.where = where
        self._fetch = fetch

    def fault(self, found: str) -> WheelError:
        return WheelError(f"expected a wheel, found {found}", where=self.where)

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
    place = locate_directory(tail, total=total, where=where)
    directory = parts.take(place.start, place.end, max(0, place.start - _LOOK_BEHIND))
    member = _find_metadata(parts, parse_members(directory, place.entries, where=where))
    return _read_member(parts, member, place.start)


def _find_metadata(parts: _Parts, members: tuple[ZipMember, ...]) -> ZipMember:
    folders = (_DIST_INFO.match(member.raw_name) for member in members)
    dist_infos = {folder[1] for folder in folders if folder is not None}
    found = [member for member in members if _METADATA_NAME.match(member.raw_name)]
    if len(found) != 1 or len(dist_infos) != 1:
        raise parts.fault(
            f"{len(found)} METADATA in {len(dist_infos)} dist-info folders where one was expected"
        )
    return found[0]


def _read_member(parts: _Parts, member: ZipMember, directory_offset: int) -> bytes:
    check_packing(member, what="METADATA", where=parts.where)
    if member.size > METADATA_LIMIT or member.packed > METADATA_LIMIT:
        raise parts.fault(f"METADATA of {member.size} bytes, of which {METADATA_LIMIT} are read")
    least = member.least_end
    if least > directory_offset:
        raise parts.fault("METADATA that would lie inside the zip directory")
    end = min(least + _LOCAL_EXTRA_ROOM, directory_offset)
    data = parts.take(member.offset, end)
    start = local_data_start(data, member, what="METADATA", where=parts.where)
    content = data[start : start + member.packed]
    if len(content) != member.packed:
        raise parts.fault("a local header of METADATA that is longer than can be")
    if member.method == 8:
        content = _inflate(parts, content)
    if len(content) != member.size or zlib.crc32(content) != member.crc32:
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
