"""One question to a server until it is answered: redirects, credentials, retries, limits of time.

What an answer means and whether it is kept is decided in `client.py`; here a request becomes either
a value read from a response or one typed error. Redirects are followed by hand, because credentials
belong to one origin (scheme, host and port) and no library keeps to that for every header: measured,
httpx forwards `Proxy-Authorization` and custom headers to another host.
"""

import base64
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cudalock.errors import IndexAccessError
from cudalock.index.address import Origin, join_url, origin_of, shown_url, split_userinfo
from cudalock.index.body import BodyLimits, read_body
from cudalock.index.failures import BodyError, HttpStatusError, RedirectError, TransportError
from cudalock.index.retries import RETRIED_STATUSES, retry_delay
from cudalock.index.transport import Request, Response, Transport

__all__ = ["Answered", "Exchange", "Statistics"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_REDIRECTS_LIMIT = 5
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What the network and the cache were used for so far. ``bytes`` are those on the wire."""

    requests: int = 0
    cache_hits: int = 0
    revalidated: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A response with an accepted status, at ``url`` after redirects, body unread."""

    response: Response
    url: str
    until: float

    @property
    def kept_url(self) -> str:
        """Return where relative links start; a query, often a signature or a token, is left out."""
        return self.url.partition("?")[0]


@dataclass(slots=True)
class Exchange:
    """Asks over a transport. Thread-safe; each call blocks until there is an answer or an error.

    ``deadline`` are the seconds all tries of one question may take together. ``auth`` maps an origin
    to user and password; what stands in an address that is asked for is added to it.
    """

    transport: Transport
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    retries: int = 3
    deadline: float = 120.0
    user_agent: str = "cudalock"
    auth: dict[Origin, tuple[str, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _counts: Statistics = field(default_factory=Statistics)

    @property
    def statistics(self) -> Statistics:
        """Return the counts so far; they never go down."""
        with self._lock:
            return self._counts

    def count(
        self, *, requests: int = 0, cache_hits: int = 0, revalidated: int = 0, wire: int = 0
    ) -> None:
        """Add to the counts."""
        with self._lock:
            old = self._counts
            self._counts = replace(
                old,
                requests=old.requests + requests,
                cache_hits=old.cache_hits + cache_hits,
                revalidated=old.revalidated + revalidated,
                bytes=old.bytes + wire,
            )

    def clean(self, url: str) -> str:
        """Return an address without userinfo, which is remembered for its origin and nothing else.

        Raises `UsageError` for what is no http or https address.
        """
        address, credentials = split_userinfo(url)
        if credentials is not None:
            with self._lock:
                self.auth[origin_of(address)] = credentials
        return address

    def ask(
        self,
        url: str,
        headers: Mapping[str, str],
        read: Callable[[Answered], _Value],
        *,
        accepted: frozenset[int],
        seconds: float | None = None,
    ) -> _Value:
        """Ask a clean address until ``read`` returns; it gets responses of an ``accepted`` status.

        An error of the body or the connection, and a status that says "later", is tried again while
        tries and time are left. Raises `TransportError`, `BodyError`, `HttpStatusError`,
        `RedirectError`, and what ``read`` raises.
        """

        def take(answered: Answered) -> _Value:
            try:
                return read(answered)
            finally:
                answered.response.close()

        return self._until_answered(url, headers, take, accepted=accepted, seconds=seconds)

    def open(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        accepted: frozenset[int],
        seconds: float | None = None,
    ) -> Answered:
        """Ask a clean address like `ask`, and leave the body to be read; the caller closes it."""
        return self._until_answered(
            url, headers, lambda answered: answered, accepted=accepted, seconds=seconds
        )

    def _until_answered(
        self,
        url: str,
        headers: Mapping[str, str],
        take: Callable[[Answered], _Value],
        *,
        accepted: frozenset[int],
        seconds: float | None,
    ) -> _Value:
        until = self.clock() + (self.deadline if seconds is None else seconds)
        attempt = 0
        while True:
            retry_after = None
            try:
                answered = self._follow(url, headers, until)
                status = answered.response.status
                if status in accepted:
                    return take(answered)
                retry_after = answered.response.headers.get("retry-after")
                answered.response.close()
                failure: IndexAccessError = HttpStatusError(
                    f"expected an answer, found HTTP status {status}",
                    status=status,
                    where=shown_url(url),
                )
                if status not in RETRIED_STATUSES:
                    raise failure
            except (TransportError, BodyError) as error:
                if not error.retryable:
                    raise
                failure = error
            delay = retry_delay(attempt, retry_after, now=self.wall(), jitter=self.jitter())
            attempt += 1
            if attempt > self.retries or self.clock() + delay >= until:
                _tell_tries(failure, attempt)
                raise failure
            self.sleep(delay)

    def _follow(self, url: str, headers: Mapping[str, str], until: float) -> Answered:
        asked = url
        for _ in range(_REDIRECTS_LIMIT + 1):
            self.count(requests=1)
            left = until - self.clock()
            if left <= 0:
                raise TransportError("no answer came in time", where=shown_url(asked))
            response = self.transport.send(
                Request(url=url, headers=self._headers(url, headers), seconds=left)
            )
            if response.status not in _REDIRECTS:
                return Answered(response=response, url=url, until=until)
            location = response.headers.get("location", "")
            response.close()
            url = self._redirected(asked, url, location)
        raise RedirectError(
            f"expected at most {_REDIRECTS_LIMIT} redirects, found more", where=shown_url(asked)
        )

    def _redirected(self, asked: str, url: str, location: str) -> str:
        found = join_url(url, location) if location else None
        if found is None:
            # Userinfo in a redirect would be the server's choice of what we send elsewhere.
            raise RedirectError(
                "expected a redirect to an http or https address without userinfo,"
                f" found one to `{shown_url(location)[:200]}`",
                where=shown_url(asked),
            )
        if origin_of(url).scheme == "https" and origin_of(found).scheme != "https":
            raise RedirectError(
                f"expected a redirect that stays on https, found one to `{shown_url(found)[:200]}`",
                where=shown_url(asked),
            )
        return found

    def _headers(self, url: str, headers: Mapping[str, str]) -> dict[str, str]:
        sent = {"User-Agent": self.user_agent, **headers}
        with self._lock:
            credentials = self.auth.get(origin_of(url))
        if credentials is not None:
            # RFC 7617: the user's name and the password, joined by a colon, in base64.
            token = base64.b64encode(":".join(credentials).encode()).decode("ascii")
            sent["Authorization"] = f"Basic {token}"
        return sent

    def read(self, answered: Answered, limit: int, *, framing_required: bool = True) -> bytes:
        """Read a body of at most ``limit`` bytes to its end, within the time of its question."""
        return read_body(
            answered.response,
            BodyLimits(decoded=limit, wire=limit, until=answered.until),
            url=answered.url,
            clock=self.clock,
            on_wire=lambda count: self.count(wire=count),
            framing_required=framing_required,
        )


def _tell_tries(failure: IndexAccessError, tries: int) -> None:
    if tries > 1:
        failure.message = f"{failure.message}; tried {tries} times"
        failure.args = (failure.message,)
