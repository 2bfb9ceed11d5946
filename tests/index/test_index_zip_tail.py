import io
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import archive_builder
from archive_builder import CENTRAL, END, LOCAL, edit
from builders import make_wheel
from cudalock.errors import CudalockError, WheelError
from cudalock.index.zip_tail import read_metadata_member

METADATA = b"Metadata-Version: 2.1\nName: left\nVersion: 1.0\n"
NAME = "left-1.0.dist-info/METADATA"


def make_zip(
    members: Iterable[tuple[str, bytes]] = ((NAME, METADATA),),
    *,
    method: int = zipfile.ZIP_DEFLATED,
    comment: bytes = b"",
) -> bytes:
    return archive_builder.make_zip(members, method=method, comment=comment)


def read(data: bytes, *, tail: int = 65536) -> bytes:
    found, _ = read_counted(data, tail=tail)
    return found


def read_counted(data: bytes, *, tail: int) -> tuple[bytes, list[tuple[int, int]]]:
    asked: list[tuple[int, int]] = []

    def fetch(start: int, end: int) -> bytes:
        assert 0 <= start < end <= len(data)
        asked.append((start, end))
        return data[start:end]

    found = read_metadata_member(
        data[max(0, len(data) - tail) :], total=len(data), fetch=fetch, where="the file"
    )
    return found, asked


def refused(data: bytes, words: str, *, tail: int = 65536) -> None:
    with pytest.raises(WheelError, match=words) as caught:
        read(data, tail=tail)
    assert caught.value.where == "the file"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_metadata_of_a_small_archive_needs_no_request(method: int) -> None:
    data = make_zip([("left.py", b"x = 1\n"), (NAME, METADATA), ("z", b"")], method=method)
    assert read_counted(data, tail=65536) == (METADATA, [])


def test_a_wheel_of_our_own(tmp_path: Path) -> None:
    data = make_wheel(tmp_path, "left", "1.0").read_bytes()
    assert read(data).startswith(b"Metadata-Version")


def test_a_comment_at_the_end_is_allowed() -> None:
    assert read(make_zip(comment=b"hello")) == METADATA


def test_metadata_before_the_tail_needs_one_request() -> None:
    data = make_zip([(NAME, METADATA), ("big", b"\0" * 5000)], method=zipfile.ZIP_STORED)
    found, asked = read_counted(data, tail=2000)
    assert (found, len(asked)) == (METADATA, 1)
    assert asked[0][0] == 0
    assert asked[0][1] < 1500


def test_a_directory_before_the_tail_brings_metadata_along() -> None:
    members = [(f"m{number}", b"") for number in range(100)]
    data = make_zip(
        [("big", b"\0" * 50_000), *members, (NAME, METADATA)], method=zipfile.ZIP_STORED
    )
    found, asked = read_counted(data, tail=100)
    assert (found, len(asked)) == (METADATA, 1)


def test_a_directory_and_metadata_far_from_each_other_need_two_requests() -> None:
    members = [(f"m{number}", b"") for number in range(100)]
    data = make_zip(
        [(NAME, METADATA), ("big", b"\0" * 90_000), *members], method=zipfile.ZIP_STORED
    )
    found, asked = read_counted(data, tail=100)
    assert (found, len(asked)) == (METADATA, 2)


def zip64() -> bytes:
    return archive_builder.make_zip64(NAME, METADATA)


def test_zip64_is_read() -> None:
    with zipfile.ZipFile(io.BytesIO(zip64())) as archive:
        assert archive.read(NAME) == METADATA
    assert read(zip64()) == METADATA


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda z: edit(z, b"PK\x06\x07", 8, "<Q", 1), "zip64 locator"),
        (lambda z: edit(z, b"PK\x06\x07", 4, "<I", 1), "zip64 locator"),
        (lambda z: edit(z, b"PK\x06\x07", 16, "<I", 2), "zip64 locator"),
        (lambda z: edit(z, b"PK\x06\x06", 0, "<I", 0), "zip64 locator"),
        (lambda z: edit(z, b"PK\x06\x07", 0, "<I", 0), "without its locator"),
        (lambda z: edit(z, b"PK\x06\x06", 4, "<Q", 45), "unknown length"),
        (lambda z: edit(z, END, 10, "<H", 7), "disagree"),
        (lambda z: edit(z, b"PK\x06\x06", 24, "<Q", 2), "split"),
        (lambda z: edit(z, b"\x77\x77", 8, "<H", 2), "without its zip64 values"),
        (lambda z: edit(z, b"\x77\x77", 10, "<H", 16), "without its zip64 values"),
    ],
)
def test_zip64_that_contradicts_itself_is_refused(
    change: Callable[[bytes], bytes], words: str
) -> None:
    refused(change(zip64()), words)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([], "0 METADATA"),
        ([("left.py", b"")], "0 METADATA"),
        ([("sub/left-1.0.dist-info/METADATA", METADATA)], "0 METADATA"),
        ([(NAME, METADATA), ("right-1.0.dist-info/METADATA", METADATA)], "2 METADATA"),
        ([(NAME, METADATA), ("right-1.0.dist-info/RECORD", b"")], "in 2 dist-info"),
        ([(NAME, METADATA), ("left-1.0.DIST-INFO/METADATA", METADATA)], "twice"),
        ([(NAME, METADATA), (NAME, METADATA)], "twice"),
        ([(NAME, METADATA), ("left-1.0.dist-info/metadata", METADATA)], "twice"),
        ([(NAME, METADATA), ("a", b""), ("a", b"")], "the name `a` twice"),
    ],
)
def test_there_is_exactly_one_metadata(members: list[tuple[str, bytes]], words: str) -> None:
    refused(make_zip(members), words)


def test_modules_may_differ_in_case() -> None:
    assert read(make_zip([("Left.py", b""), ("left.py", b""), (NAME, METADATA)])) == METADATA


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda z: z[:0], "no end"),
        (lambda z: z[:-1], "no end"),
        (lambda z: z + b"x", "bytes after"),
        (lambda z: b"#!/bin/sh\n" + z, "does not end where"),
        (lambda z: z[: z.index(END)] + b"x" + z[z.index(END) :], "does not end where"),
        (lambda z: edit(z, END, 4, "<H", 1), "split"),
        (lambda z: edit(z, END, 8, "<H", 2), "split"),
        (lambda z: edit(edit(z, END, 8, "<H", 2), END, 10, "<H", 2), "cut or damaged"),
        (lambda z: edit(edit(z, END, 8, "<H", 0), END, 10, "<H", 0), "more in it"),
        (lambda z: edit(z, END, 12, "<I", 0x7FFFFFFF), "a zip directory of 1 entries"),
        (lambda z: edit(z, END, 16, "<I", 5), "does not end where"),
        (lambda z: edit(z, END, 10, "<H", 0xFFFF), "without its locator"),
        (lambda z: edit(z, CENTRAL, 28, "<H", 5000), "cut or damaged"),
        (lambda z: edit(z, CENTRAL, 28, "<H", 0), "without a name"),
        (lambda z: edit(z, CENTRAL, 46, "<B", 0), "zero byte"),
        (lambda z: edit(z, CENTRAL, 0, "<I", 0), "cut or damaged"),
        (lambda z: edit(z, CENTRAL, 8, "<H", 1), "encrypted"),
        (lambda z: edit(z, CENTRAL, 10, "<H", 12), "method 12"),
        (lambda z: edit(z, CENTRAL, 16, "<I", 1), "checksum"),
        (lambda z: edit(z, CENTRAL, 20, "<I", 9), "lengths of METADATA that disagree"),
        (lambda z: edit(z, CENTRAL, 24, "<I", 5_000_000), "5000000 bytes"),
        (lambda z: edit(z, CENTRAL, 20, "<I", 5000), "inside the zip directory"),
        (lambda z: edit(z, CENTRAL, 42, "<I", 1), "before the first member"),
        (lambda z: edit(z, CENTRAL, 42, "<I", 0xFFFFFFFF), "without its zip64 values"),
        (lambda z: edit(z, LOCAL, 0, "<I", 0), "local header"),
        (lambda z: edit(z, LOCAL, 8, "<H", 0), "local header"),
        (lambda z: edit(z, LOCAL, 30, "<B", 65), "local header"),
        (lambda z: edit(z, LOCAL, 28, "<H", 500), "longer than can be"),
        (lambda z: edit(z, LOCAL, 22, "<I", 3), "lengths of METADATA that disagree"),
        (lambda z: edit(z, b"METADATA", 8, "<B", 0xFF), "does not inflate"),
        (lambda z: edit(z, CENTRAL, 24, "<I", 9), "disagree"),
    ],
)
def test_an_archive_that_lies_is_refused(change: Callable[[bytes], bytes], words: str) -> None:
    refused(change(make_zip()), words)


def test_what_follows_the_stream_inside_its_length_is_refused() -> None:
    # A byte goes between the stream and the directory, and every length says that it belongs.
    data = make_zip()
    at = data.index(CENTRAL)
    packed = int.from_bytes(data[at + 20 : at + 24], "little") + 1
    data = data[:at] + b"\0" + data[at:]
    data = edit(edit(data, CENTRAL, 20, "<I", packed), LOCAL, 18, "<I", packed)
    refused(edit(data, END, 16, "<I", at + 1), "followed by something")


def test_a_bomb_of_metadata_is_not_inflated() -> None:
    bomb = make_zip([(NAME, b" " * (5 << 20))])
    refused(bomb, "of which")
    small = edit(edit(bomb, CENTRAL, 24, "<I", 10), LOCAL, 22, "<I", 10)
    refused(small, "cut, longer")


def test_a_source_that_gives_less_than_asked_is_refused() -> None:
    data = make_zip([(NAME, METADATA), ("big", b"\0" * 5000)], method=zipfile.ZIP_STORED)
    with pytest.raises(WheelError, match="3 bytes where"):
        read_metadata_member(data[-500:], total=len(data), fetch=lambda *_: b"abc", where="w")


_SOUND = make_zip([("left.py", b"x = 1\n"), (NAME, METADATA)])


@given(st.lists(st.tuples(st.integers(0, len(_SOUND) - 1), st.integers(0, 255)), max_size=4))
def test_any_bytes_raise_only_our_errors(changes: list[tuple[int, int]]) -> None:
    data = bytearray(_SOUND)
    for place, value in changes:
        data[place] = value
    for tail in (len(data), 60):
        try:
            found = read(bytes(data), tail=tail)
        except CudalockError:
            continue
        assert found == METADATA


@given(st.binary(max_size=400), st.integers(0, 400))
def test_any_tail_raises_only_our_errors(data: bytes, more: int) -> None:
    with pytest.raises(CudalockError):
        read_metadata_member(
            data, total=len(data) + more, fetch=lambda a, b: bytes(b - a), where="w"
        )
