"""Wheels read over real HTTP into the book of facts: how much is asked for, and what goes wrong."""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from archive_builder import CENTRAL, edit, make_zip
from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.index.cache import Cache
from cudalock.index.client import Client
from cudalock.index.fact_files import KeptFacts, open_book
from cudalock.index.wheel_reading import ReadingTask, WheelReading
from cudalock.wheel.cuda_parts import SharedLibrary
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.wheel_facts import FactBook, Tier, WheelFacts
from elf_builder import Symbol, make_library
from fatbin_builder import container, entry
from loopback import Asked, Loopback, Reply, serve, serve_file

_NAME = "left-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
_PAUSE = Event()
_GPU = (ComputeCapability(12, 0),)
_DRIVER = CudaVersion(13, 1)
_NOISE = random.Random(11)  # noqa: S311 - bytes that do not pack
# Without a symbol the head of a library does not show where its names end.
_SYMBOLS = [Symbol(name="cudaLaunchKernel"), Symbol(name="memcpy")]
_KNOWLEDGE = Knowledge(
    shared_libraries=(
        SharedLibrary(stem="libcudart", providers=("runtime",), follows_cuda=True, source="x"),
        SharedLibrary(stem="libnccl", providers=("nccl",), source="x"),
    )
)


def _library(*needed: str, sm: int | None = 120, size: int = 400_000) -> bytes:
    payload = _NOISE.randbytes(size)
    if sm is None:
        return make_library(needed=needed, symbols=_SYMBOLS, rodata=payload)
    fatbin = container(entry("cubin", sm, payload=payload))
    return make_library(
        needed=needed, symbols=_SYMBOLS, fatbin=fatbin + fatbin, rodata=payload[:9000]
    )


def _wheel(files: Mapping[str, bytes]) -> bytes:
    return make_zip([*files.items(), ("left-1.0.dist-info/METADATA", b"Name: left\n")])


_LARGE = _wheel({f"left/{n}.so": _library("libcudart.so.13") for n in "abc"})


class _Site:
    """Serves one wheel as ``answer`` says, and makes readings with one cache."""

    def __init__(self, server: Loopback, folder: Path, executor: Executor) -> None:
        self.server = server
        self.content = _LARGE
        self.answer: Callable[[Asked], Reply] | None = None
        self.knowledge = _KNOWLEDGE
        self.readable = True
        self.told: list[tuple[str, str, int]] = []
        self._folder = folder
        self._executor = executor
        self.clients: list[Client] = []

    def reply(self, asked: Asked) -> Reply:
        return self.answer(asked) if self.answer else serve_file(self.content, asked)

    def file(self, *claims: str, size: int | None = None) -> ListedFile:
        return ListedFile(
            wheel=parse_wheel_file(_NAME),
            url=f"{self.server.url}/{_NAME}",
            index="default",
            index_url=f"{self.server.url}/",
            sha256=claims or (hashlib.sha256(self.content).hexdigest(),),
            size=size,
        )

    def session(self, *, offline: bool = False) -> tuple[WheelReading, FactBook, Client]:
        """Return what a new process would have: only the cache is the same."""
        client = Client(
            None, Cache(self._folder / "cache"), sleep=lambda _: None, offline=offline, retries=0
        )
        self.clients.append(client)
        book = open_book(self._folder / "evidence", client)
        reading = WheelReading(
            client=client,
            book=book,
            knowledge=self.knowledge,
            executor=self._executor,
            readable=lambda _: self.readable,
            progress=lambda *told: self.told.append(told),
        )
        return reading, book, client


@pytest.fixture
def site(tmp_path: Path) -> Iterator[_Site]:
    found: list[_Site] = []
    with (
        serve(lambda asked: found[0].reply(asked)) as server,  # noqa: PLW0108 - made below
        ThreadPoolExecutor(4) as executor,
    ):
        found.append(_Site(server, tmp_path, executor))
        yield found[0]
        for client in found[0].clients:
            client.close()


def _read(reading: WheelReading, file: ListedFile, tier: Tier = "T2", whole_below: int = 0) -> bool:
    task = ReadingTask(file=file, tier=tier, whole_below=whole_below)
    return reading.read([task], targets=_GPU, driver_cuda=_DRIVER)


def _known(book: FactBook, file: ListedFile) -> WheelFacts:
    found = book.of(file)
    assert found is not None
    return found


def test_of_a_large_wheel_only_the_heads_are_read(site: _Site) -> None:
    reading, book, _ = site.session()
    assert _read(reading, site.file(), whole_below=1_000_000)
    facts = _known(book, site.file())
    assert (facts.tier, facts.origin, facts.filename) == ("T2", "read", _NAME)
    assert [library.seen for library in facts.contents.libraries] == ["head"] * 3
    assert {n for lib in facts.contents.libraries for n in lib.needed or ()} == {"libcudart.so.13"}
    # The end of the archive, and a stream a library that is closed early.
    assert len(site.server.asked) == 4
    assert facts.contents.bytes_read < len(_LARGE) / 2
    assert (reading.wheels_read, reading.bytes_read) == (1, facts.contents.bytes_read)


def test_presence_reads_until_the_target_is_seen_and_full_to_the_end(site: _Site) -> None:
    reading, book, _ = site.session()
    assert _read(reading, site.file(), "T3")
    assert [lib.seen for lib in _known(book, site.file()).contents.libraries] == ["part"] * 3
    assert _read(reading, site.file(), "T4")
    facts = _known(book, site.file())
    assert (facts.tier, facts.contents.complete) == ("T4", True)


@pytest.mark.parametrize(
    ("needed", "sm", "tier"),
    [
        (["libcudart.so.13"], None, "T4"),
        (["libcudart-3eda8113.so.13.0.96"], None, "T4"),
        (["libnccl.so.2"], None, "T4"),
        (["libssl.so.3"], None, "T2"),
    ],
)
def test_a_small_wheel_is_read_whole_if_it_speaks_of_cuda(
    site: _Site, needed: list[str], sm: int | None, tier: Tier
) -> None:
    site.content = _wheel({"left/a.so": _library(*needed, sm=sm)})
    reading, book, _ = site.session()
    assert _read(reading, site.file(), whole_below=20_000_000)
    assert _known(book, site.file()).tier == tier
    assert _known(book, site.file()).contents.complete is (tier == "T4")


def test_symbols_of_torch_and_files_of_device_code_speak_of_cuda_as_well(site: _Site) -> None:
    extension = make_library(symbols=[Symbol(name="torch_x")], rodata=_NOISE.randbytes(300_000))
    for files in ({"left/a.so": extension}, {"left/k_sm_100a.cubin": b"x"}):
        site.content = _wheel(files)
        reading, book, _ = site.session()
        assert _read(reading, site.file(), whole_below=20_000_000)
        assert _known(book, site.file()).tier == "T4"


def test_the_second_session_asks_for_nothing(site: _Site) -> None:
    reading, _, _ = site.session()
    assert _read(reading, site.file())
    asked = len(site.server.asked)
    again, book, _ = site.session()
    facts = _known(book, site.file())
    assert (facts.origin, facts.tier) == ("kept", "T2")
    # What it is read for again is a deeper reading, and that is kept in its turn.
    assert len(site.server.asked) == asked
    assert _read(again, site.file(), "T4")
    _, last, _ = site.session()
    assert _known(last, site.file()).tier == "T4"


def test_a_wheel_is_read_once_a_depth(site: _Site) -> None:
    reading, _, _ = site.session()
    assert _read(reading, site.file())
    asked = len(site.server.asked)
    assert not _read(reading, site.file())
    assert len(site.server.asked) == asked
    tasks = [ReadingTask(file=site.file(), tier="T4")] * 3
    assert reading.read(tasks, targets=_GPU, driver_cuda=_DRIVER)
    assert reading.wheels_read == 2


@pytest.mark.parametrize("claims", [("a1" * 32, "b2" * 32), None])
def test_facts_of_a_wheel_without_one_hash_are_for_this_question_only(
    site: _Site, claims: tuple[str, ...] | None
) -> None:
    reading, book, _ = site.session()
    file = site.file(*(claims or ("x",)))
    if claims is None:
        file = ListedFile(wheel=file.wheel, url=file.url, index="default", index_url=file.index_url)
    assert _read(reading, file)
    assert book.of(file) is not None
    _, later, _ = site.session()
    assert later.of(file) is None


# What goes wrong


def _failed(site: _Site, file: ListedFile | None = None, tier: Tier = "T2") -> str:
    reading, book, _ = site.session()
    wanted = file or site.file()
    assert not _read(reading, wanted, tier)
    assert book.of(wanted) is None
    reason = book.failure(wanted)
    assert reason is not None
    return reason


def test_a_file_that_is_gone_is_unknown_and_is_asked_for_again_later(site: _Site) -> None:
    site.answer = lambda _: Reply(404)
    assert "404" in _failed(site)
    site.answer = None
    reading, book, _ = site.session()
    assert _read(reading, site.file())
    assert book.failure(site.file()) is None


def test_a_server_without_ranges_gives_a_small_wheel_all_the_same(site: _Site) -> None:
    site.answer = lambda _: Reply(200, site.content)
    reading, book, _ = site.session()
    assert _read(reading, site.file())
    assert _known(book, site.file()).tier == "T2"


def test_a_server_without_ranges_and_a_large_wheel_leave_it_unknown(site: _Site) -> None:
    site.answer = lambda _: Reply(200, b"PK", length=64 * 1024 * 1024)
    assert "expected a part of a file" in _failed(site)


def test_another_length_than_the_page_says_is_unknown(site: _Site) -> None:
    file = site.file(size=len(_LARGE) - 1)
    assert "as the index says" in _failed(site, file)
    _, later, client = site.session()
    assert KeptFacts(client).find(file) is None
    assert later.failure(file) is None


def test_an_archive_that_lies_is_unknown_and_is_not_asked_for_again(site: _Site) -> None:
    site.content = edit(_LARGE, CENTRAL, 16, "<I", 0x12345678)
    file = site.file()
    reason = _failed(site, file, "T4")
    assert "left/a.so" in reason
    asked = len(site.server.asked)
    assert _failed(site, file) == reason
    assert len(site.server.asked) == asked


def test_an_answer_that_is_no_wheel_is_unknown(site: _Site) -> None:
    site.content = b"<html>come back later</html>"
    assert _failed(site)


def test_a_small_wheel_whose_libraries_are_broken_tells_nothing(site: _Site) -> None:
    whole = _wheel({"left/a.so": _library("libcudart.so.13")})
    site.content = edit(whole, CENTRAL, 16, "<I", 0x12345678)
    reading, book, _ = site.session()
    assert not _read(reading, site.file(), whole_below=20_000_000)
    assert book.of(site.file()) is None


def test_offline_nothing_is_asked_for(site: _Site) -> None:
    reading, book, _ = site.session(offline=True)
    assert not _read(reading, site.file())
    assert book.failure(site.file()) == "offline, and never read before"
    online, _, _ = site.session()
    assert _read(online, site.file())
    asked = len(site.server.asked)
    later, known, _ = site.session(offline=True)
    assert known.of(site.file()) is not None
    assert not _read(later, site.file(), "T4")
    assert known.failure(site.file()) == "offline, and never read so deep before"
    assert len(site.server.asked) == asked


def test_an_index_that_answers_from_a_recording_is_not_asked(site: _Site) -> None:
    site.readable = False
    assert _failed(site) == "its index answers from a recording"
    assert site.server.asked == []


# Wheels of this machine


def test_a_wheel_of_this_machine_is_read_even_offline(site: _Site, tmp_path: Path) -> None:
    path = tmp_path / _NAME
    path.write_bytes(_LARGE)
    file = ListedFile(
        wheel=parse_wheel_file(_NAME), url=path.as_uri(), index="links", index_url=tmp_path.as_uri()
    )
    site.readable = False
    reading, book, _ = site.session(offline=True)
    assert _read(reading, file, "T4")
    assert _known(book, file).contents.complete
    path.unlink()
    again, other, _ = site.session()
    assert not _read(again, file)
    assert "No such file" in (other.failure(file) or "")
    path.write_bytes(b"no wheel")
    broken, last, client = site.session()
    assert not _read(broken, file)
    assert last.failure(file)
    # It may be another file tomorrow.
    assert KeptFacts(client).find(file) is None


# Progress


def test_what_is_read_is_told_while_it_lasts(site: _Site) -> None:
    waits = iter([True])

    def slow(asked: Asked) -> Reply:
        if asked.path.endswith("slow.whl") and next(waits, False):
            # Longer than the progress waits for anything to end.
            site.server.asked.append(asked)
            _PAUSE.wait(0.8)
        return serve_file(site.content, asked)

    site.answer = slow
    reading, _, _ = site.session()
    first = site.file()
    second = ListedFile(
        wheel=parse_wheel_file(_NAME.replace("1.0", "2.0")),
        url=f"{site.server.url}/slow.whl",
        index="default",
        index_url=first.index_url,
    )
    tasks = [ReadingTask(file=file, tier="T2") for file in (first, second)]
    assert reading.read(tasks, targets=_GPU, driver_cuda=_DRIVER)
    name = second.filename
    assert {told[0] for told in site.told} == {"read"}
    assert any(told[1] == f"{name}, 1 of 2 done," for told in site.told)
    counts = [told[2] for told in site.told]
    assert counts == sorted(counts)
