"""Where the bytes of a wheel come from: a random-access source, told apart from what is read in it.

A reader asks for few and large parts (`read`), or follows a part as it comes and may stop early
(`stream`): one open-ended request is cheaper than many small ones. This room has the forms for bytes
and for an open file; the one over HTTP is `index`'s.
"""

import os
from collections.abc import Generator
from typing import BinaryIO, Protocol

from cudalock.errors import IndexAccessError, WheelError

__all__ = ["BytesSource", "CountingSource", "FileSource", "RangeSource"]

_PIECE = 64 * 1024


class RangeSource(Protocol):
    """A file of ``size`` bytes, named ``where`` in errors, read by range."""

    @property
    def size(self) -> int:
        """The length of the whole file in bytes, known before anything is read."""

    @property
    def where(self) -> str:
        """What an error names: a path, or a URL without secrets."""

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to before ``end``, exactly; ``0 <= start < end <= size``.

        Raises `IndexAccessError` when they cannot be had.
        """

    def stream(self, start: int, end: int) -> Generator[bytes, None, None]:
        """Yield the same bytes in pieces of any size; closing it stops the transfer."""


class BytesSource:
    """A file that is in memory."""

    def __init__(self, data: bytes, *, where: str = "the bytes given") -> None:
        self._data = data
        self._where = where

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._data)

    @property
    def where(self) -> str:
        """What an error names."""
        return self._where

    def read(self, start: int, end: int) -> bytes:
        """Return a slice."""
        return self._data[start:end]

    def stream(self, start: int, end: int) -> Generator[bytes, None, None]:
        """Yield slices of at most 64 KiB."""
        for at in range(start, end, _PIECE):
            yield self._data[at : min(at + _PIECE, end)]


class FileSource:
    """An open binary file that can be positioned. It is not closed here, and not shared by threads."""

    def __init__(self, file: BinaryIO, *, where: str) -> None:
        self._file = file
        self._where = where
        try:
            self._size = file.seek(0, os.SEEK_END)
        except OSError as error:
            raise self._fault(error) from error

    @property
    def size(self) -> int:
        """The length of the file when it was given."""
        return self._size

    @property
    def where(self) -> str:
        """What an error names."""
        return self._where

    def read(self, start: int, end: int) -> bytes:
        """Read at a position; raises `IndexAccessError` when the system refuses."""
        try:
            self._file.seek(start)
            return self._file.read(end - start)
        except OSError as error:
            raise self._fault(error) from error

    def stream(self, start: int, end: int) -> Generator[bytes, None, None]:
        """Read on in pieces of at most 64 KiB."""
        for at in range(start, end, _PIECE):
            yield self.read(at, min(at + _PIECE, end))

    def _fault(self, error: OSError) -> IndexAccessError:
        return IndexAccessError(f"expected a wheel: {error.strerror}", where=self._where)


class CountingSource:
    """Another source, with ``bytes_read`` counted and every short answer refused."""

    def __init__(self, source: RangeSource) -> None:
        self._source = source
        self.bytes_read = 0

    @property
    def size(self) -> int:
        """The length of the whole file."""
        return self._source.size

    @property
    def where(self) -> str:
        """What an error names."""
        return self._source.where

    def read(self, start: int, end: int) -> bytes:
        """Return exactly the bytes asked for; raises `WheelError` when the source gave others."""
        data = self._source.read(start, end)
        self.bytes_read += len(data)
        if len(data) != end - start:
            raise self._short(len(data), end - start)
        return data

    def stream(self, start: int, end: int) -> Generator[bytes, None, None]:
        """Yield exactly the bytes asked for; raises `WheelError` when the source gave others."""
        seen = 0
        pieces = self._source.stream(start, end)
        try:
            for piece in pieces:
                seen += len(piece)
                self.bytes_read += len(piece)
                if seen > end - start:
                    break
                yield piece
        finally:
            pieces.close()
        if seen != end - start:
            raise self._short(seen, end - start)

    def _short(self, found: int, wanted: int) -> WheelError:
        return WheelError(
            f"expected a wheel, found {found} bytes where {wanted} were asked for", where=self.where
        )
