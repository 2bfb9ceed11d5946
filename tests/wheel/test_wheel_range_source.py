"""Sources of bytes: what a reader may rely on, and that a source which lies is found out."""

import io
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import IndexAccessError, WheelError
from cudalock.wheel.range_source import BytesSource, CountingSource, FileSource, RangeSource

_DATA = bytes(range(256)) * 1000


def _sources(tmp_path: Path) -> list[RangeSource]:
    path = tmp_path / "file"
    path.write_bytes(_DATA)
    return [
        BytesSource(_DATA, where="here"),
        FileSource(io.BytesIO(_DATA), where="here"),
        CountingSource(BytesSource(_DATA, where="here")),
    ]


def test_every_source_gives_the_same_bytes(tmp_path: Path) -> None:
    for source in _sources(tmp_path):
        assert (source.size, source.where) == (len(_DATA), "here")
        assert source.read(3, 70_000) == _DATA[3:70_000]
        assert b"".join(source.stream(3, 200_001)) == _DATA[3:200_001]
        assert list(source.stream(5, 5)) == []


@given(st.integers(0, len(_DATA)), st.integers(0, len(_DATA)))
def test_a_stream_is_what_a_read_is(one: int, other: int) -> None:
    start, end = sorted((one, other))
    source = CountingSource(BytesSource(_DATA))
    assert b"".join(source.stream(start, end)) == source.read(start, end)
    assert source.bytes_read == 2 * (end - start)


def test_a_stream_that_is_closed_early_has_read_no_more() -> None:
    source = CountingSource(BytesSource(_DATA))
    stream = source.stream(0, len(_DATA))
    next(stream)
    stream.close()
    assert 0 < source.bytes_read <= 64 * 1024


class _Lying:
    size = 100
    where = "the liar"

    def __init__(self, count: int) -> None:
        self._count = count

    def read(self, start: int, end: int) -> bytes:
        return bytes(self._count + 0 * (end - start))

    def stream(self, start: int, end: int) -> Generator[bytes, None, None]:
        yield self.read(start, end)


@pytest.mark.parametrize("count", [9, 11])
def test_a_source_that_gives_more_or_less_than_asked_is_refused(count: int) -> None:
    source = CountingSource(_Lying(count))
    with pytest.raises(WheelError, match=f"{count} bytes where 10") as caught:
        source.read(0, 10)
    assert caught.value.where == "the liar"
    with pytest.raises(WheelError, match=f"{count} bytes where 10"):
        list(source.stream(0, 10))


class _Broken(io.BytesIO):
    def __init__(self, failing: str) -> None:
        super().__init__(b"abc")
        self._failing = failing

    def seek(self, place: int, whence: int = 0) -> int:
        if self._failing == "seek":
            raise OSError(29, "Illegal seek")
        return super().seek(place, whence)

    def read(self, count: int | None = -1) -> bytes:
        raise OSError(5, "Input/output error", count)


def test_a_file_that_cannot_be_read_is_no_wheel_that_lies() -> None:
    with pytest.raises(IndexAccessError, match="Illegal seek"):
        FileSource(_Broken("seek"), where="x")
    with pytest.raises(IndexAccessError, match="Input/output error") as caught:
        FileSource(_Broken("read"), where="x").read(0, 1)
    assert caught.value.where == "x"
