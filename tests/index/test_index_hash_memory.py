import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cudalock.errors import IndexAccessError
from cudalock.index.cache import Cache
from cudalock.index.client import Client
from cudalock.index.failures import HashMismatchError, OfflineError
from cudalock.index.hash_memory import HashMemory
from cudalock.index.observing import observe_hash
from cudalock.wheel.file_hash import HashedBytes, claimed_hash
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import HashAside, ListedFile
from loopback import Asked, Loopback, Reply, serve

NAME = "left-1.0+cu130-py3-none-any.whl"
OLD, NEW = b"old bytes" * 1000, b"new bytes" * 1000
A, B, C = "a1" * 32, "b2" * 32, "c3" * 32
WEEK = 7 * 24 * 3600


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Files:
    """One file that can change, on a server that says how it tells versions apart."""

    def __init__(self) -> None:
        self.content = OLD
        self.etag: str | None = '"{}"'
        self.down = False

    def answer(self, asked: Asked) -> Reply:
        if self.down:
            return Reply(500)
        headers = {}
        if self.etag is not None:
            headers["ETag"] = self.etag.format(digest(self.content)[:8])
            if asked.headers.get("if-none-match") == headers["ETag"]:
                return Reply(304, b"", headers)
        return Reply(200, self.content, headers)


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def site(files: Files) -> Iterator[Loopback]:
    with serve(files.answer) as found:
        yield found


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., HashMemory]]:
    clients = []

    def make(*, offline: bool = False) -> HashMemory:
        cache = Cache(tmp_path / "cache")
        client = Client(None, cache, wall=clock, sleep=lambda _: None, offline=offline, retries=0)
        clients.append(client)
        return HashMemory(client)

    yield make
    for client in clients:
        client.close()


def listed(site: Loopback, *sha256: str) -> ListedFile:
    return ListedFile(
        wheel=parse_wheel_file(NAME),
        url=f"{site.url}/left-1.0%2Bcu130-py3-none-any.whl",
        index="publisher",
        index_url=site.url,
        sha256=sha256,
    )


def test_a_file_is_downloaded_once_and_known_again_by_a_request_without_a_body(
    site: Loopback, memory: Callable[..., HashMemory], clock: Clock
) -> None:
    file = listed(site)
    assert memory().recall(file) is None
    assert memory().compute(file) == (digest(OLD), len(OLD))
    clock.now += 10 * WEEK
    assert memory().compute(file) == memory().recall(file) == (digest(OLD), len(OLD))
    assert [asked.headers.get("if-none-match") for asked in site.asked] == [
        None,
        f'"{digest(OLD)[:8]}"',
        f'"{digest(OLD)[:8]}"',
    ]


def test_other_bytes_at_the_address_are_not_taken_for_those_remembered(
    site: Loopback, files: Files, memory: Callable[..., HashMemory]
) -> None:
    file = listed(site)
    memory().compute(file)
    files.content = NEW
    assert memory().recall(file) is None
    assert memory().compute(file) == (digest(NEW), len(NEW))


def test_offline_takes_what_there_is(
    site: Loopback, files: Files, memory: Callable[..., HashMemory], clock: Clock
) -> None:
    file = listed(site)
    with pytest.raises(OfflineError):
        memory(offline=True).compute(file)
    memory().compute(file)
    files.content = NEW
    clock.now += 10 * WEEK
    assert memory(offline=True).compute(file) == (digest(OLD), len(OLD))
    assert len(site.asked) == 1


@pytest.mark.parametrize("etag", [None, 'W/"{}"', '"{}', "{}"])
def test_a_memory_that_nothing_tells_apart_is_good_for_a_week(
    site: Loopback,
    files: Files,
    memory: Callable[..., HashMemory],
    clock: Clock,
    etag: str | None,
) -> None:
    files.etag = etag
    file = listed(site)
    memory().compute(file)
    files.content = NEW
    clock.now += WEEK - 1
    assert memory().recall(file) == (digest(OLD), len(OLD))
    assert len(site.asked) == 1
    clock.now += 1
    assert memory().compute(file) == (digest(NEW), len(NEW))


def test_a_page_that_says_something_else_of_a_file_means_other_bytes(
    site: Loopback, files: Files, memory: Callable[..., HashMemory], clock: Clock
) -> None:
    files.etag = None
    file = listed(site, A, B)
    memory().compute(file)
    clock.now += 10 * WEEK
    assert memory().recall(file) is not None
    for changed in (
        replace(file, sha256=(A, B, C)),
        replace(file, sha256=(B, A)),
        replace(file, size=5),
        replace(file, core_metadata=C),
        replace(file, upload_time="2026-01-01T00:00:00Z"),
        replace(file, url=file.url + "?x"),
    ):
        assert memory().recall(changed) is None


def test_whether_a_memory_holds_cannot_be_told_of_a_server_that_is_down(
    site: Loopback, files: Files, memory: Callable[..., HashMemory]
) -> None:
    file = listed(site)
    memory().compute(file)
    files.down = True
    assert memory().recall(file) is None
    with pytest.raises(IndexAccessError):
        memory().compute(file)


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"[" * 100_000,
        b'{"sha256": "x", "size": 1, "etag": null}',
        b'{"sha256": "' + A.encode() + b'", "size": "1", "etag": null}',
        b'{"sha256": "' + A.encode() + b'", "size": 1, "etag": 1}',
    ],
)
def test_a_memory_that_cannot_be_read_is_none(
    site: Loopback, memory: Callable[..., HashMemory], kept: bytes
) -> None:
    found = memory()
    file = listed(site)
    found.compute(file)
    from cudalock.index.hash_memory import _key

    found._client.keep(_key(file), kept, seconds=1000)
    assert found.recall(file) is None
    assert found.compute(file).sha256 == digest(OLD)


def test_a_cut_transfer_gives_no_hash_and_leaves_no_memory(
    memory: Callable[..., HashMemory],
) -> None:
    with serve(lambda _: Reply(200, OLD[:-1], length=len(OLD))) as site:
        file = listed(site)
        with pytest.raises(IndexAccessError):
            memory().compute(file)
        assert memory().recall(file) is None


# What the bytes say of the claims


def observed(file: ListedFile, sha256: str = A, size: int = 10, **more: object) -> object:
    return observe_hash(file, HashedBytes(sha256, size), **more)  # type: ignore[arg-type] # any


@pytest.fixture
def file() -> ListedFile:
    return listed(Loopback(url="https://w.example.org"))


def test_bytes_that_nobody_claims_anything_of_are_computed(file: ListedFile) -> None:
    found = observe_hash(file, HashedBytes(A, 10))
    assert (found.sha256, found.state, found.size, found.aside) == (A, "computed", 10, ())


def test_bytes_of_one_of_the_claims_are_observed_and_the_others_are_stale(file: ListedFile) -> None:
    found = observe_hash(replace(file, sha256=(B, A, C)), HashedBytes(A, 10))
    assert (found.sha256, found.state) == (A, "observed")
    why = "publisher claims it and the bytes do not have it"
    assert found.aside == (HashAside(B, why), HashAside(C, why))


def test_bytes_of_none_of_the_claims_are_an_error_that_names_them_all(file: ListedFile) -> None:
    with pytest.raises(HashMismatchError) as caught:
        observed(replace(file, sha256=(B, C)))
    error = caught.value
    assert (error.exit_code, error.code, error.found, error.claims) == (
        3,
        "hash-mismatch",
        A,
        (B, C),
    )
    for words in (A, B, C, "publisher", NAME, "nothing is locked", f"--hash=sha256:{A}"):
        assert words in str(error)


def test_bytes_that_are_another_files_are_named_as_such(file: ListedFile) -> None:
    name = "left-1.0+cu130-1-py3-none-any.whl"
    twin = replace(
        file, url="https://w/x", wheel=parse_wheel_file(name), sha256=(A,), index="other"
    )
    with pytest.raises(HashMismatchError, match="which other claims for left-1"):
        observed(replace(file, sha256=(B,)), others=[file, twin])


def test_the_hash_that_the_person_gives_settles_what_the_claims_do_not(file: ListedFile) -> None:
    found = observe_hash(replace(file, sha256=(B, C)), HashedBytes(A, 10), asked=frozenset({A}))
    assert (found.sha256, found.state) == (A, "observed")
    assert [aside.sha256 for aside in found.aside] == [B, C]
    with pytest.raises(HashMismatchError, match="the requirement asks for"):
        observed(replace(file, sha256=(A, C)), asked=frozenset({B}))
    with pytest.raises(HashMismatchError, match="the requirement asks for"):
        observed(file, asked=frozenset({B}))


def test_a_size_is_a_claim_where_there_is_no_other(file: ListedFile) -> None:
    sized = replace(file, size=11)
    with pytest.raises(HashMismatchError, match="have 11 bytes, as publisher says, found 10"):
        observed(sized)
    assert observe_hash(replace(sized, sha256=(A,)), HashedBytes(A, 10)).size == 10


def test_one_claim_is_taken_as_claimed_and_none_or_several_are_open(file: ListedFile) -> None:
    aside = HashAside(C, "it is the hash of its METADATA")
    found = claimed_hash(replace(file, sha256=(A,), aside=(aside,)))
    assert found is not None
    assert (found.sha256, found.state, found.size, found.aside) == (A, "claimed", None, (aside,))
    assert claimed_hash(file) is claimed_hash(replace(file, sha256=(A, B))) is None
