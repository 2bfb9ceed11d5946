"""The zip directory and its members as streams: what is read, and what is refused."""

import zipfile
from collections.abc import Callable, Generator, Iterable

import pytest

from archive_builder import CENTRAL, END, LOCAL, edit, make_zip, make_zip64
from cudalock.errors import WheelError
from cudalock.wheel.range_source import BytesSource, CountingSource
from cudalock.wheel.zip_directory import ZipDirectory, parse_members, read_directory
from cudalock.wheel.zip_member import CHUNK, MemberReader

_MEMBERS = [("a/left.so", b"left" * 1000), ("b.py", b"x = 1\n"), ("empty", b"")]


class _Recording(BytesSource):
    """Notes what is asked for; gives streams in pieces of which some are empty."""

    def __init__(self, data: bytes, *, cut: int | None = None) -> None:
        super().__init__(data, where="the file")
        self.reads: list[tuple[int, int]] = []
        self.streams: list[tuple[int, int]] = []
        self._cut = cut

    def read(self, start: int, end: int) -> bytes:
        self.reads.append((start, end))
        return super().read(start, end)

    def stream(self, start: int, end: int) -> Generator[bytes, None, None]:
        self.streams.append((start, end))
        for piece in super().stream(start, end):
            yield b""
            yield piece[: self._cut]


def _read(data: bytes) -> ZipDirectory:
    return read_directory(BytesSource(data, where="the file"))


def _unpack(data: bytes, name: str) -> bytes:
    source = BytesSource(data, where="the file")
    directory = read_directory(source)
    member = next(member for member in directory.members if member.name == name)
    return b"".join(MemberReader(source, directory).chunks(member))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_directory_names_every_member(method: int) -> None:
    data = make_zip(_MEMBERS, method=method)
    directory = _read(data)
    assert [(m.name, m.size) for m in directory.members] == [(n, len(c)) for n, c in _MEMBERS]
    assert data[directory.start : directory.start + 4] == CENTRAL
    for name, content in _MEMBERS:
        assert _unpack(data, name) == content


def test_a_small_directory_is_one_read_and_a_large_one_two() -> None:
    for count, reads in ((10, 1), (3000, 2)):
        source = _Recording(make_zip((f"{n:080}", b"") for n in range(count)))
        assert len(read_directory(source).members) == count
        assert len(source.reads) == reads


def test_the_longest_comment_there_can_be_is_read_past() -> None:
    assert len(_read(make_zip(_MEMBERS, comment=b"c" * 65535)).members) == 3


def test_zip64_is_read() -> None:
    data = make_zip64("left.so", b"left")
    assert _unpack(data, "left.so") == b"left"


@pytest.mark.parametrize(
    ("name", "flags", "shown"),
    [("größe.so", None, "größe.so"), ("größe.so", 0, "gr├╢├ƒe.so")],
)
def test_names_are_told_in_their_own_encoding(name: str, flags: int | None, shown: str) -> None:
    data = make_zip([(name, b"")])
    if flags is not None:
        data = edit(data, CENTRAL, 8, "<H", flags)
    assert _read(data).members[0].name == shown
    assert _read(data).members[0].raw_name == "größe.so".encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no end"),
        (b"MZ" * 100, "no end"),
        (make_zip([("a", b""), ("a", b"")]), "the name `a` twice"),
        (make_zip([("x-1.dist-info/A", b""), ("x-1.dist-info/a", b"")]), "twice"),
        (edit(make_zip(_MEMBERS), CENTRAL, 42, "<I", 1), "before the first"),
        (edit(make_zip(_MEMBERS), CENTRAL, 42, "<I", 1, which=1), "overlaps"),
        (edit(make_zip(_MEMBERS), CENTRAL, 42, "<I", 0, which=1), "overlaps"),
        (edit(make_zip(_MEMBERS), CENTRAL, 20, "<I", 40_000), "overlaps"),
        (edit(make_zip(_MEMBERS), END, 10, "<H", 9), "split"),
    ],
)
def test_an_archive_that_is_not_sound_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(WheelError, match=words) as caught:
        _read(data)
    assert caught.value.where == "the file"


@pytest.mark.parametrize("length", [0, 4, 45])
def test_an_entry_that_is_cut_is_refused(length: int) -> None:
    with pytest.raises(WheelError, match="cut or damaged"):
        parse_members((CENTRAL + bytes(42))[:length], 1, where="the file")


_ONE = make_zip([("left.so", b"left" * 1000)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda z: edit(z, CENTRAL, 8, "<H", 1), "encrypted"),
        (lambda z: edit(z, CENTRAL, 8, "<H", 0x40), "encrypted"),
        (lambda z: edit(z, CENTRAL, 10, "<H", 12), "packed by method 12"),
        (lambda z: edit(z, CENTRAL, 10, "<H", 93), "packed by method 93"),
        (lambda z: edit(z, CENTRAL, 10, "<H", 0), "two lengths"),
        (lambda z: edit(z, LOCAL, 30, "<B", 65), "local header"),
        (lambda z: edit(z, LOCAL, 0, "<I", 0), "local header"),
        (lambda z: edit(z, LOCAL, 28, "<H", 9), "longer than can be"),
        (lambda z: edit(z, LOCAL, 22, "<I", 3), "two lengths"),
        (lambda z: edit(z, CENTRAL, 16, "<I", 3), "checksum"),
        (lambda z: edit(edit(z, CENTRAL, 24, "<I", 9), LOCAL, 22, "<I", 9), "length or checksum"),
        (
            lambda z: edit(edit(z, CENTRAL, 24, "<I", 4001), LOCAL, 22, "<I", 4001),
            "length or check",
        ),
        (lambda z: edit(z, b"left.so", 7, "<B", 0xFF), "does not inflate"),
        (lambda z: edit(edit(z, CENTRAL, 20, "<I", 9), LOCAL, 18, "<I", 9), "is cut"),
        (lambda z: edit(edit(z, CENTRAL, 24, "<I", 2**31), LOCAL, 22, "<I", 2**31), "packed into"),
    ],
)
def test_a_member_that_lies_is_refused(change: Callable[[bytes], bytes], words: str) -> None:
    with pytest.raises(WheelError, match=words) as caught:
        _unpack(change(_ONE), "left.so")
    assert caught.value.where == "the file"


def test_what_follows_the_stream_inside_its_length_is_refused() -> None:
    at = _ONE.index(CENTRAL)
    packed = int.from_bytes(_ONE[at + 20 : at + 24], "little") + 1
    data = _ONE[:at] + b"\0" + _ONE[at:]
    data = edit(edit(data, CENTRAL, 20, "<I", packed), LOCAL, 18, "<I", packed)
    with pytest.raises(WheelError, match="followed by something"):
        _unpack(edit(data, END, 16, "<I", at + 1), "left.so")


def test_a_member_of_more_than_four_gigabytes_is_not_begun() -> None:
    data = make_zip64("left.so", b"left")
    size = data.index(CENTRAL) + 46 + len("left.so") + 8 + 4
    changed = data[:size] + (5 << 30).to_bytes(8, "little") + data[size + 8 :]
    with pytest.raises(WheelError, match="5368709120 bytes, more than"):
        _unpack(changed, "left.so")


def test_a_bomb_is_inflated_no_further_than_it_says() -> None:
    bomb = make_zip([("left.so", bytes(50 << 20))])
    with pytest.raises(WheelError, match="packed into"):
        _unpack(bomb, "left.so")
    # It says that it is small: one byte more than that is made, and no more.
    small = edit(edit(bomb, CENTRAL, 24, "<I", 500_000), LOCAL, 22, "<I", 500_000)
    source = CountingSource(BytesSource(small))
    directory = read_directory(source)
    chunks = MemberReader(source, directory).chunks(directory.members[0])
    produced = 0
    try:
        for chunk in chunks:
            produced += len(chunk)
    except WheelError as error:
        assert "length or checksum" in error.message
    else:
        pytest.fail("a member longer than it says was read")
    assert produced <= 500_001


def test_chunks_are_bounded_and_a_stream_may_be_closed_early() -> None:
    content = bytes(range(256)) * 40_000
    source = CountingSource(BytesSource(make_zip([("big", content)], method=zipfile.ZIP_STORED)))
    directory = read_directory(source)
    before = source.bytes_read
    chunks = MemberReader(source, directory).chunks(directory.members[0])
    assert len(next(chunks)) <= CHUNK
    chunks.close()
    assert source.bytes_read - before <= 2 * CHUNK
    whole = list(MemberReader(source, directory).chunks(directory.members[0]))
    assert b"".join(whole) == content
    assert max(map(len, whole)) <= CHUNK


def _streams(names: Iterable[str], together: bool) -> list[tuple[int, int]]:
    """Read members of an archive and return the parts that were streamed for them."""
    filler = bytes(range(256)) * 4000
    contents = {"a": b"a" * 10, "b": b"b" * 10, "gap": filler, "c": b"c" * 10, "d": b"d" * 10}
    data = make_zip(contents.items(), method=zipfile.ZIP_STORED)
    source = _Recording(data)
    directory = read_directory(source)
    members = [member for member in directory.members if member.name in set(names)]
    reader = MemberReader(source, directory, members if together else ())
    for member in members:
        assert b"".join(reader.chunks(member)) == contents[member.name]
    reader.close()
    reader.close()
    return source.streams


def test_neighbours_that_are_read_whole_are_one_stream() -> None:
    assert len(_streams(["a", "b"], together=True)) == 1
    assert len(_streams(["a", "b"], together=False)) == 2
    # What lies between is more than a new request costs.
    assert len(_streams(["a", "b", "c", "d"], together=True)) == 2


def test_a_source_that_ends_early_is_refused() -> None:
    source = _Recording(_ONE, cut=20)
    directory = read_directory(source)
    with pytest.raises(WheelError, match="ends at byte 20"):
        list(MemberReader(source, directory).chunks(directory.members[0]))


def test_a_stream_left_early_is_taken_up_again_for_the_next_member() -> None:
    data = make_zip([("a", bytes(200_000)), ("b", b"b" * 300)], method=zipfile.ZIP_STORED)
    source = _Recording(data)
    directory = read_directory(source)
    reader = MemberReader(source, directory, directory.members)
    first = reader.chunks(directory.members[0])
    next(first)
    first.close()
    assert b"".join(reader.chunks(directory.members[1])) == b"b" * 300
    # Going back needs a stream of its own.
    assert b"".join(reader.chunks(directory.members[0])) == bytes(200_000)
    assert len(source.streams) == 2


def test_zip64_values_stand_in_only_for_the_numbers_that_do_not_fit() -> None:
    data = make_zip64("left.so", b"left")
    at = data.index(CENTRAL)
    # The packed length is told in the entry itself; its place in the zip64 values is then not there.
    packed = data[at + 46 + 7 + 8 + 4 + 8 :][:8]
    changed = bytearray(edit(data, CENTRAL, 20, "<I", int.from_bytes(packed, "little")))
    values = at + 46 + 7 + 8 + 4
    changed[values : values + 24] = changed[values : values + 8] + bytes(8) + b"\xff" * 8
    assert _read(bytes(changed)).members[0].packed == int.from_bytes(packed, "little")
    assert _read(bytes(changed)).members[0].offset == 0
