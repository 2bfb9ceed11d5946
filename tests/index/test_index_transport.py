import socket
import threading
import time
from collections.abc import Iterator

import pytest

from cudalock.errors import UsageError
from cudalock.index.failures import TransportError
from cudalock.index.transport import HttpTransport, Request
from loopback import Asked, Reply, serve


@pytest.fixture
def transport() -> Iterator[HttpTransport]:
    transport = HttpTransport()
    yield transport
    transport.close()


def body(transport: HttpTransport, url: str, *, seconds: float = 10.0) -> bytes:
    response = transport.send(Request(url=url, seconds=seconds))
    try:
        return b"".join(response.chunks())
    finally:
        response.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def test_a_response_is_handed_out_raw(transport: HttpTransport) -> None:
    headers = {"Content-Encoding": "gzip", "X-Two": "a"}
    with serve(lambda _: Reply(203, b"not gzip", headers)) as site:
        response = transport.send(
            Request(url=site.url + "/a%2Bb+c?d=%20", headers={"Accept": "text/html"})
        )
        assert (response.status, b"".join(response.chunks())) == (203, b"not gzip")
        assert response.headers["content-encoding"] == "gzip"
        response.close()
    assert site.paths() == ["/a%2Bb+c?d=%20"]
    assert site.asked[0].headers == {
        "host": site.url.removeprefix("http://"),
        "accept": "text/html",
    }


def test_repeated_headers_are_joined(transport: HttpTransport) -> None:
    def answer(_: Asked) -> list[bytes]:
        return [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: br\r\n\r\n"]

    with serve(answer) as site:
        response = transport.send(Request(url=site.url))
        response.close()
    assert response.headers["content-encoding"] == "gzip, br"
    assert site.paths() == ["/"]


def test_redirects_are_not_followed(transport: HttpTransport) -> None:
    with serve(lambda _: Reply(302, b"", {"Location": "/elsewhere"})) as site:
        response = transport.send(Request(url=site.url + "/x"))
        response.close()
    assert (response.status, site.paths()) == (302, ["/x"])


def test_a_body_that_is_cut_is_a_failure_worth_another_try(transport: HttpTransport) -> None:
    short = Reply(200, b"short", length=10)
    with serve(lambda _: short) as site, pytest.raises(TransportError) as caught:
        body(transport, site.url)
    assert caught.value.retryable
    chunked = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"]
    with serve(lambda _: chunked) as site, pytest.raises(TransportError):
        body(transport, site.url)


def test_a_refused_connection_is_not_worth_another_try(transport: HttpTransport) -> None:
    url = f"http://127.0.0.1:{free_port()}/x"
    with pytest.raises(TransportError, match="refused") as caught:
        body(transport, url)
    assert (caught.value.retryable, caught.value.where) == (False, url)


def test_a_name_that_does_not_exist_is_said(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    with pytest.raises(TransportError, match="no such name") as caught:
        body(transport, "http://missing.invalid/")
    assert not caught.value.retryable


def test_a_tls_failure_is_not_worth_another_try_and_says_who_was_asked() -> None:
    with serve(lambda _: Reply()) as site:
        url = site.url.replace("http:", "https:") + "/x"
        transport = HttpTransport()
        with pytest.raises(TransportError, match="trusted TLS connection") as caught:
            body(transport, url)
        transport.close()
    assert not caught.value.retryable
    assert "the machine's trust store" in str(caught.value)
    assert site.asked == []


def test_certificates_come_from_the_given_environment() -> None:
    transport = HttpTransport(environ={"SSL_CERT_FILE": "/nowhere/ca.pem"})
    with pytest.raises(TransportError, match="No such file"):
        body(transport, "https://127.0.0.1:1/")


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n",
    ],
)
def test_a_server_that_drips_is_given_up_in_time(transport: HttpTransport, head: bytes) -> None:
    stop = threading.Event()

    def answer(_: Asked) -> Iterator[bytes]:
        # Each byte comes well within the time of one read; what ends this is the time of the request.
        start = head if head.endswith(b"\n") else b""
        yield start
        for byte in head if not start else b"x" * 10_000:
            yield bytes([byte])
            if stop.wait(0.02):
                return

    with serve(answer) as site:
        started = time.monotonic()
        with pytest.raises(TransportError, match="in time") as caught:
            body(transport, site.url, seconds=0.4)
        stop.set()
    assert caught.value.retryable
    assert time.monotonic() - started < 5


def test_connections_are_used_again(transport: HttpTransport) -> None:
    opened = set()

    def answer(asked: Asked) -> Reply:
        opened.add(threading.get_ident())
        return Reply(200, b"x")

    with serve(answer) as site:
        for _ in range(5):
            assert body(transport, site.url) == b"x"
    assert len(opened) == 1


def test_a_proxy_of_the_given_environment_is_used_and_no_proxy_obeyed() -> None:
    with (
        serve(lambda _: Reply(200, b"by proxy")) as proxy,
        serve(lambda _: Reply(200, b"direct")) as site,
    ):
        address = proxy.url.replace("http://", "http://me:secret@")
        through = HttpTransport(environ={"HTTP_PROXY": address})
        assert body(through, "http://elsewhere.invalid/x") == b"by proxy"
        through.close()
        for environ in (
            {"http_proxy": address, "no_proxy": "example.org, 127.0.0.1"},
            {"http_proxy": address, "NO_PROXY": "*"},
            {"https_proxy": address},
            {"HTTP_PROXY": address, "REQUEST_METHOD": "GET"},
        ):
            around = HttpTransport(environ=environ)
            assert body(around, site.url) == b"direct"
            around.close()
        other_port = HttpTransport(environ={"ALL_PROXY": proxy.url[7:], "NO_PROXY": "127.0.0.1:1"})
        assert body(other_port, site.url) == b"by proxy"
        other_port.close()
    assert proxy.asked[0].path == "http://elsewhere.invalid/x"
    assert proxy.asked[0].headers["proxy-authorization"].startswith("Basic ")


def test_a_proxy_that_is_none_is_the_persons_mistake() -> None:
    with pytest.raises(UsageError, match="http or https"):
        body(HttpTransport(environ={"ALL_PROXY": "socks5://127.0.0.1:1"}), "http://h.example.org/")


def test_a_closed_transport_opens_again(transport: HttpTransport) -> None:
    with serve(lambda _: Reply(200, b"x")) as site:
        assert body(transport, site.url) == b"x"
        transport.close()
        assert body(transport, site.url) == b"x"
