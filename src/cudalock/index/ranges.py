"""Parts of files by range requests (RFC 9110, section 14), from servers that may lie about them.

A part counts only when Content-Range, its own length and what was asked for agree. A server without
ranges gives the whole file, which is taken up to a limit: wheels can have gigabytes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cudalock.index.address import shown_url
from cudalock.index.body import BodyLimits, iter_body
from cudalock.index.exchange import Answered, Exchange
from cudalock.index.failures import BodyError, RangeError, TransportError

__all__ = ["WHOLE_FILE_LIMIT", "FetchedPart", "fetch_middle", "fetch_suffix", "stream_middle"]

WHOLE_FILE_LIMIT = 32 * 1024 * 1024
_NO_SECONDS_LIMIT = 30 * 24 * 3600.0
# Bytes a second below which a stream counts as stuck.
_STREAM_RATE = 4 * 1024
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPart:
    """The bytes of a file from ``start``, of ``total``. ``etag`` is set when it is a strong one."""

    data: bytes
    start: int
    total: int
    etag: str | None


def fetch_suffix(exchange: Exchange, url: str, count: int) -> FetchedPart:
    """Return the last ``count`` bytes of a file, or all of it where that is what the server gives."""
    part = _fetch_part(exchange, url, f"bytes=-{count}", None)
    if part is None:
        # 416: the server takes a suffix longer than the file to be wrong; the RFC does not.
        part = exchange.ask(
            url,
            {"Accept-Encoding": "identity"},
            lambda answered: _read_whole(exchange, answered),
            accepted=frozenset({200}),
        )
    at_end = part.start + len(part.data) == part.total
    if not at_end or (part.start > 0 and len(part.data) != count):
        raise BodyError(
            f"expected the last {count} bytes of {part.total}, found {len(part.data)} from {part.start}",
            where=shown_url(url),
        )
    return part


def fetch_middle(
    exchange: Exchange, url: str, start: int, end: int, etag: str | None
) -> FetchedPart:
    """Return the bytes from ``start`` to before ``end``, or all of the file.

    With ``etag`` a file that has changed since comes whole, as from a server without ranges.
    """
    part = _fetch_part(exchange, url, f"bytes={start}-{end - 1}", etag)
    if part is None:
        raise RangeError(
            f"expected bytes {start} to {end}, found that there are none", where=shown_url(url)
        )
    whole = part.start == 0 and len(part.data) == part.total
    if not whole and (part.start != start or len(part.data) != end - start):
        raise BodyError(
            f"expected bytes {start} to {end}, found {len(part.data)} from {part.start}",
            where=shown_url(url),
        )
    return part


def stream_middle(
    exchange: Exchange, url: str, start: int, end: int, *, total: int, etag: str | None
) -> Iterator[bytes]:
    """Yield the bytes from ``start`` to before ``end`` of a file of ``total``, in steps of 64 KiB at most.

    One request, and one more each time that the connection breaks after bytes have come, up to the
    exchange's number of tries. Closing the iterator ends the transfer. There is no limit of time, but
    one of slowness. Raises `RangeError` where the server has no ranges and ``start`` is far into the
    file, `BodyError` when the file has changed since ``etag`` or ``total`` was read.
    """
    place, failures = start, 0
    while place < end:
        answered = exchange.open(
            url,
            {"Range": f"bytes={place}-{end - 1}", "Accept-Encoding": "identity"}
            | ({} if etag is None else {"If-Range": etag}),
            accepted=frozenset({200, 206}),
            seconds=_NO_SECONDS_LIMIT,
        )
        begun = place
        try:
            for step in _stream_answer(exchange, answered, (place, end), total):
                place += len(step)
                yield step
        except (BodyError, TransportError) as error:
            failures += 1
            if not error.retryable or place == begun or failures > exchange.retries:
                raise
        finally:
            answered.response.close()


def _stream_answer(
    exchange: Exchange, answered: Answered, span: tuple[int, int], total: int
) -> Iterator[bytes]:
    where = shown_url(answered.url)
    headers = answered.response.headers
    start, end = span
    skip = 0
    if answered.response.status == 206:
        found = _content_range(headers.get("content-range", ""))
        if found != (start, end - 1, total) or _is_coded(headers):
            raise BodyError(
                f"expected bytes {start} to {end} of {total}, found Content-Range"
                f" {headers.get('content-range', '')[:80]!r}",
                where=where,
                retryable=False,
            )
    else:
        if headers.get("content-length") != str(total) or _is_coded(headers):
            raise BodyError(
                f"expected the file of {total} bytes, found that it changed while it was read",
                where=where,
                retryable=False,
            )
        if start > WHOLE_FILE_LIMIT:
            raise RangeError(
                f"expected a part of a file from {start} on, found all of its {total} bytes",
                where=where,
            )
        skip = start
    limits = BodyLimits(decoded=total, wire=total, rate=_STREAM_RATE)
    left = end - start
    for step in iter_body(
        answered.response,
        limits,
        url=answered.url,
        clock=exchange.clock,
        on_wire=lambda count: exchange.count(wire=count),
    ):
        wanted = step[skip : skip + left]
        skip = max(0, skip - len(step))
        left -= len(wanted)
        if wanted:
            yield wanted
        if not left:
            return


def _is_coded(headers: Mapping[str, str]) -> bool:
    return headers.get("content-encoding", "identity").lower() != "identity"


def _content_range(said: str) -> tuple[int, int, int] | None:
    match = _CONTENT_RANGE.match(said.strip())
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def _fetch_part(exchange: Exchange, url: str, wanted: str, etag: str | None) -> FetchedPart | None:
    headers = {"Range": wanted, "Accept-Encoding": "identity"}
    if etag is not None:
        headers["If-Range"] = etag

    def read(answered: Answered) -> FetchedPart | None:
        if answered.response.status == 416:
            return None
        if answered.response.status == 200:
            return _read_whole(exchange, answered)
        return _read_part(exchange, answered)

    return exchange.ask(url, headers, read, accepted=frozenset({200, 206, 416}))


def _read_whole(exchange: Exchange, answered: Answered) -> FetchedPart:
    length = answered.response.headers.get("content-length", "")
    if length.isdigit() and len(length) < 19 and int(length) > WHOLE_FILE_LIMIT:
        raise RangeError(
            f"expected a part of a file, found all of its {length} bytes; at most"
            f" {WHOLE_FILE_LIMIT} are read so",
            where=shown_url(answered.url),
        )
    data = exchange.read(answered, WHOLE_FILE_LIMIT)
    return _part(answered, data, 0, len(data))


def _read_part(exchange: Exchange, answered: Answered) -> FetchedPart:
    where = shown_url(answered.url)
    headers = answered.response.headers
    said = headers.get("content-range", "").strip()
    found = _content_range(said)
    if found is None or _is_coded(headers):
        raise BodyError(
            f"expected one plain range of known place and length, found Content-Range {said[:80]!r}",
            where=where,
            retryable=False,
        )
    start, last, total = found
    data = exchange.read(answered, WHOLE_FILE_LIMIT, framing_required=False)
    if not (start <= last < total and len(data) == last - start + 1):
        raise BodyError(
            f"expected Content-Range {said!r} to be true, found {len(data)} bytes", where=where
        )
    return _part(answered, data, start, total)


def _part(answered: Answered, data: bytes, start: int, total: int) -> FetchedPart:
    etag = answered.response.headers.get("etag")
    # RFC 9110, 13.1.5: "a client MUST NOT generate an If-Range header field containing an entity tag
    # that is marked as weak".
    strong = etag is not None and etag.startswith('"')
    return FetchedPart(data=data, start=start, total=total, etag=etag if strong else None)
