"""Parts of files by range requests (RFC 9110, section 14), from servers that may lie about them.

A part counts only when Content-Range, its own length and what was asked for agree. A server without
ranges gives the whole file, which is taken up to a limit: wheels can have gigabytes.
"""

import re
from dataclasses import dataclass

from cudalock.index.address import shown_url
from cudalock.index.exchange import Answered, Exchange
from cudalock.index.failures import BodyError, RangeError

__all__ = ["WHOLE_FILE_LIMIT", "FetchedPart", "fetch_middle", "fetch_suffix"]

WHOLE_FILE_LIMIT = 32 * 1024 * 1024
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
    match = _CONTENT_RANGE.match(said)
    if match is None or headers.get("content-encoding", "identity").lower() != "identity":
        raise BodyError(
            f"expected one plain range of known place and length, found Content-Range {said[:80]!r}",
            where=where,
            retryable=False,
        )
    start, last, total = (int(text) for text in match.groups())
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
