"""Members of a zip archive as streams of their unpacked bytes, with every length bounded.

A member is inflated in pieces of at most 1 MiB and never past the length the directory declares, so
an archive that lies costs no more than it says. Nothing is written anywhere.
"""

import zlib
from collections.abc import Generator, Iterable

from cudalock.errors import WheelError
from cudalock.wheel.names import format_quoted
from cudalock.wheel.range_source import RangeSource
from cudalock.wheel.zip_directory import (
    LOCAL_HEADER_SIZE,
    ZipDirectory,
    ZipMember,
    check_packing,
    local_data_start,
)

__all__ = ["CHUNK", "MEMBER_LIMIT", "RATIO_LIMIT", "MemberReader"]

# The longest piece that is yielded.
CHUNK = 1024 * 1024
# The largest library seen has 1.12 GB, the best packed one is 19 times smaller than its contents.
MEMBER_LIMIT = 4 * 1024**3
RATIO_LIMIT = 100
# Short members of one repeated byte may be packed better than any library.
_RATIO_FREE = CHUNK
_PACKED_PIECE = 64 * 1024
# So many bytes are read and dropped rather than a new stream opened behind them.
_GAP = 256 * 1024


class MemberReader:
    """Reads members one after the other, best in the order of their offsets.

    ``together`` names the members that will be read whole: those that lie next to each other are
    then read in one stream. Others are streamed up to their own end.
    """

    def __init__(
        self, source: RangeSource, directory: ZipDirectory, together: Iterable[ZipMember] = ()
    ) -> None:
        self._source = source
        ordered = sorted(directory.members, key=lambda member: member.offset)
        ends = [member.offset for member in ordered[1:]] + [directory.start]
        # Where the space of a member ends, by its offset: no two members share one.
        self._space = {member.offset: end for member, end in zip(ordered, ends, strict=True)}
        self._stops = dict(self._space)
        self._join(together)
        self._cursor: _Cursor | None = None

    def close(self) -> None:
        """End the stream that is open, if one is."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def chunks(self, member: ZipMember) -> Generator[bytes, None, None]:
        """Yield the unpacked bytes in pieces of at most 1 MiB; it may be closed before the end.

        Raises `WheelError` for a member that is encrypted, packed by another method than deflate,
        larger than 4 GiB or than 100 times its packed length, that inflates to another length or
        checksum than the directory declares, or whose local header disagrees. The checksum is known
        only after the last piece: what was read of a member that fails there counts for nothing.
        """
        what = format_quoted(member.name)
        self._check_lengths(member, what)
        cursor = self._open(member)
        head = cursor.take(LOCAL_HEADER_SIZE)
        rest = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        if member.offset + LOCAL_HEADER_SIZE + rest + member.packed > self._space[member.offset]:
            raise self._fault(f"a local header of {what} that is longer than can be")
        head += cursor.take(rest)
        local_data_start(head, member, what=what, where=self._source.where)
        pieces = (
            self._inflate(cursor, member, what) if member.method else self._copy(cursor, member)
        )
        produced = checksum = 0
        for piece in pieces:
            produced += len(piece)
            checksum = zlib.crc32(piece, checksum)
            if produced > member.size:
                break
            yield piece
        if produced != member.size or checksum != member.crc32:
            raise self._fault(f"{what} whose length or checksum is not what the directory says")

    def _check_lengths(self, member: ZipMember, what: str) -> None:
        check_packing(member, what=what, where=self._source.where)
        if member.size > MEMBER_LIMIT:
            raise self._fault(f"{what} of {member.size} bytes, more than {MEMBER_LIMIT}")
        if member.method == 0 and member.size != member.packed:
            raise self._fault(f"two lengths of {what} that disagree")
        if member.size > _RATIO_FREE and member.size > RATIO_LIMIT * member.packed:
            raise self._fault(f"{what} of {member.size} bytes packed into {member.packed}")

    def _join(self, together: Iterable[ZipMember]) -> None:
        """Let the stream of a member go on to the end of the last one that lies beside it."""
        stop = next_start = 0
        for member in sorted(together, key=lambda member: member.offset, reverse=True):
            end = self._space[member.offset]
            if next_start - end > _GAP or not stop:
                stop = end
            self._stops[member.offset] = stop
            next_start = member.offset

    def _open(self, member: ZipMember) -> "_Cursor":
        """Return a cursor at the member: the one that is open, where that is near enough."""
        start, end = member.offset, self._space[member.offset]
        cursor = self._cursor
        if cursor is None or not (0 <= start - cursor.at <= _GAP and end <= cursor.stop):
            self.close()
            cursor = self._cursor = _Cursor(self._source, start, self._stops[start])
        cursor.skip(start - cursor.at)
        return cursor

    def _copy(self, cursor: "_Cursor", member: ZipMember) -> Generator[bytes, None, None]:
        left = member.packed
        while left:
            piece = cursor.some(min(left, CHUNK))
            left -= len(piece)
            yield piece

    def _inflate(
        self, cursor: "_Cursor", member: ZipMember, what: str
    ) -> Generator[bytes, None, None]:
        inflater = zlib.decompressobj(wbits=-15)
        left = member.packed
        # One byte more than declared is asked for, so that one byte too many is seen.
        room = member.size + 1
        packed = b""
        try:
            while room and not inflater.eof:
                if left and not packed:
                    packed = cursor.some(min(left, _PACKED_PIECE))
                    left -= len(packed)
                # Without input it gives what its window still holds.
                piece = inflater.decompress(packed, min(room, CHUNK))
                if piece:
                    room -= len(piece)
                    yield piece
                elif not packed:
                    break
                packed = inflater.unconsumed_tail
        except zlib.error as error:
            raise self._fault(f"{what} that does not inflate") from error
        if not inflater.eof or inflater.unused_data or left:
            raise self._fault(f"{what} that is cut, longer than it says, or followed by something")

    def _fault(self, found: str) -> WheelError:
        return WheelError(f"expected a wheel, found {found}", where=self._source.where)


class _Cursor:
    """A place in an open stream of the archive, from ``at`` to ``stop``."""

    def __init__(self, source: RangeSource, start: int, stop: int) -> None:
        self.at = start
        self.stop = stop
        self._where = source.where
        self._pieces = source.stream(start, stop)
        self._piece = memoryview(b"")

    def close(self) -> None:
        self._pieces.close()

    def some(self, most: int) -> bytes:
        """Return at least one byte and at most ``most``."""
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                raise WheelError(
                    f"expected a wheel, found that it ends at byte {self.at}", where=self._where
                )
            self._piece = memoryview(piece)
        taken = bytes(self._piece[:most])
        self._piece = self._piece[len(taken) :]
        self.at += len(taken)
        return taken

    def take(self, count: int) -> bytes:
        """Return exactly ``count`` bytes."""
        parts = []
        while count:
            part = self.some(count)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def skip(self, count: int) -> None:
        while count:
            count -= len(self.some(count))
