"""Whole files, streamed to be hashed and not kept, and whether a file is still the same.

A hash is of every byte: a transfer that is cut, or that may be, raises and gives none. Whether
bytes are the same is asked with the strong validator of the answer they came in (RFC 9110, 8.8.3 and
13.1.2): a weak one says that two versions mean the same, not that they are.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from cudalock.index.address import shown_url
from cudalock.index.body import BodyLimits, iter_body
from cudalock.index.exchange import Answered, Exchange
from cudalock.index.failures import BodyError
from cudalock.wheel.file_hash import HashedBytes

__all__ = ["HashedFile", "hash_whole_file", "is_unchanged"]

_WHEEL_LIMIT = 16 * 1024 * 1024 * 1024
_WHEEL_RATE = 4 * 1024
_NO_SECONDS_LIMIT = 30 * 24 * 3600.0
_STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]{0,256}"\Z')


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedFile:
    """What was read; ``etag`` is the strong validator of those bytes, if the server gave one."""

    hashed: HashedBytes
    etag: str | None


def hash_whole_file(
    exchange: Exchange, url: str, progress: Callable[[int, int | None], None] | None = None
) -> HashedFile:
    """Hash a file at a clean address, 64 KiB at a time.

    ``progress`` gets the bytes so far and the length, if it is known. There is no limit of time, but
    one of slowness: 4 KiB a second.
    """

    def read(answered: Answered) -> HashedFile:
        headers = answered.response.headers
        digest = hashlib.sha256()
        length = headers.get("content-length", "")
        total = int(length) if length.isdigit() and len(length) < 19 else None
        seen = 0
        limits = BodyLimits(decoded=_WHEEL_LIMIT, wire=_WHEEL_LIMIT, rate=_WHEEL_RATE)
        if total is None and "chunked" not in headers.get("transfer-encoding", ""):
            raise BodyError(
                "expected a file of known length, found one that may be cut",
                where=shown_url(url),
            )
        for step in iter_body(
            answered.response,
            limits,
            url=answered.url,
            clock=exchange.clock,
            on_wire=lambda count: exchange.count(wire=count),
        ):
            digest.update(step)
            seen += len(step)
            if progress is not None:
                progress(seen, total)
        etag = headers.get("etag", "")
        return HashedFile(
            hashed=HashedBytes(digest.hexdigest(), seen),
            etag=etag if _STRONG_ETAG.match(etag) else None,
        )

    return exchange.ask(
        url,
        {"Accept-Encoding": "identity"},
        read,
        accepted=frozenset({200}),
        seconds=_NO_SECONDS_LIMIT,
    )


def is_unchanged(exchange: Exchange, url: str, etag: str) -> bool:
    """Ask whether the bytes at an address are those of a strong validator; nothing is downloaded."""
    # A server that has other bytes answers with the first of them, and one without ranges with all,
    # which are left unread.
    headers = {"Accept-Encoding": "identity", "If-None-Match": etag, "Range": "bytes=0-0"}
    return exchange.ask(
        url,
        headers,
        lambda answered: answered.response.status == 304,
        accepted=frozenset({200, 206, 304}),
    )
