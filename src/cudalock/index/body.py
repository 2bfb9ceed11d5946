"""The one reader of response bodies: whole, decoded, within bounds, or an error.

Measured: httpx hands out a page cut in the middle of its gzip stream as a whole one, keeps a gigabyte
in memory for a bomb of half a megabyte, and lets a server send one byte a second for ever. So the coding
is undone here, in steps of bounded size: a body counts as whole only when the coding says that it has
ended and the announced length was met (RFC 9110, sections 8.4 and 8.6).
"""

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cudalock.index.address import shown_url
from cudalock.index.failures import BodyError
from cudalock.index.transport import Response

__all__ = ["ACCEPTED_CODINGS", "BodyLimits", "iter_body", "read_body"]

ACCEPTED_CODINGS = "gzip, identity"
_STEP = 64 * 1024
_PIECE = 16 * 1024
# Pages full of hashes shrink to a third, the most repetitive ones to a thirtieth; gzip can do a
# thousandth. A bomb is known by its ratio long before it fills the memory.
_RATIO = 200
_RATIO_FREE_BYTES = 4 * 1024 * 1024
_SLOW_START_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """How much and how slowly.

    ``decoded`` and ``wire`` are bytes, ``until`` is the clock's time at which reading stops, and
    ``rate`` the bytes a second on the wire that are expected after the first ten seconds.
    """

    decoded: int
    wire: int
    until: float = float("inf")
    rate: int = 1024


def read_body(
    response: Response,
    limits: BodyLimits,
    *,
    url: str,
    clock: Callable[[], float] = time.monotonic,
    on_wire: Callable[[int], None] | None = None,
    framing_required: bool = True,
) -> bytes:
    """Read a body to its end; raise `BodyError` or `TransportError`, never return a part.

    A body whose end only the closing of the connection tells is refused unless ``framing_required``
    is off, or the text itself ends as a page of JSON or HTML does.
    """
    body = b"".join(iter_body(response, limits, url=url, clock=clock, on_wire=on_wire))
    if framing_required and not _is_framed(response) and not _ends_like_a_page(body):
        raise BodyError(
            "expected a body of known length, found one that may be cut: the server closed the connection",
            where=shown_url(url),
        )
    return body


def iter_body(
    response: Response,
    limits: BodyLimits,
    *,
    url: str,
    clock: Callable[[], float] = time.monotonic,
    on_wire: Callable[[int], None] | None = None,
) -> Iterator[bytes]:
    """Yield a decoded body in steps of at most 64 KiB.

    What was yielded counts only when the iterator ends without an error.
    """
    where = shown_url(url)
    inflater = _inflater(response, where)
    length = _content_length(response, where)
    if length is not None and length > limits.wire:
        raise _too_large(length, limits.wire, where)
    started = clock()
    wire = decoded = 0
    for chunk in _pieces(response.chunks()):
        wire += len(chunk)
        if on_wire is not None:
            on_wire(len(chunk))
        now = clock()
        if now > limits.until:
            raise BodyError(f"the time was over after {wire} bytes", where=where)
        if now - started > _SLOW_START_SECONDS and wire < limits.rate * (now - started):
            raise BodyError(
                f"expected at least {limits.rate} bytes a second, found {wire} bytes"
                f" in {now - started:.0f} s",
                where=where,
            )
        if wire > limits.wire:
            raise _too_large(wire, limits.wire, where)
        for step in (chunk,) if inflater is None else _inflate(inflater, chunk, where):
            decoded += len(step)
            if decoded > limits.decoded:
                raise _too_large(decoded, limits.decoded, where)
            if decoded > _RATIO_FREE_BYTES and decoded > _RATIO * wire:
                raise BodyError(
                    f"expected at most {_RATIO} bytes for each one sent, found more: a bomb",
                    where=where,
                    retryable=False,
                )
            yield step
    if length is not None and wire != length:
        raise BodyError(f"expected {length} bytes, found {wire}", where=where)
    if inflater is not None and not inflater.eof:
        raise BodyError(
            f"expected a whole gzip stream, found one cut after {wire} bytes", where=where
        )


def _pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Cut what comes into pieces of bounded size, so that what is counted stays near what is done."""
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE):
            yield chunk[start : start + _PIECE]


def _inflate(inflater: "zlib._Decompress", chunk: bytes, where: str) -> Iterator[bytes]:
    try:
        while chunk:
            if inflater.eof:
                # A second member could be cut off without a trace, so there is one or an error.
                raise BodyError("found bytes after the end of the gzip stream", where=where)
            step = inflater.decompress(chunk, _STEP)
            chunk = inflater.unconsumed_tail or inflater.unused_data
            if step:
                yield step
        # A full step may leave output behind although all input is taken.
        while not inflater.eof and (step := inflater.decompress(b"", _STEP)):
            yield step
    except zlib.error as error:
        raise BodyError(
            f"expected a gzip stream, found one that is damaged ({error})", where=where
        ) from error


def _inflater(response: Response, where: str) -> "zlib._Decompress | None":
    header = response.headers.get("content-encoding", "")
    codings = [coding.strip().lower() for coding in header.split(",") if coding.strip()]
    applied = [coding for coding in codings if coding != "identity"]
    if not applied:
        return None
    # Codings stack without limit in HTTP; each one multiplies what a small body can become.
    if applied not in (["gzip"], ["x-gzip"]):
        raise BodyError(
            f"expected a body coded as {ACCEPTED_CODINGS} at most once, found `{header[:80]!r}`",
            where=where,
            retryable=False,
        )
    return zlib.decompressobj(wbits=31)


def _content_length(response: Response, where: str) -> int | None:
    text = response.headers.get("content-length")
    if text is None or "transfer-encoding" in response.headers:
        return None
    # RFC 9110, 8.6: the same value may stand more than once.
    values = {value.strip() for value in text.split(",")}
    value = values.pop()
    if values or not (value.isascii() and value.isdigit() and len(value) < 19):
        raise BodyError(f"expected one Content-Length, found {text[:80]!r}", where=where)
    return int(value)


def _is_framed(response: Response) -> bool:
    headers = response.headers
    return (
        "content-length" in headers
        or "chunked" in headers.get("transfer-encoding", "").lower()
        or "gzip" in headers.get("content-encoding", "").lower()
    )


def _ends_like_a_page(body: bytes) -> bool:
    end = body[-1024:].rstrip().lower()
    return end.endswith(b"}") or b"</html>" in end


def _too_large(found: int, limit: int, where: str) -> BodyError:
    return BodyError(
        f"expected at most {limit} bytes, found {found} or more", where=where, retryable=False
    )
