"""The one seam to the network: send a request, get a status, headers and raw bytes.

Everything that decides (redirects, retries, credentials, codings, caching) is on this side of the
seam, in `client.py` and `body.py`; what is behind it can be exchanged by writing two small methods.

`HttpTransport` stands on httpcore, the engine under httpx. Measured on 400 requests of loopback with
25 ms added, 32 threads: httpx.Client 0.51 s (0.50 s of CPU), httpx.HTTPTransport 0.41 (0.36), httpcore
0.39 (0.33), http.client 0.37 (0.20), and 83 ms to import httpx against 40 for httpcore. What decides is
that httpcore lets the sockets be wrapped: a timeout a read never ends a server that sends one byte
at a time, so here each read gets what is left of the whole request's time.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from cudalock.errors import CudalockError
from cudalock.index.address import Origin, origin_of, shown_url, split_userinfo
from cudalock.index.failures import TransportError

if TYPE_CHECKING:
    import ssl

    import httpcore

__all__ = ["HttpTransport", "Request", "Response", "Transport"]

_CONNECTIONS = 32
_KEEP_ALIVE_SECONDS = 15.0
_CONNECT_SECONDS = 10.0
_READ_SECONDS = 30.0

# Alerts by which a server says that it failed, not that it refuses (RFC 8446, section 6.2).
_PASSING_ALERTS = ("ALERT_DECODE_ERROR", "ALERT_INTERNAL_ERROR", "ALERT_BAD_RECORD_MAC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A GET of a normal address (`address.split_userinfo`), to be answered within ``seconds``."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 60.0


class Response(Protocol):
    """A response whose body has not been read. Header names are in lower case, repeated ones joined."""

    @property
    def status(self) -> int: ...  # noqa: D102 - said above

    @property
    def headers(self) -> Mapping[str, str]: ...  # noqa: D102 - said above

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it comes, codings included; raise `TransportError`."""
        ...

    def close(self) -> None:
        """Give the connection back, or end it when the body was not read whole."""
        ...


class Transport(Protocol):
    """Sends requests. Thread-safe; follows no redirect, adds no credentials, decodes nothing."""

    def send(self, request: Request) -> Response:
        """Send a request and wait for the head of the response; raise `TransportError`."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...


class HttpTransport:
    """HTTP/1.1 over at most 32 connections, opened when the first request asks for one.

    ``environ`` is where proxies (``HTTPS_PROXY``, ``NO_PROXY`` …) and certificates (``SSL_CERT_FILE``,
    ``SSL_CERT_DIR``) are looked up; without it there is no proxy and the machine's own trust store
    decides. The environment is never read from here.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environ = dict(environ or {})
        self._clock = clock
        self._lock = threading.Lock()
        self._pools: dict[tuple[bool, str | None], httpcore.ConnectionPool] = {}
        self._deadline = _Deadline()
        self._trust = "the machine's trust store"

    def send(self, request: Request) -> Response:
        """Send a request; see `Transport`."""
        import httpcore  # noqa: PLC0415 - 40 ms that a run without a network does not pay

        origin = origin_of(request.url)
        parts = urlsplit(request.url)
        target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        timeout = {
            "connect": min(_CONNECT_SECONDS, request.seconds),
            "read": min(_READ_SECONDS, request.seconds),
            "write": min(_READ_SECONDS, request.seconds),
            "pool": request.seconds,
        }
        end = self._clock() + request.seconds
        self._deadline.at = end
        try:
            # The very first request finds out which certificates to trust, so it is inside too.
            response = self._pool(origin).handle_request(
                httpcore.Request(
                    "GET",
                    httpcore.URL(
                        scheme=origin.scheme, host=origin.host, port=parts.port, target=target
                    ),
                    headers=[("Host", parts.netloc), *request.headers.items()],
                    extensions={"timeout": timeout},
                )
            )
        except CudalockError:
            raise
        except Exception as error:
            # Errors of httpcore, sockets, TLS and proxies come through as they are: sorted there.
            raise self._failure(error, request.url) from error
        return _HttpResponse(response, request.url, end, self)

    def close(self) -> None:
        """End all connections; a later request opens new ones."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _pool(self, origin: Origin) -> "httpcore.ConnectionPool":
        import httpcore  # noqa: PLC0415 - as above

        secure = origin.scheme == "https"
        proxy = _proxy_for(origin, self._environ)
        with self._lock:
            pool = self._pools.get((secure, proxy))
            if pool is None:
                address, login = (None, None) if proxy is None else split_userinfo(proxy)
                pool = self._pools[secure, proxy] = httpcore.ConnectionPool(
                    ssl_context=self._tls_context() if secure else None,
                    proxy=None if address is None else httpcore.Proxy(address, auth=login),
                    max_connections=_CONNECTIONS,
                    max_keepalive_connections=_CONNECTIONS,
                    keepalive_expiry=_KEEP_ALIVE_SECONDS,
                    network_backend=_timed_backend(self._deadline, self._clock),
                )
            return pool

    def _tls_context(self) -> "ssl.SSLContext":
        import ssl  # noqa: PLC0415 - a run that the cache answers needs no sockets

        file, folder = self._environ.get("SSL_CERT_FILE"), self._environ.get("SSL_CERT_DIR")
        if file or folder:
            self._trust = f"SSL_CERT_FILE={file}" if file else f"SSL_CERT_DIR={folder}"
            return ssl.create_default_context(cafile=file or None, capath=folder or None)
        try:
            import truststore  # noqa: PLC0415 - only a TLS connection needs it

            return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        except (ImportError, NotImplementedError, OSError):
            # Python's own defaults read the certificates OpenSSL was built to look for.
            return ssl.create_default_context()

    def _failure(self, error: Exception, url: str) -> TransportError:
        """Word what went wrong and say whether trying again can help."""
        import socket  # noqa: PLC0415 - as above
        import ssl  # noqa: PLC0415 - as above

        import httpcore  # noqa: PLC0415 - as above

        where = shown_url(url)
        for cause in _causes(error):
            if isinstance(cause, ssl.SSLError):
                # A certificate stays what it is; what a server failed at by itself may not.
                return TransportError(
                    f"expected a trusted TLS connection (by {self._trust}), found: {cause}",
                    where=where,
                    retryable=str(cause.reason).endswith(_PASSING_ALERTS),
                )
            if isinstance(cause, socket.gaierror):
                return TransportError(
                    "expected a host, found no such name",
                    where=where,
                    retryable=cause.errno == socket.EAI_AGAIN,
                )
            if isinstance(cause, ConnectionRefusedError):
                return TransportError("the connection was refused", where=where, retryable=False)
        if isinstance(error, httpcore.TimeoutException):
            return TransportError("no answer came in time", where=where)
        if isinstance(error, httpcore.ProxyError):
            return TransportError(f"the proxy failed: {error}", where=where, retryable=False)
        if isinstance(error, (httpcore.NetworkError, httpcore.ProtocolError)):
            return TransportError(f"the connection failed: {str(error) or 'lost'}", where=where)
        return TransportError(
            f"the request could not be sent: {type(error).__name__}: {error}",
            where=where,
            retryable=False,
        )


class _Deadline(threading.local):
    """When the request that this thread is busy with must have ended."""

    at: float = float("inf")


class _HttpResponse:
    def __init__(
        self, response: "httpcore.Response", url: str, end: float, transport: HttpTransport
    ) -> None:
        self._response = response
        self._url = url
        self._end = end
        self._transport = transport
        headers: dict[str, str] = {}
        for raw_name, raw_value in response.headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self.status = response.status
        self.headers: Mapping[str, str] = headers

    def chunks(self) -> Iterator[bytes]:
        iterator = iter(self._response.iter_stream())
        while True:
            self._transport._deadline.at = self._end  # noqa: SLF001 - one class in two halves
            try:
                chunk = next(iterator)
            except StopIteration:
                return
            except Exception as error:
                # As for the request: every kind of failure is sorted into one of ours.
                raise self._transport._failure(error, self._url) from error  # noqa: SLF001 - as above
            yield chunk

    def close(self) -> None:
        self._response.close()


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    for _ in range(16):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _proxy_for(origin: Origin, environ: Mapping[str, str]) -> str | None:
    """Return the proxy the environment names for an origin, by the rules that curl and pip share."""

    def setting(name: str) -> str:
        return environ.get(name.lower()) or environ.get(name.upper()) or ""

    for entry in setting("no_proxy").split(","):
        name, _, port = entry.strip().lower().removeprefix("*").lstrip(".").partition(":")
        if entry.strip() == "*":
            return None
        if port and port != str(origin.port):
            continue
        if name and (origin.host == name or origin.host.endswith("." + name)):
            return None
    if origin.scheme == "http" and "REQUEST_METHOD" in environ and "http_proxy" not in environ:
        # In a CGI script HTTP_PROXY is a header that the visitor sent ("httpoxy").
        return None
    proxy = setting(f"{origin.scheme}_proxy") or setting("all_proxy")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _timed_backend(deadline: _Deadline, clock: Callable[[], float]) -> "httpcore.NetworkBackend":
    """Return sockets whose every wait ends when the whole request's time does."""
    import httpcore  # noqa: PLC0415 - the classes below cannot be named without it

    def left(timeout: float | None, expired: type[Exception]) -> float:
        remaining = deadline.at - clock()
        if remaining <= 0:
            raise expired("the time for the whole request is over")
        return remaining if timeout is None else min(timeout, remaining)

    class Stream(httpcore.NetworkStream):
        def __init__(self, stream: httpcore.NetworkStream) -> None:
            self._stream = stream

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            return self._stream.read(max_bytes, left(timeout, httpcore.ReadTimeout))

        def write(self, buffer: bytes, timeout: float | None = None) -> None:
            self._stream.write(buffer, left(timeout, httpcore.WriteTimeout))

        def close(self) -> None:
            self._stream.close()

        def start_tls(
            self,
            ssl_context: "ssl.SSLContext",
            server_hostname: str | None = None,
            timeout: float | None = None,
        ) -> httpcore.NetworkStream:
            wait = left(timeout, httpcore.ConnectTimeout)
            return Stream(self._stream.start_tls(ssl_context, server_hostname, wait))

        def get_extra_info(self, info: str) -> object:
            return self._stream.get_extra_info(info)

    class Backend(httpcore.SyncBackend):
        def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
        ) -> httpcore.NetworkStream:
            wait = left(timeout, httpcore.ConnectTimeout)
            return Stream(super().connect_tcp(host, port, wait, local_address, socket_options))

    return Backend()
