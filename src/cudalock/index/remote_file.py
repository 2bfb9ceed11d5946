"""A wheel on an index as a file of which parts are read: its end, pieces, and streams.

The first request brings a little more than the last 64 KiB, which hold the zip directory of nearly every wheel, and the
file's length; what lies in them is never asked for again. All parts are of one version of the
file: a strong ETag goes with every request, and a length that changes is an error.
"""

from collections.abc import Generator

from cudalock.index.address import shown_url
from cudalock.index.exchange import Exchange
from cudalock.index.failures import BodyError
from cudalock.index.ranges import FetchedPart, fetch_middle, fetch_suffix, stream_middle
from cudalock.wheel.zip_directory import DIRECTORY_TAIL

__all__ = ["RemoteFile"]


class RemoteFile:
    """A file at a clean address. Not for several threads at once; asks when it is made.

    Raises `IndexAccessError` when the server gives no usable answer, `RangeError` where it has no ranges
    and the file is over 32 MiB.
    """

    def __init__(self, exchange: Exchange, url: str, *, size: int | None = None) -> None:
        """Ask for the end of the file; ``size`` is what an index claims, which must hold."""
        self._exchange = exchange
        self._url = url
        self._tail = fetch_suffix(exchange, url, DIRECTORY_TAIL)
        if size is not None and self._tail.total != size:
            raise BodyError(
                f"expected a file of {size} bytes as the index says, found {self._tail.total}",
                where=shown_url(url),
                retryable=False,
            )
        self.bytes_read = len(self._tail.data)

    @property
    def where(self) -> str:
        """The address, fit to be shown."""
        return shown_url(self._url)

    @property
    def size(self) -> int:
        """The length of the file in bytes."""
        return self._tail.total

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to before ``end``: no request for what is at the end."""
        if start >= self._tail.start:
            return self._tail.data[start - self._tail.start : end - self._tail.start]
        part = fetch_middle(self._exchange, self._url, start, end, self._tail.etag)
        self._check_same(part)
        self.bytes_read += len(part.data)
        return part.data[start - part.start : end - part.start]

    def stream(self, start: int, end: int) -> Generator[bytes, None, None]:
        """Yield the bytes from ``start`` to before ``end``; closing the iterator ends the transfer."""
        if start >= self._tail.start:
            yield self.read(start, end)
            return
        steps = stream_middle(
            self._exchange, self._url, start, end, total=self.size, etag=self._tail.etag
        )
        for step in steps:
            self.bytes_read += len(step)
            yield step

    def _check_same(self, part: FetchedPart) -> None:
        etag = self._tail.etag
        if part.total != self.size or (etag is not None and part.etag not in (None, etag)):
            raise BodyError(
                f"expected the file of {self.size} bytes, found that it changed while it was read",
                where=shown_url(self._url),
                retryable=False,
            )
