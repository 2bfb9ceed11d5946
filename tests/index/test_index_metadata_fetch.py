import hashlib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from builders import make_wheel
from cudalock.errors import WheelError
from cudalock.index.cache import Cache
from cudalock.index.client import Client
from cudalock.index.failures import BodyError, HttpStatusError, OfflineError, RangeError
from cudalock.index.metadata_fetch import fetch_metadata
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.metadata import CoreMetadata
from loopback import Asked, Loopback, Reply, serve, serve_file

SHA = "ab" * 32
METADATA = b"Metadata-Version: 2.1\nName: left\nVersion: 1.0+cu130\nRequires-Dist: right>=2\n"


class Site:
    """Serves one wheel and what stands beside it; ``answer`` replaces both."""

    def __init__(self, loopback: Loopback, wheel: bytes) -> None:
        self.loopback = loopback
        self.wheel = wheel
        self.sidecar: Reply = Reply(404)
        self.answer: Callable[[Asked], Reply | None] = lambda _: None

    def reply(self, asked: Asked) -> Reply:
        given = self.answer(asked)
        if given is not None:
            return given
        if asked.path.endswith(".metadata"):
            return self.sidecar
        return serve_file(self.wheel, asked, etag='"1"')

    def file(self, name: str = "left-1.0+cu130-py3-none-any.whl") -> ListedFile:
        return ListedFile(
            wheel=parse_wheel_file(name),
            url=f"{self.loopback.url}/{name.replace('+', '%2B')}",
            index="kernel",
            index_url=self.loopback.url,
        )

    def asked(self) -> list[tuple[str, str | None]]:
        return [
            (one.path.rpartition(".")[2], one.headers.get("range")) for one in self.loopback.asked
        ]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    wheel = make_wheel(tmp_path, "left", "1.0+cu130", requires=["right>=2"]).read_bytes()
    holder: list[Site] = []
    with serve(lambda asked: holder[0].reply(asked)) as loopback:  # noqa: PLW0108 - filled below
        holder.append(Site(loopback, wheel))
        yield holder[0]


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(retries=0) as client:
        yield client


def check(metadata: CoreMetadata, place: str) -> None:
    assert (metadata.project, str(metadata.version)) == ("left", "1.0+cu130")
    assert [str(requirement) for requirement in metadata.requires_dist] == ["right>=2"]
    assert metadata.source == place
    assert not metadata.assumed


def test_a_recorded_page_carries_metadata(site: Site, client: Client) -> None:
    carried = CoreMetadata(project="left", version=Version("1.0"))
    assert fetch_metadata(client, replace(site.file(), metadata=carried)) is carried
    assert site.asked() == []


@pytest.mark.parametrize("claim", [None, False])
def test_without_a_claim_one_range_is_asked_for(
    site: Site, client: Client, claim: bool | None
) -> None:
    found = fetch_metadata(client, replace(site.file(), core_metadata=claim))
    check(found, "METADATA in the wheel")
    assert site.asked() == [("whl", "bytes=-65536")]


@pytest.mark.parametrize(
    ("size", "asked"),
    [(None, 65536), (26_214_399, 65536), (40_000_000, 100_000), (9_000_000_000, 4_194_304)],
)
def test_of_a_wheel_that_is_said_to_be_large_more_is_asked_for_at_once(
    site: Site, client: Client, size: int | None, asked: int
) -> None:
    fetch_metadata(client, replace(site.file(), size=size))
    assert site.asked() == [("whl", f"bytes=-{asked}")]


def test_a_claimed_sidecar_is_enough(site: Site, client: Client) -> None:
    site.sidecar = Reply(200, METADATA)
    for claim in (True, hashlib.sha256(METADATA).hexdigest()):
        check(fetch_metadata(client, replace(site.file(), core_metadata=claim)), "METADATA sidecar")
    assert site.asked() == [("metadata", None)] * 2


def test_the_sidecar_of_an_address_with_a_query(site: Site, client: Client) -> None:
    site.sidecar = Reply(200, METADATA)
    site.answer = lambda asked: Reply(200, METADATA) if ".whl.metadata?s=1" in asked.path else None
    file = site.file()
    check(
        fetch_metadata(client, replace(file, url=file.url + "?s=1", core_metadata=True)),
        "METADATA sidecar",
    )


@pytest.mark.parametrize(
    "sidecar", [Reply(404), Reply(403), Reply(401), Reply(410), Reply(200, METADATA + b"\n")]
)
def test_a_sidecar_that_is_missing_or_another_is_no_reason_to_stop(
    site: Site, client: Client, sidecar: Reply
) -> None:
    site.sidecar = sidecar
    claim = hashlib.sha256(METADATA).hexdigest()
    check(
        fetch_metadata(client, replace(site.file(), core_metadata=claim)), "METADATA in the wheel"
    )
    assert site.asked() == [("metadata", None), ("whl", "bytes=-65536")]


def test_a_sidecar_that_fails_is_an_error(site: Site, client: Client) -> None:
    site.sidecar = Reply(500)
    with pytest.raises(HttpStatusError):
        fetch_metadata(client, replace(site.file(), core_metadata=True))


def test_metadata_before_the_suffix_takes_a_second_range(
    site: Site, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    # What does not compress, put last in the archive, is what pushes METADATA out of the suffix.
    noise = b"".join(hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(4000))
    built = make_wheel(folder, "left", "1.0+cu130", requires=["right>=2"], files={"a": b""})
    with zipfile.ZipFile(built, "a") as archive:
        archive.writestr("noise.bin", noise)
    site.wheel = built.read_bytes()
    check(fetch_metadata(client, site.file()), "METADATA in the wheel")
    assert len(site.asked()) == 2
    assert site.loopback.asked[1].headers["if-range"] == '"1"'


def test_a_file_that_changes_between_two_ranges_is_an_error(
    site: Site, client: Client, tmp_path: Path
) -> None:
    built = make_wheel(tmp_path, "left", "1.0+cu130", files={"a": b""})
    with zipfile.ZipFile(built, "a") as archive:
        archive.writestr("noise.bin", bytes(range(256)) * 600)
    site.wheel = built.read_bytes()

    def answer(asked: Asked) -> Reply:
        later = len(site.loopback.asked) > 1
        content = site.wheel + b"more" if later else site.wheel
        return serve_file(content, asked, etag='"2"' if later else '"1"')

    site.answer = answer
    with pytest.raises(BodyError, match="changed while it was read"):
        fetch_metadata(client, site.file())


def test_a_server_without_ranges_gives_small_wheels_whole(
    site: Site, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.answer = lambda _: Reply(200, site.wheel)
    check(fetch_metadata(client, site.file()), "METADATA in the wheel")
    assert len(site.asked()) == 1
    monkeypatch.setattr("cudalock.index.ranges.WHOLE_FILE_LIMIT", 10)
    with pytest.raises(RangeError):
        fetch_metadata(client, site.file())


def test_a_local_version_that_only_the_file_name_has_is_said(
    site: Site, client: Client, tmp_path: Path
) -> None:
    site.wheel = make_wheel(tmp_path, "left", "1.0").read_bytes()
    found = fetch_metadata(client, site.file())
    assert str(found.version) == "1.0+cu130"
    assert found.source == "METADATA in the wheel (it says 1.0, the file name 1.0+cu130)"


@pytest.mark.parametrize(
    ("found", "words"),
    [(("right", "1.0+cu130"), "METADATA of left"), (("left", "1.1"), r"of version 1.0\+cu130")],
)
def test_metadata_of_another_file_is_refused(
    site: Site, client: Client, tmp_path: Path, found: tuple[str, str], words: str
) -> None:
    site.wheel = make_wheel(tmp_path, *found).read_bytes()
    with pytest.raises(WheelError, match=words) as caught:
        fetch_metadata(client, site.file())
    assert caught.value.where == site.file().url


@pytest.mark.parametrize("content", [b"", b"<html>not a wheel</html>", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_wheel_is_refused_by_name(site: Site, client: Client, content: bytes) -> None:
    site.answer = lambda _: Reply(200, content)
    with pytest.raises(WheelError, match="expected a wheel") as caught:
        fetch_metadata(client, site.file())
    assert caught.value.where == site.file().url


@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize("with_sidecar", [True, False])
def test_metadata_is_asked_for_once_and_answers_offline(
    site: Site, tmp_path: Path, hashed: bool, with_sidecar: bool
) -> None:
    site.sidecar = Reply(200, METADATA) if with_sidecar else Reply(404)
    claim = hashlib.sha256(METADATA).hexdigest()
    file = replace(site.file(), core_metadata=claim, sha256=(SHA,) if hashed else ())
    found = []
    for offline in (False, False, True):
        with Client(None, Cache(tmp_path / "cache"), offline=offline) as client:
            found.append(fetch_metadata(client, file))
            assert client.statistics.cache_hits == (1 if len(found) > 1 else 0)
    assert found[0] == found[1] == found[2]
    assert found[0].source == ("METADATA sidecar" if with_sidecar else "METADATA in the wheel")
    assert len(site.asked()) == (1 if with_sidecar else 2)


def test_metadata_kept_under_an_address_alone_is_asked_for_again_after_a_week(
    site: Site, tmp_path: Path
) -> None:
    now = [1_000_000.0]
    for days, requests in ((0, 1), (6, 1), (2, 2)):
        now[0] += days * 24 * 3600
        with Client(None, Cache(tmp_path / "cache"), wall=lambda: now[0]) as client:
            fetch_metadata(client, site.file())
        assert len(site.asked()) == requests


def test_another_index_that_claims_the_same_hash_does_not_speak_for_a_file(
    site: Site, tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache")
    mine = replace(site.file(), sha256=(SHA,))
    theirs = replace(mine, url=mine.url.replace("127.0.0.1", "localhost"))
    with Client(None, cache) as client:
        fetch_metadata(client, theirs)
    with Client(None, cache, offline=True) as client, pytest.raises(OfflineError):
        fetch_metadata(client, mine)


def test_metadata_that_is_refused_is_not_kept(site: Site, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    right = make_wheel(tmp_path, "right", "1.0").read_bytes()
    sound, site.wheel = site.wheel, right
    with Client(None, cache) as client, pytest.raises(WheelError):
        fetch_metadata(client, site.file())
    site.wheel = sound
    with Client(None, cache) as client:
        check(fetch_metadata(client, site.file()), "METADATA in the wheel")
