import gzip
import resource
import zlib
from collections.abc import Iterable, Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import CudalockError
from cudalock.index.body import BodyLimits, iter_body, read_body
from cudalock.index.failures import BodyError

URL = "https://user:canary@h.example.org/x?canary"
PAGE = b"<html>" + b"".join(b"<a href=left-%d>x</a>\n" % i for i in range(60)) + b"</html>"
WIDE = BodyLimits(decoded=1 << 20, wire=1 << 20)


class Given:
    """A response that is already here; the transport's own tests use real ones."""

    status = 200

    def __init__(self, chunks: Iterable[bytes], headers: Mapping[str, str] | None = None) -> None:
        self.headers = dict(headers or {})
        self._chunks = chunks

    def chunks(self) -> Iterator[bytes]:
        yield from self._chunks

    def close(self) -> None:
        pass


def read(
    body: bytes | Iterable[bytes],
    limits: BodyLimits = WIDE,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    chunks = [body] if isinstance(body, bytes) else body
    return read_body(Given(chunks, headers), limits, url=URL)


def framed(body: bytes, coding: str = "gzip") -> dict[str, str]:
    return {"content-encoding": coding, "content-length": str(len(body))}


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP", "identity, gzip", " gzip ,"])
def test_gzip_is_undone_here(coding: str) -> None:
    packed = gzip.compress(PAGE, mtime=0)
    assert read(packed, headers=framed(packed, coding)) == PAGE
    assert read([bytes([byte]) for byte in packed], headers=framed(packed)) == PAGE


@pytest.mark.parametrize("coding", ["", "identity", "identity, identity"])
def test_a_body_without_a_coding_is_as_it_is(coding: str) -> None:
    assert read(PAGE, headers=framed(PAGE, coding)) == PAGE


def test_a_gzip_page_cut_at_any_byte_is_an_error_whatever_length_it_announces() -> None:
    packed = gzip.compress(PAGE, mtime=0)
    for length in range(len(packed)):
        cut = packed[:length]
        with pytest.raises(BodyError) as caught:
            read(cut, headers=framed(cut))
        assert caught.value.retryable
        with pytest.raises(BodyError):
            read(cut, headers={"content-encoding": "gzip"})


def test_a_gzip_page_with_any_byte_flipped_is_an_error_or_the_same_page() -> None:
    packed = gzip.compress(PAGE, mtime=0)
    for place in range(len(packed)):
        damaged = packed[:place] + bytes([packed[place] ^ 0x41]) + packed[place + 1 :]
        try:
            assert read(damaged, headers=framed(damaged)) == PAGE
        except BodyError:
            continue


@pytest.mark.parametrize("more", [b"x", gzip.compress(b"<a href=other>x</a>", mtime=0)])
def test_bytes_after_the_gzip_stream_are_an_error(more: bytes) -> None:
    body = gzip.compress(PAGE, mtime=0) + more
    with pytest.raises(BodyError, match="after the end of the gzip stream"):
        read(body, headers=framed(body))


@pytest.mark.parametrize(
    "coding", ["br", "deflate", "zstd", "gzip, gzip", "gzip, br", "gzip,x-gzip"]
)
def test_a_coding_that_was_not_asked_for_or_two_are_refused(coding: str) -> None:
    with pytest.raises(BodyError, match="at most once") as caught:
        read(PAGE, headers=framed(PAGE, coding))
    assert not caught.value.retryable


def test_a_body_that_does_not_have_the_announced_length_is_an_error() -> None:
    for length in (len(PAGE) - 1, len(PAGE) + 1):
        with pytest.raises(BodyError, match=f"expected {length} bytes, found {len(PAGE)}"):
            read(PAGE, headers={"content-length": str(length)})
    assert read(PAGE, headers={"content-length": f"{len(PAGE)}, {len(PAGE)}"}) == PAGE


@pytest.mark.parametrize("length", ["-1", "1, 2", "1e3", "x", "", "9" * 30, "\u0661"])
def test_a_length_that_is_none_is_an_error(length: str) -> None:
    with pytest.raises(BodyError, match="Content-Length"):
        read(PAGE, headers={"content-length": length})


def test_a_body_that_only_the_end_of_the_connection_ends_must_end_like_a_page() -> None:
    assert read(PAGE) == PAGE
    assert read(PAGE + b"\n<!--TIMESTAMP 1-->") == PAGE + b"\n<!--TIMESTAMP 1-->"
    assert read(b'{"files": []}\n') == b'{"files": []}\n'
    for length in range(len(PAGE)):
        with pytest.raises(BodyError, match="the server closed the connection"):
            read(PAGE[:length])
    chunked = {"transfer-encoding": "chunked"}
    assert read(b"<a>x</a>", headers=chunked) == b"<a>x</a>"


def test_limits_hold_on_the_wire_and_after_decoding() -> None:
    narrow = BodyLimits(decoded=100, wire=50)
    with pytest.raises(BodyError, match="expected at most 50 bytes, found 51"):
        read(b"x", narrow, {"content-length": "51"})
    with pytest.raises(BodyError, match="expected at most 50 bytes"):
        read([b"x" * 30] * 2, narrow)
    packed = gzip.compress(b"x" * 101, mtime=0)
    with pytest.raises(BodyError, match="expected at most 100 bytes") as caught:
        read(packed, narrow, framed(packed))
    assert not caught.value.retryable


def test_a_bomb_is_refused_before_it_fills_the_memory() -> None:
    compressor = zlib.compressobj(1, wbits=31)
    block = bytes(1 << 20)
    packed = b"".join(compressor.compress(block) for _ in range(128)) + compressor.flush()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BodyError, match="a bomb"):
        read(packed, BodyLimits(decoded=1 << 30, wire=1 << 26), framed(packed))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024


def test_a_slow_body_is_given_up() -> None:
    now = [0.0]

    def drip() -> Iterator[bytes]:
        while True:
            now[0] += 0.25
            yield b"x"

    def slow(limits: BodyLimits) -> str:
        now[0] = 0.0
        with pytest.raises(BodyError) as caught:
            read_body(Given(drip()), limits, url=URL, clock=lambda: now[0])
        assert caught.value.retryable
        return caught.value.message

    assert "a second" in slow(BodyLimits(decoded=1 << 20, wire=1 << 20))
    assert now[0] < 11
    assert "the time was over" in slow(BodyLimits(decoded=1 << 20, wire=1 << 20, until=5.0))
    assert now[0] < 6


def test_bytes_on_the_wire_are_told_and_steps_are_small() -> None:
    packed = gzip.compress(bytes(1 << 20), mtime=0)
    told: list[int] = []
    steps = list(iter_body(Given([packed], framed(packed)), WIDE, url=URL, on_wire=told.append))
    assert sum(told) == len(packed)
    assert max(len(step) for step in steps) <= 65536
    assert sum(len(step) for step in steps) == 1 << 20


@given(
    st.lists(st.binary(max_size=64), max_size=6),
    st.sampled_from([{}, {"content-encoding": "gzip"}, {"content-length": "7"}]),
)
def test_any_bytes_raise_only_our_errors_without_a_secret(
    chunks: list[bytes], headers: dict[str, str]
) -> None:
    try:
        read(chunks, headers=headers)
    except CudalockError as error:
        message = str(error)
        assert "canary" not in message
