"""What is asked of indexes over HTTP: pages, files, parts of files, and hashes of whole ones.

The cache answers first; a stale page that has a validator is revalidated (RFC 9111, section 4.3). One
client is one snapshot: a page that it has read is not asked for again, however short-lived it says to be.
How a question gets through (redirects, retries, credentials) is known to `exchange.py`, how a body is read
to `body.py`; pages are parsed in `simple.py`.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from cudalock.index.address import Origin, shown_url
from cudalock.index.body import ACCEPTED_CODINGS
from cudalock.index.cache import Cache, CacheEntry, freshness_seconds
from cudalock.index.exchange import Answered, Exchange, Statistics
from cudalock.index.failures import OfflineError
from cudalock.index.flights import Flights
from cudalock.index.ranges import WHOLE_FILE_LIMIT, FetchedPart, fetch_middle, fetch_suffix
from cudalock.index.remote_file import RemoteFile
from cudalock.index.transport import HttpTransport, Transport
from cudalock.index.whole_files import HashedFile, hash_whole_file, is_unchanged

__all__ = ["Client", "FetchedPage", "FetchedPart", "open_client"]

# PEP 691: "clients ... SHOULD use the quality value to tell which they prefer".
_PAGE_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_PAGE_LIMIT = 64 * 1024 * 1024
_NOT_FOUND = frozenset({404})


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """A whole page; ``url`` is where it was found, for its relative links (no userinfo)."""

    url: str
    body: bytes
    content_type: str | None


class Client:
    """Asks indexes. Thread-safe; two threads with one question make one request.

    ``clock`` is monotonic, ``wall`` the time of day in seconds since 1970 (freshness of the cache,
    dates of Retry-After), ``jitter`` gives numbers from 0 to 1. ``deadline`` are the seconds one question
    may take, all tries together. ``auth`` gives user and password by origin. ``offline`` opens no
    connection and uses what the cache holds, of any age.
    """

    def __init__(
        self,
        transport: Transport | None = None,
        cache: Cache | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        offline: bool = False,
        retries: int = 3,
        deadline: float = 120.0,
        auth: Mapping[Origin, tuple[str, str]] | None = None,
    ) -> None:
        self._transport = HttpTransport() if transport is None else transport
        self._cache = cache
        self._offline = offline
        self._exchange = Exchange(
            transport=self._transport,
            clock=clock,
            wall=wall,
            sleep=sleep,
            jitter=jitter,
            retries=retries,
            deadline=deadline,
            auth=dict(auth or {}),
        )
        self._flights = Flights()
        self._lock = threading.Lock()
        # Pages this client has read: None when the cache has the body, which is not kept twice.
        self._read: dict[str, CacheEntry | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._transport.close()

    @property
    def statistics(self) -> Statistics:
        """Return the counts so far."""
        return self._exchange.statistics

    @property
    def offline(self) -> bool:
        """Whether no connection is opened."""
        return self._offline

    # Pages

    def fetch_page(self, url: str, *, absent: frozenset[int] = _NOT_FOUND) -> FetchedPage | None:
        """Return a page, None when the index answered with a status that means "absent".

        Raises `IndexAccessError` (its kinds are in `failures.py`) when there is no usable answer: a
        stale copy never stands in for one unless ``offline`` asks for it. Raises `UsageError` for an
        address that is none.
        """
        address = self._exchange.clean(url)
        key = f"page {address}"
        flight = f"{sorted(absent)} {address}"
        entry = self._flights.run(flight, lambda: self._page(address, key, absent))
        if entry.status != 200:
            return None
        return FetchedPage(url=entry.url, body=entry.body, content_type=entry.content_type)

    def _page(self, url: str, key: str, absent: frozenset[int]) -> CacheEntry:
        with self._lock:
            known, kept = key in self._read, self._read.get(key)
        if kept is None and self._cache is not None:
            kept = self._cache.load(key)
        if kept is not None and kept.status != 200 and kept.status not in absent:
            # Another definition took this status for "absent"; this one does not.
            kept = None
        if kept is not None and (known or self._offline or kept.is_fresh(self._exchange.wall())):
            self._exchange.count(cache_hits=1)
            return self._remember(key, kept, stored=self._cache is not None)
        if self._offline:
            raise OfflineError(
                "offline: no cached copy",
                where=shown_url(url),
            )
        entry = self._ask_page(url, kept, absent)
        stored = self._cache is not None and self._cache.store(key, entry)
        return self._remember(key, entry, stored=stored)

    def _remember(self, key: str, entry: CacheEntry, *, stored: bool) -> CacheEntry:
        with self._lock:
            self._read[key] = None if stored else entry
        return entry

    def _ask_page(self, url: str, kept: CacheEntry | None, absent: frozenset[int]) -> CacheEntry:
        headers = {"Accept": _PAGE_ACCEPT, "Accept-Encoding": ACCEPTED_CODINGS}
        if kept is not None and kept.etag is not None:
            headers["If-None-Match"] = kept.etag
        if kept is not None and kept.last_modified is not None:
            headers["If-Modified-Since"] = kept.last_modified
        conditional = kept is not None and kept.has_validator

        def read(answered: Answered) -> CacheEntry:
            response = answered.response
            found = response.headers
            fresh_for = freshness_seconds(found.get("cache-control"), found.get("age"))
            now = self._exchange.wall()
            if response.status == 304 and kept is not None:
                self._exchange.count(revalidated=1)
                # RFC 9111, 3.2: what the 304 does not say stays as it was.
                said = "cache-control" in found
                return replace(kept, stored_at=now, fresh_for=fresh_for if said else kept.fresh_for)
            if response.status != 200:
                return CacheEntry(
                    url=answered.kept_url,
                    status=response.status,
                    stored_at=now,
                    fresh_for=min(fresh_for, 600),
                )
            return CacheEntry(
                url=answered.kept_url,
                status=200,
                stored_at=now,
                fresh_for=fresh_for,
                body=self._exchange.read(answered, _PAGE_LIMIT),
                content_type=found.get("content-type"),
                etag=found.get("etag"),
                last_modified=found.get("last-modified"),
            )

        accepted = absent | {200} | ({304} if conditional else set())
        return self._exchange.ask(url, headers, read, accepted=accepted)

    # Files and their parts

    def fetch_whole(
        self, url: str, *, limit: int = WHOLE_FILE_LIMIT, absent: frozenset[int] = frozenset()
    ) -> bytes | None:
        """Return a file of at most ``limit`` bytes, None for a status in ``absent``; not cached."""
        address = self._online(url)

        def read(answered: Answered) -> bytes | None:
            if answered.response.status != 200:
                return None
            return self._exchange.read(answered, limit)

        return self._exchange.ask(
            address, {"Accept-Encoding": ACCEPTED_CODINGS}, read, accepted=absent | {200}
        )

    def fetch_range_suffix(self, url: str, count: int) -> FetchedPart:
        """Return the last ``count`` bytes of a file, or all of it where that is what the server gives.

        Raises `RangeError` where the server gives the whole file and it is over 32 MiB.
        """
        return fetch_suffix(self._exchange, self._online(url), count)

    def fetch_range(
        self, url: str, start: int, end: int, *, etag: str | None = None
    ) -> FetchedPart:
        """Return the bytes of a file from ``start`` to before ``end``, or all of the file.

        With ``etag`` a file that has changed since comes whole, as from a server without ranges.
        """
        return fetch_middle(self._exchange, self._online(url), start, end, etag)

    def open_file(self, url: str, *, size: int | None = None) -> RemoteFile:
        """Return a file of which parts are read; one request brings its end. Nothing is cached."""
        return RemoteFile(self._exchange, self._online(url), size=size)

    def stream_hash(
        self, url: str, progress: Callable[[int, int | None], None] | None = None
    ) -> HashedFile:
        """Return the sha256 of a whole file, which is streamed and not kept; see `whole_files.py`."""
        return hash_whole_file(self._exchange, self._online(url), progress)

    def is_unchanged(self, url: str, etag: str) -> bool:
        """Ask whether a file still has the bytes of a strong ETag, without downloading it."""
        return is_unchanged(self._exchange, self._online(url), etag)

    def _online(self, url: str) -> str:
        address = self._exchange.clean(url)
        if self._offline:
            raise OfflineError("offline: no cached copy", where=shown_url(address))
        return address

    # The cache, for what is derived from files

    def load_kept(self, key: str) -> bytes | None:
        """Return what was kept under a key by `keep`, if it is still good."""
        entry = None if self._cache is None else self._cache.load(key)
        if entry is None or not (self._offline or entry.is_fresh(self._exchange.wall())):
            return None
        self._exchange.count(cache_hits=1)
        return entry.body

    def page_addresses(self) -> list[str]:
        """Return the addresses of the project pages that the cache holds; nothing is asked."""
        return [] if self._cache is None else self._cache.page_addresses()

    def keep(self, key: str, data: bytes, *, seconds: float) -> None:
        """Keep bytes under a key, which must hold no credentials, for so many seconds."""
        if self._cache is not None:
            now = self._exchange.wall()
            self._cache.store(
                key, CacheEntry(url="", status=200, stored_at=now, fresh_for=seconds, body=data)
            )


def open_client(
    *,
    cache_dir: Path | None = None,
    offline: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Client:
    """Return a client over the real network.

    ``environ`` is where proxies and certificates are looked up; without it the machine decides.
    """
    return Client(
        HttpTransport(environ=environ),
        None if cache_dir is None else Cache(cache_dir),
        offline=offline,
    )
