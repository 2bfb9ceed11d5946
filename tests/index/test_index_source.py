import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from builders import make_wheel
from cudalock.cuda import CudaVersion
from cudalock.errors import IndexAccessError, WheelError
from cudalock.index.cache import Cache
from cudalock.index.client import Client
from cudalock.index.definitions import Definition
from cudalock.index.recorded import Recording, load_recording
from cudalock.index.routes import AddedIndex, RoutingOptions
from cudalock.index.routing import Router
from cudalock.index.source import IndexSource
from cudalock.wheel.knowledge import Family, Knowledge, Pairing, Rename, StandInMetadata
from cudalock.wheel.listing import ProjectListing

SHA = "ab" * 32
OTHER_SHA = "cd" * 32


class Site:
    """Serves what a test puts into ``pages`` on loopback, and counts what is asked."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, str, bytes]] = {}
        self.asked: Counter[str] = Counter()
        # What a server without ranges says of a file's length, whatever it then sends.
        self.lengths: dict[str, int] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, kind, body = site.pages.get(self.path, (404, "text/plain", b"none"))
                site.asked[self.path] += 1
                span, place = self.headers.get("Range"), ""
                if span is not None and status == 200 and self.path not in site.lengths:
                    start, part = cut_range(span, body)
                    place = f"bytes {start}-{start + len(part) - 1}/{len(body)}"
                    status, body = 206, part
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(site.lengths.get(self.path, len(body))))
                if place:
                    self.send_header("Content-Range", place)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=partial(self._server.serve_forever, 0.02))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def put(self, path: str, body: bytes, *, status: int = 200, kind: str = "text/html") -> None:
        self.pages[path] = (status, kind, body)

    def put_page(self, folder: str, project: str, *files: str, flat: bool = False) -> None:
        """List files under ``folder``; a file may carry a ``#sha256=`` of its own."""
        anchors = []
        for file in files:
            href = file if "://" in file or file.startswith("/") else f"/files/{file}"
            name = file.rpartition("/")[2].partition("#")[0]
            fragment = "" if "#" in file else f"#sha256={SHA}"
            anchors.append(f'<a href="{href.replace("+", "%2B")}{fragment}">{name}</a><br/>')
        path = folder if flat else f"{folder}/{project}/"
        text = "<!DOCTYPE html>\n<html><body>\n" + "\n".join(anchors) + "\n</body></html>\n"
        self.put(path, text.encode())

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def cut_range(span: str, body: bytes) -> tuple[int, bytes]:
    first, _, last = span.removeprefix("bytes=").partition("-")
    if not first:
        start = max(0, len(body) - int(last))
        return start, body[start:]
    return int(first), body[int(first) : int(last) + 1 if last else None]


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


def make_definitions(site: Site) -> tuple[Definition, ...]:
    return (
        Definition(
            name="frame",
            stable=(f"{site.url}/frame/{{cuda}}",),
            nightly=(f"{site.url}/frame/nightly/{{cuda}}",),
            cpu="cpu",
            absent=frozenset({403, 404}),
            projects=frozenset({"frame", "frame-vision", "frame-audio"}),
            nightly_projects=frozenset({"tri"}),
        ),
        Definition(
            name="kernel",
            stable=(f"{site.url}/kernel/{{cuda}}",),
            projects=frozenset({"kernel"}),
        ),
        Definition(
            name="serve",
            stable=(f"{site.url}/serve/{{version}}/{{cuda}}",),
            projects=frozenset({"serve"}),
        ),
        Definition(
            name="extension",
            stable=(f"{site.url}/extension/{{cuda}}/frame{{partner}}",),
            pinned=(f"{site.url}/extension/test/{{cuda}}",),
            dialect="flat",
            partner="frame",
            projects=frozenset({"sparse"}),
        ),
        Definition(
            name="github",
            stable=(f"{site.url}/releases/expanded_assets/v{{version}}",),
            dialect="flat",
            projects=frozenset({"attention"}),
        ),
    )


KNOWLEDGE = Knowledge(
    families=(
        Family(name="frame", projects=("frame", "frame-audio", "frame-vision"), source="test"),
    ),
    renames=(
        Rename(project="old-kernel", successor="kernel", since=Version("0.4"), source="test"),
    ),
    pairings=(
        Pairing(
            project="paired",
            versions=SpecifierSet("==0.3"),
            partner="partner",
            minor="2.9",
            source="test",
        ),
    ),
    stand_ins=(
        StandInMetadata(
            project="kernel",
            versions=SpecifierSet("<1"),
            requires_dist=(Requirement("frame==2.9.*"),),
            source="kernel's pyproject.toml",
        ),
    ),
)
CUDA_131 = CudaVersion(13, 1)
CUDA_130 = CudaVersion(13, 0)


def wheel(name: str, version: str) -> str:
    return f"{name}-{version}-py3-none-any.whl"


class World:
    """A site, its definitions, and sources that ask it with a client of their own."""

    def __init__(self, site: Site, client: Client) -> None:
        self.site = site
        self.client = client
        self.default = f"{site.url}/simple"

    def router(
        self, options: RoutingOptions | None = None, *, cuda: CudaVersion | None = CUDA_131
    ) -> Router:
        return Router(
            definitions=make_definitions(self.site),
            options=options or self.options(),
            cuda=cuda,
        )

    def options(self) -> RoutingOptions:
        return RoutingOptions(default_url=self.default)

    def source(
        self,
        options: RoutingOptions | None = None,
        *,
        cuda: CudaVersion | None = CUDA_131,
        find_links: tuple[str, ...] = (),
        recordings: Mapping[str, Recording] | None = None,
        admitted: Mapping[str, str] | None = None,
    ) -> IndexSource:
        return IndexSource(
            router=self.router(options, cuda=cuda),
            client=self.client,
            knowledge=KNOWLEDGE,
            find_links=find_links,
            recordings=recordings,
            admitted={name: SpecifierSet(text) for name, text in (admitted or {}).items()},
        )


def make_client(directory: Path, *, offline: bool = False) -> Client:
    return Client(cache=Cache(directory / "cache"), sleep=lambda _: None, offline=offline)


@pytest.fixture
def world(site: Site, tmp_path: Path) -> Iterator[World]:
    with make_client(tmp_path) as client:
        yield World(site, client)


def ask(source: IndexSource, project: str, admitted: str = "", **said: bool) -> ProjectListing:
    nightly = said.get("nightly", False)
    return source.listing(project, admitted=SpecifierSet(admitted), nightly=nightly)


def names(listing: ProjectListing) -> list[str]:
    return sorted(file.filename for file in listing.files)


def statuses(listing: ProjectListing) -> list[tuple[str, str | None, str]]:
    return [(a.index, a.folder, a.status) for a in listing.answers]


def test_a_project_is_the_union_over_the_populated_folders_of_its_index(world: World) -> None:
    world.site.put_page("/frame/cu131", "frame", wheel("frame", "2.12.0+cu131"))
    world.site.put_page("/frame/cu130", "frame", wheel("frame", "2.11.0+cu130"))
    world.site.put_page("/simple", "frame", wheel("frame", "9.9"))
    with world.source() as source:
        listing = ask(source, "frame")
        assert ask(source, "frame") is listing
    assert names(listing) == [wheel("frame", "2.11.0+cu130"), wheel("frame", "2.12.0+cu131")]
    newer, older = listing.files
    assert (newer.index, newer.folder, older.folder) == ("frame", "cu131", "cu130")
    assert newer.index_url == f"{world.site.url}/frame/cu131"
    assert not listing.absent
    # The shadow copy on the default index is not even asked for.
    assert world.site.asked == {"/frame/cu131/frame/": 1, "/frame/cu130/frame/": 1}
    assert listing.notes == ()


def test_a_folder_that_is_absent_is_told_from_one_that_serves(world: World) -> None:
    world.site.put("/frame/cu131/frame/", b"denied", status=403)
    world.site.put_page("/frame/cu130", "frame", wheel("frame", "2.11.0+cu130"))
    with world.source() as source:
        listing = ask(source, "frame")
        ask(source, "kernel")
        assert statuses(listing) == [("frame", "cu131", "absent"), ("frame", "cu130", "listed")]
        assert source.absent_folders() == (
            ("frame", "cu131"),
            ("kernel", "cu130"),
            ("kernel", "cu131"),
        )


def test_a_folder_any_project_was_found_in_is_not_absent(world: World) -> None:
    world.site.put_page("/frame/cu131", "frame-vision", wheel("frame_vision", "1.0+cu131"))
    world.site.put_page("/frame/cu130", "frame", wheel("frame", "2.11.0+cu130"))
    with world.source() as source:
        ask(source, "frame")
        ask(source, "frame-vision")
        assert source.absent_folders() == ()


def test_a_project_its_definition_lacks_comes_from_the_default_index_and_that_is_said(
    world: World,
) -> None:
    world.site.put_page("/simple", "kernel", wheel("kernel", "0.3"))
    with world.source() as source:
        listing = ask(source, "kernel")
        assert [file.index for file in listing.files] == ["default"]
        assert listing.files[0].index_url == world.default
        assert statuses(listing) == [
            ("kernel", "cu131", "absent"),
            ("kernel", "cu130", "absent"),
            ("default", None, "listed"),
        ]
        assert listing.notes == (
            "kernel does not have kernel in cu131, cu130: it comes from the default index",
        )
        assert source.origin_notes == listing.notes


def test_a_project_no_index_has_is_absent(world: World) -> None:
    with world.source() as source:
        assert ask(source, "numpy").absent
        assert ask(source, "kernel").absent


def test_a_sibling_on_the_definition_keeps_a_project_off_the_default_index(world: World) -> None:
    world.site.put_page("/frame/cu130", "frame", wheel("frame", "2.11.0+cu130"))
    world.site.put_page("/simple", "frame-audio", wheel("frame_audio", "2.11.0"))
    with world.source() as source:
        listing = ask(source, "frame-audio")
    assert listing.files == ()
    assert listing.absent
    assert "does have frame of its family" in listing.notes[0]
    assert "/simple/frame-audio/" not in world.site.asked


def test_a_family_that_is_nowhere_on_the_definition_comes_from_the_default_index(
    world: World,
) -> None:
    for project in ("frame", "frame-audio"):
        world.site.put_page("/simple", project, wheel(project.replace("-", "_"), "2.11.0"))
    with world.source() as source:
        for project in ("frame-audio", "frame"):
            assert [file.index for file in ask(source, project).files] == ["default"]


def test_what_a_sibling_rule_says_does_not_hang_on_the_order_of_asking(world: World) -> None:
    world.site.put_page("/frame/cu130", "frame-vision", wheel("frame_vision", "1+cu130"))
    world.site.put_page("/simple", "frame", wheel("frame", "2.11.0"))
    projects = ["frame", "frame-audio", "frame-vision"]
    found = []
    for order in (projects, projects[::-1]):
        with world.source() as source:
            listings = {project: ask(source, project) for project in order}
            found.append([listings[project] for project in projects])
    assert found[0] == found[1]


@pytest.mark.parametrize("status", [401, 403, 410, 500])
def test_an_index_that_cannot_be_read_is_never_absent(world: World, status: int) -> None:
    world.site.put("/kernel/cu130/kernel/", b"no", status=status)
    world.site.put_page("/kernel/cu131", "kernel", wheel("kernel", "0.3+cu131"))
    world.site.put_page("/simple", "kernel", wheel("kernel", "0.3"))
    with world.source() as source:
        for _ in range(2):
            with pytest.raises(IndexAccessError, match="/kernel/cu130/kernel/") as caught:
                ask(source, "kernel")
            assert caught.value.flag == "--exclude-index kernel"
        assert "/simple/kernel/" not in world.site.asked


def test_the_flag_that_is_named_does_leave_the_index_out(world: World) -> None:
    world.site.put("/kernel/cu130/kernel/", b"no", status=403)
    world.site.put_page("/simple", "kernel", wheel("kernel", "0.3"))
    options = replace(world.options(), excluded=frozenset({"kernel"}))
    with world.source(options) as source:
        assert names(ask(source, "kernel")) == [wheel("kernel", "0.3")]


def test_a_default_index_that_cannot_be_read_names_its_own_flag(world: World) -> None:
    world.site.put("/simple/numpy/", b"no", status=403)
    with world.source() as source:
        with pytest.raises(IndexAccessError) as caught:
            ask(source, "numpy")
        assert caught.value.flag == "--default-index URL"


def test_a_page_that_is_no_page_is_an_error_with_the_flag(world: World) -> None:
    world.site.put("/kernel/cu131/kernel/", b"\x89PNG\r\n", kind="image/png")
    with world.source() as source:
        with pytest.raises(IndexAccessError) as caught:
            ask(source, "kernel")
        assert caught.value.flag == "--exclude-index kernel"


def test_nightly_adds_the_nightly_folders_and_marks_what_they_list(world: World) -> None:
    world.site.put_page("/frame/cu130", "frame", wheel("frame", "2.11.0+cu130"))
    world.site.put_page("/frame/nightly/cu130", "frame", wheel("frame", "2.12.0.dev1+cu130"))
    world.site.put_page("/frame/nightly/cu130", "tri", wheel("tri", "3.6.0+gitabc"))
    world.site.put_page("/simple", "tri", wheel("tri", "3.6.0"))
    with world.source(cuda=CUDA_130) as source:
        assert names(ask(source, "frame")) == [wheel("frame", "2.11.0+cu130")]
        opened = ask(source, "frame", nightly=True)
        assert {file.filename: file.nightly for file in opened.files} == {
            wheel("frame", "2.11.0+cu130"): False,
            wheel("frame", "2.12.0.dev1+cu130"): True,
        }
        assert names(ask(source, "tri")) == [wheel("tri", "3.6.0")]
        assert names(ask(source, "tri", nightly=True)) == [wheel("tri", "3.6.0+gitabc")]
    assert max(world.site.asked.values()) == 1


def test_a_file_two_folders_list_is_one_file_with_every_hash_and_no_folder(world: World) -> None:
    shared = wheel("kernel", "0.3")
    world.site.put_page("/kernel/cu131", "kernel", shared, wheel("kernel", "0.3+cu131"))
    world.site.put_page("/kernel/cu130", "kernel", f"{shared}#sha256={OTHER_SHA}")
    with world.source() as source:
        listing = ask(source, "kernel")
        files = {file.filename: file for file in listing.files}
        assert len(listing.files) == 2
        assert files[shared].sha256 == (SHA, OTHER_SHA)
        assert files[shared].folder is None
        assert files[wheel("kernel", "0.3+cu131")].folder == "cu131"


def test_versions_are_asked_newest_first_and_the_first_that_serves_is_the_last_asked(
    world: World,
) -> None:
    released = [wheel("serve", version) for version in ("0.19.0", "0.19.1", "0.20.0", "1.0rc1")]
    world.site.put_page("/simple", "serve", *released)
    world.site.put_page("/serve/0.19.1/cu130", "serve", wheel("serve", "0.19.1+cu130"))
    world.site.put_page("/serve/0.19.0/cu130", "serve", wheel("serve", "0.19.0+cu130"))
    with world.source(cuda=CUDA_130) as source:
        listing = ask(source, "serve")
        assert names(listing) == [wheel("serve", "0.19.1+cu130")]
        assert world.site.asked == {
            "/simple/serve/": 1,
            "/serve/0.20.0/cu130/serve/": 1,
            "/serve/0.19.1/cu130/serve/": 1,
        }
        # The default index's page was read anyway, so its shadow copy can be named.
        (note,) = listing.notes
        assert note.startswith("the default index also lists serve (newest 1.0rc1): not considered")
        assert listing.files[0].index_url == f"{world.site.url}/serve/0.19.1/cu130"


@pytest.mark.parametrize("admitted", ["<0.19.1", "==0.19.0", "==0.19.0+cu130"])
def test_only_versions_the_requirements_admit_are_asked(world: World, admitted: str) -> None:
    released = [wheel("serve", version) for version in ("0.19.0", "0.19.1")]
    world.site.put_page("/simple", "serve", *released)
    for version in ("0.19.0", "0.19.1"):
        world.site.put_page(f"/serve/{version}/cu130", "serve", wheel("serve", f"{version}+cu130"))
    with world.source(cuda=CUDA_130) as source:
        assert names(ask(source, "serve", admitted)) == [wheel("serve", "0.19.0+cu130")]
        assert names(ask(source, "serve")) == [wheel("serve", "0.19.1+cu130")]
    assert max(world.site.asked.values()) == 1


def test_a_prerelease_is_asked_only_where_it_is_admitted(world: World) -> None:
    world.site.put_page("/simple", "serve", wheel("serve", "1.0rc1"), wheel("serve", "0.9"))
    world.site.put_page("/serve/1.0rc1/cu130", "serve", wheel("serve", "1.0rc1+cu130"))
    world.site.put_page("/serve/0.9/cu130", "serve", wheel("serve", "0.9+cu130"))
    with world.source(cuda=CUDA_130) as source:
        assert names(ask(source, "serve")) == [wheel("serve", "0.9+cu130")]
        assert names(ask(source, "serve", "==1.0rc1")) == [wheel("serve", "1.0rc1+cu130")]
        assert names(ask(source, "serve", nightly=True)) == [wheel("serve", "1.0rc1+cu130")]


def test_versions_the_publisher_does_not_serve_come_from_the_default_index(world: World) -> None:
    world.site.put_page("/simple", "serve", wheel("serve", "0.19.0"), wheel("serve", "0.20.0"))
    with world.source(cuda=CUDA_130) as source:
        listing = ask(source, "serve")
    assert {file.index for file in listing.files} == {"default"}
    assert listing.notes == ("serve does not have serve in cu130: it comes from the default index",)
    assert world.site.asked["/simple/serve/"] == 1


def test_a_versioned_project_the_default_index_lacks_is_absent(world: World) -> None:
    with world.source() as source:
        listing = ask(source, "serve")
    assert listing.absent
    assert world.site.asked == {"/simple/serve/": 1}


def test_releases_past_the_limit_are_not_asked_and_the_answer_is_partial(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cudalock.index.asking.RELEASES_LIMIT", 2)
    world.site.put_page("/simple", "serve", *(wheel("serve", f"{n}.0") for n in range(4)))
    with world.source(cuda=CUDA_130) as source:
        listing = ask(source, "serve")
    assert [answer.status for answer in listing.answers] == ["absent", "absent", "partial"]
    assert "newest 2 releases" in listing.answers[-1].source
    assert not listing.absent
    assert listing.files == ()


def test_an_added_index_serves_what_it_lists_and_leaves_the_rest(world: World) -> None:
    world.site.put_page("/own", "numpy", wheel("numpy", "1.0"))
    world.site.put_page("/simple", "numpy", wheel("numpy", "2.0"))
    world.site.put_page("/simple", "scipy", wheel("scipy", "2.0"))
    added = (AddedIndex(name="own", url=f"{world.site.url}/own"),)
    with world.source(replace(world.options(), added=added)) as source:
        # A higher version on an index of lower priority changes nothing (dependency confusion).
        assert names(ask(source, "numpy")) == [wheel("numpy", "1.0")]
        listing = ask(source, "scipy")
        assert names(listing) == [wheel("scipy", "2.0")]
        assert listing.notes == ()
    assert "/simple/numpy/" not in world.site.asked


def test_a_source_without_a_folder_for_the_target_has_nothing_and_says_so(world: World) -> None:
    options = replace(world.options(), sources={"kernel": "kernel"})
    with world.source(options, cuda=None) as source:
        listing = ask(source, "kernel")
    assert listing.absent
    assert "tool.uv.sources names kernel" in listing.answers[0].source
    assert "/simple/kernel/" not in world.site.asked


def test_find_links_adds_to_every_project_it_holds(world: World, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    local = make_wheel(wheels, "left", "3.0", requires=["numpy"])
    (wheels / "left-x.whl").write_bytes(b"")
    world.site.put_page("/simple", "left", wheel("left", "1.0"))
    page = f"{world.site.url}/links.html"
    flat = (wheel("left", "2.0+cu130"), wheel("right", "2.0"))
    world.site.put_page("/links.html", "", *flat, flat=True)
    with world.source(find_links=(str(wheels), page)) as source:
        listing = ask(source, "left")
        assert names(listing) == [
            wheel("left", "1.0"),
            wheel("left", "2.0+cu130"),
            wheel("left", "3.0"),
        ]
        assert [answer.index for answer in listing.answers] == [
            "default",
            "find-links",
            "find-links",
        ]
        assert [rejection.filename for rejection in listing.rejections] == ["left-x.whl"]
        assert names(ask(source, "right")) == [wheel("right", "2.0")]
        assert not ask(source, "right").absent
        assert ask(source, "numpy").absent
        mine = next(file for file in listing.files if file.index_url.startswith("file:"))
        metadata = source.metadata(mine)
        assert metadata is not None
        assert [str(requirement) for requirement in metadata.requires_dist] == ["numpy"]
        assert source.compute_hash(mine).sha256 == hashlib.sha256(local.read_bytes()).hexdigest()
    assert world.site.asked["/links.html"] == 1


def test_what_a_flat_page_says_of_others_is_no_answer_for_a_project(world: World) -> None:
    links = ("../", "right-1.tar.gz", wheel("right", "2"), "left-x.whl", wheel("left", "1"))
    body = "".join(f'<a href="{link}">{link}</a>' for link in links)
    world.site.put("/links/", body.encode())
    with world.source(find_links=(f"{world.site.url}/links/",)) as source:
        assert [rejection.filename for rejection in ask(source, "left").rejections] == [
            "left-x.whl"
        ]
        assert ask(source, "numpy").absent
        assert ask(source, "numpy").rejections == ()


def test_a_find_links_page_that_is_not_there_is_an_error_with_its_flag(world: World) -> None:
    with world.source(find_links=(f"{world.site.url}/links.html",)) as source:
        with pytest.raises(IndexAccessError) as caught:
            ask(source, "left")
        assert caught.value.flag == "--find-links"


def put_wheel(world: World, path: Path) -> None:
    world.site.put(f"/files/{path.name.replace('+', '%2B')}", path.read_bytes(), kind="x/y")


def test_a_wheels_own_metadata_is_read_once_and_outranks_a_stand_in(
    world: World, tmp_path: Path
) -> None:
    put_wheel(world, make_wheel(tmp_path, "kernel", "0.3+cu130", requires=["right"]))
    world.site.put_page("/kernel/cu130", "kernel", wheel("kernel", "0.3+cu130"))
    with world.source(cuda=CUDA_130) as source:
        (file,) = ask(source, "kernel").files
        world.site.asked.clear()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(source.metadata, [file] * 8))
        asked = world.site.asked.total()
        again = source.rerouted(world.router(cuda=CUDA_131)).metadata(file)
    assert found[0] is not None
    assert [str(requirement) for requirement in found[0].requires_dist] == ["right"]
    assert not found[0].assumed
    assert all(metadata is found[0] for metadata in [*found, again])
    assert asked == world.site.asked.total()
    assert asked <= 2


def test_a_stand_in_serves_only_where_metadata_cannot_be_had(world: World) -> None:
    files = (wheel("kernel", "0.3+cu130"), wheel("kernel", "1.0+cu130"))
    world.site.put_page("/kernel/cu130", "kernel", *files)
    with world.source(cuda=CUDA_130) as source:
        listed = {str(f.wheel.version.public): f for f in ask(source, "kernel").files}
        metadata = source.metadata(listed["0.3"])
        assert metadata is not None
        assert metadata.assumed
        assert metadata.source == "kernel's pyproject.toml"
        assert metadata.version == Version("0.3+cu130")
        assert [str(requirement) for requirement in metadata.requires_dist] == ["frame==2.9.*"]
        for _ in range(2):
            with pytest.raises(IndexAccessError) as caught:
                source.metadata(listed["1.0"])
            assert caught.value.flag == "--exclude-index kernel"


def test_a_wheel_too_large_to_read_whole_where_there_are_no_ranges_may_be_stood_in_for(
    world: World,
) -> None:
    path = "/files/kernel-0.3%2Bcu130-py3-none-any.whl"
    world.site.put(path, b"PK")
    world.site.lengths[path] = 3 * 1024**3
    world.site.put_page("/kernel/cu130", "kernel", wheel("kernel", "0.3+cu130"))
    with world.source(cuda=CUDA_130) as source:
        (file,) = ask(source, "kernel").files
        metadata = source.metadata(file)
    assert metadata is not None
    assert metadata.assumed


def test_metadata_the_default_index_does_not_give_names_no_index_to_leave_out(
    world: World,
) -> None:
    world.site.put_page("/simple", "numpy", wheel("numpy", "2.0"))
    with world.source() as source:
        (file,) = ask(source, "numpy").files
        with pytest.raises(IndexAccessError) as caught:
            source.metadata(file)
    assert caught.value.flag is None


def test_offline_a_listing_comes_from_the_cache_or_is_an_error(
    world: World, tmp_path: Path
) -> None:
    world.site.put_page("/frame/cu130", "frame", wheel("frame", "2.11.0+cu130"))
    with world.source() as source:
        online = ask(source, "frame")
    before = world.site.asked.total()
    with make_client(tmp_path, offline=True) as world.client, world.source() as source:
        assert ask(source, "frame") == online
        for project, flag in (("kernel", "--exclude-index kernel"), ("numpy", "--offline")):
            with pytest.raises(IndexAccessError, match="offline") as caught:
                ask(source, project)
            assert caught.value.flag == flag
    assert world.site.asked.total() == before


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_down_or_busy_lets_nothing_stand_in(world: World, status: int) -> None:
    file = wheel("kernel", "0.3+cu130")
    world.site.put_page("/kernel/cu130", "kernel", file)
    world.site.put(f"/files/{file.replace('+', '%2B')}", b"busy", status=status)
    with world.source(cuda=CUDA_130) as source:
        (listed,) = ask(source, "kernel").files
        with pytest.raises(IndexAccessError):
            source.metadata(listed)


def test_a_wheel_that_contradicts_itself_is_an_error_whatever_stands_in(
    world: World, tmp_path: Path
) -> None:
    lying = make_wheel(tmp_path, "right", "0.3")
    put_wheel(world, lying.rename(tmp_path / wheel("kernel", "0.3")))
    world.site.put_page("/kernel/cu130", "kernel", wheel("kernel", "0.3"))
    with world.source(cuda=CUDA_130) as source:
        (file,) = ask(source, "kernel").files
        with pytest.raises(WheelError):
            source.metadata(file)


def test_a_hash_is_computed_from_the_bytes_once(world: World, tmp_path: Path) -> None:
    built = make_wheel(tmp_path, "kernel", "0.3")
    put_wheel(world, built)
    with world.source() as source:
        file = source.direct("kernel", f"{world.site.url}/files/{built.name}", None)
        hashes = {source.compute_hash(file).sha256 for _ in range(3)}
    assert hashes == {hashlib.sha256(built.read_bytes()).hexdigest()}
    assert world.site.asked == {f"/files/{built.name}": 1}


def test_a_direct_wheel_is_of_its_project(world: World) -> None:
    with world.source() as source, pytest.raises(WheelError):
        source.direct("left", "https://h.example/right-1-py3-none-any.whl", None)


def test_many_threads_read_each_page_once_and_get_one_listing(world: World) -> None:
    world.site.put_page("/frame/cu130", "frame", wheel("frame", "2.11.0+cu130"))
    with world.source() as source, ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: ask(source, "frame"), range(32)))
    assert all(listing is found[0] for listing in found)
    assert max(world.site.asked.values()) == 1


def test_another_target_reads_no_page_a_second_time(world: World) -> None:
    world.site.put_page("/frame/cu130", "frame", wheel("frame", "2.11.0+cu130"))
    with world.source() as source:
        ask(source, "frame")
        other = source.rerouted(world.router(cuda=CUDA_130))
        listing = ask(other, "frame")
        assert statuses(listing) == [("frame", "cu130", "listed")]
        assert other.absent_folders() == ()
        assert source.absent_folders() == (("frame", "cu131"),)
    assert max(world.site.asked.values()) == 1


def test_near_names_come_from_data_and_cost_no_request(world: World) -> None:
    source = IndexSource(
        router=world.router(),
        client=world.client,
        knowledge=KNOWLEDGE,
        cached_projects=["numpy"],
    )
    known = source.known_projects()
    assert {"frame-audio", "tri", "old-kernel", "paired", "partner", "serve", "numpy"} <= known
    assert not world.site.asked


def make_recording(world: World, directory: Path) -> Mapping[str, Recording]:
    """Record of `frame`: cu130 whole and partial pages, cu129 listed only, no other folder."""
    base = f"{world.site.url}/frame"

    def page(project: str, complete: bool, *versions: str) -> dict[str, object]:
        files = [
            {"url": f"{base}/{wheel(project.replace('-', '_'), v)}", "sha256": [SHA], "metadata": m}
            for v, m in zip(versions, [0] + [None] * len(versions), strict=False)
        ]
        return {"project": project, "complete": complete, "sources": ["test"], "files": files}

    declared = {"source": "METADATA", "assumed": False, "requires_dist": ["right"]}
    tables = {
        "publisher.json": {
            "schema": 1,
            "definition": "frame",
            "parents": [
                {"url": base, "complete": True, "source": "test"},
                {"url": f"{base}/nightly", "complete": True, "source": "test"},
            ],
            "folders": [
                {"url": f"{base}/cu129", "folder": "cu129", "nightly": False},
                {"url": f"{base}/cu130", "folder": "cu130", "nightly": False, "file": "cu130.json"},
            ],
        },
        "cu130.json": {
            "schema": 1,
            "url": f"{base}/cu130",
            "metadata": [declared],
            "pages": [
                page("frame", True, "2.11.0+cu130", "2.10.0+cu130"),
                page("frame-vision", False, "1.0+cu130"),
            ],
        },
    }
    folder = directory / "recorded" / "frame"
    folder.mkdir(parents=True)
    for name, table in tables.items():
        (folder / name).write_text(json.dumps(table))
    recording = load_recording(folder.parent, "frame")
    assert recording is not None
    return {"frame": recording}


def test_a_recorded_index_answers_without_the_network(world: World, tmp_path: Path) -> None:
    world.site.put_page("/frame/cu131", "frame", wheel("frame", "9.0+cu131"))
    with world.source(recordings=make_recording(world, tmp_path)) as source:
        listing = ask(source, "frame", nightly=True)
        assert statuses(listing) == [
            ("frame", "cu131", "absent"),
            ("frame", "cu130", "listed"),
            ("frame", "nightly/cu131", "absent"),
            ("frame", "nightly/cu130", "absent"),
        ]
        newest, older = listing.files
        declared = source.metadata(newest)
        assert declared is not None
        assert [str(requirement) for requirement in declared.requires_dist] == ["right"]
        assert source.metadata(older) is None
        assert newest.index_url == f"{world.site.url}/frame/cu130"
        assert ("frame", "cu131") in source.absent_folders()
    assert not world.site.asked


def test_what_a_recording_does_not_hold_is_neither_absent_nor_taken_from_elsewhere(
    world: World, tmp_path: Path
) -> None:
    world.site.put_page("/simple", "frame-audio", wheel("frame_audio", "1"))
    recordings = make_recording(world, tmp_path)
    with world.source(recordings=recordings) as source:
        assert statuses(ask(source, "frame-vision")) == [
            ("frame", "cu131", "absent"),
            ("frame", "cu130", "partial"),
        ]
        audio = ask(source, "frame-audio")
        assert statuses(audio) == [("frame", "cu131", "absent"), ("frame", "cu130", "unrecorded")]
        assert not audio.absent
    with world.source(recordings=recordings, cuda=CudaVersion(12, 9)) as source:
        assert statuses(ask(source, "frame"))[0] == ("frame", "cu129", "unrecorded")
    assert not world.site.asked


def test_recorded_indexes_and_live_ones_serve_side_by_side(world: World, tmp_path: Path) -> None:
    world.site.put_page("/simple", "numpy", wheel("numpy", "2.0"))
    world.site.put_page("/kernel/cu130", "kernel", wheel("kernel", "0.3+cu130"))
    with world.source(recordings=make_recording(world, tmp_path), cuda=CUDA_130) as source:
        assert names(ask(source, "numpy")) == [wheel("numpy", "2.0")]
        assert names(ask(source, "kernel")) == [wheel("kernel", "0.3+cu130")]
        assert len(ask(source, "frame").files) == 2


def test_an_address_the_person_gave_is_asked_and_not_answered_from_a_recording(
    world: World, tmp_path: Path
) -> None:
    world.site.put_page("/mirror", "frame", wheel("frame", "2.9.0+cu130"))
    added = (AddedIndex(name="frame", url=f"{world.site.url}/mirror"),)
    options = replace(world.options(), added=added)
    with world.source(options, recordings=make_recording(world, tmp_path)) as source:
        assert names(ask(source, "frame")) == [wheel("frame", "2.9.0+cu130")]


def test_a_broken_recording_is_an_error_and_not_an_absence(world: World, tmp_path: Path) -> None:
    recordings = make_recording(world, tmp_path)
    (tmp_path / "recorded" / "frame" / "cu130.json").write_text("{")
    with world.source(recordings=recordings) as source, pytest.raises(IndexAccessError):
        ask(source, "frame")


def put_frame(world: World, *versions: str) -> None:
    files = [f"frame-{v}-py3-none-any.whl" for v in versions]
    for folder in ("cu131", "cu130"):
        fit = [f for f in files if f"+{folder}" in f]
        if fit:
            world.site.put_page(f"/frame/{folder}", "frame", *fit)


def extension_paths(world: World) -> list[str]:
    return sorted(path for path in world.site.asked if path.startswith("/extension"))


def test_a_folder_a_partners_release_is_asked_as_often_as_the_partner_has_releases(
    world: World,
) -> None:
    put_frame(world, "2.9.1+cu130", "2.10.0+cu130", "2.10.0+cu131", "2.8.0+cu129")
    world.site.put_page(
        "/extension/cu130/frame2.9.1", "", wheel("sparse", "1.0+pt29cu130"), flat=True
    )
    with world.source() as source:
        listing = ask(source, "sparse")
        assert ask(source, "sparse") is listing
    assert names(listing) == [wheel("sparse", "1.0+pt29cu130")]
    assert listing.files[0].folder == "cu130"
    # Three pairs of a release and a CUDA: three requests, and two for the partner's own pages.
    assert extension_paths(world) == [
        "/extension/cu130/frame2.10.0",
        "/extension/cu130/frame2.9.1",
        "/extension/cu131/frame2.10.0",
    ]
    assert world.site.asked["/frame/cu130/frame/"] == 1
    assert listing.notes == ()


def test_what_is_admitted_of_the_partner_saves_requests(world: World) -> None:
    put_frame(world, "2.9.1+cu130", "2.10.0+cu130", "2.10.0+cu131")
    with world.source(admitted={"frame": "<2.10"}) as source:
        ask(source, "sparse")
    assert extension_paths(world) == ["/extension/cu130/frame2.9.1"]


def test_a_partner_without_an_admitted_release_leaves_nothing_to_ask(world: World) -> None:
    put_frame(world, "2.9.1+cu130")
    world.site.put_page("/simple", "sparse", wheel("sparse", "0.9"))
    with world.source(admitted={"frame": ">=3"}) as source:
        listing = ask(source, "sparse")
    assert [file.index for file in listing.files] == ["default"]
    assert "frame lists no release that is admitted" in listing.answers[0].source
    assert extension_paths(world) == []


def test_a_partner_that_cannot_be_read_is_never_a_project_without_wheels(world: World) -> None:
    world.site.put("/frame/cu130/frame/", b"no", status=500)
    with world.source() as source, pytest.raises(IndexAccessError) as caught:
        ask(source, "sparse")
    assert caught.value.flag == "--exclude-index frame"


def test_another_question_about_the_partner_asks_anew_and_reads_no_page_twice(
    world: World,
) -> None:
    put_frame(world, "2.9.1+cu130", "2.10.0+cu130")
    with world.source(admitted={"frame": "<2.10"}) as source:
        ask(source, "sparse")
        other = source.rerouted(world.router(), admitted={"frame": SpecifierSet("<2.11")})
        ask(other, "sparse")
    assert extension_paths(world) == [
        "/extension/cu130/frame2.10.0",
        "/extension/cu130/frame2.9.1",
    ]
    assert set(world.site.asked.values()) == {1}


def test_folders_for_pins_are_asked_only_for_a_pin_that_nothing_else_serves(world: World) -> None:
    put_frame(world, "2.9.1+cu130")
    page = "/extension/cu130/frame2.9.1"
    world.site.put_page(page, "", wheel("sparse", "1.0+pt29cu130"), flat=True)
    test = "/extension/test/cu130"
    world.site.put_page(test, "", wheel("sparse", "1.1"), wheel("sparse", "1.0"), flat=True)
    with world.source() as source:
        assert names(ask(source, "sparse", ">=1")) == [wheel("sparse", "1.0+pt29cu130")]
        assert names(ask(source, "sparse", "==1.0")) == [wheel("sparse", "1.0+pt29cu130")]
        assert test not in world.site.asked
        pinned = ask(source, "sparse", "==1.1")
    assert wheel("sparse", "1.1") in names(pinned)
    assert world.site.asked[test] == 1


def test_releases_of_a_project_with_source_distributions_only_are_known(world: World) -> None:
    files = [
        {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": SHA}}
        for name in ("attention-2.8.3.tar.gz", "attention-2.8.2.tar.gz", "attention-2.7.zip")
    ]
    body = json.dumps({"meta": {"api-version": "1.1"}, "name": "attention", "files": files})
    world.site.put("/simple/attention/", body.encode(), kind="application/json")
    # A release page of GitHub: links from the root of the host, and sources beside the wheels.
    text = (Path(__file__).parent.parent / "pages" / "publisher-github-release.html").read_text()
    text = text.replace("flash_attn-", "attention-")
    world.site.put("/releases/expanded_assets/v2.8.2", text.encode())
    with world.source() as source:
        listing = ask(source, "attention")
    assert [path for path in world.site.asked if path.startswith("/releases")] == [
        "/releases/expanded_assets/v2.8.3",
        "/releases/expanded_assets/v2.8.2",
    ]
    assert names(listing) == [
        "attention-2.8.3+cu12torch2.7cxx11abiFALSE-cp312-cp312-linux_x86_64.whl",
        "attention-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl",
    ]
    first = listing.files[0]
    assert first.url.startswith(f"{world.site.url}/Dao-AILab/flash-attention/releases/download/")
    assert (first.sha256, first.folder) == ((), None)
    # Nothing can be installed from the copy on the default index, so there is none to speak of.
    assert listing.notes == ()


def test_a_page_that_lists_nothing_is_told_from_one_that_is_not_there(world: World) -> None:
    world.site.put_page("/kernel/cu131", "kernel")
    world.site.put(
        "/kernel/cu131/kernel/",
        b"<!DOCTYPE html><html><body><h1>Links for kernel</h1></body></html>",
    )
    world.site.put_page("/simple", "kernel", wheel("kernel", "0.3"))
    with world.source() as source:
        listing = ask(source, "kernel")
    assert listing.files == ()
    assert not listing.absent
    assert listing.notes == ("kernel has a page of kernel in cu131 and lists no wheel there",)


def test_a_name_met_in_nightlies_stays_there_and_the_copy_elsewhere_is_named(world: World) -> None:
    """Whoever registers the name on the default index does not take its place (torchtriton)."""
    world.site.put_page("/frame/nightly/cu130", "tri", wheel("tri", "2.0.0+abc"))
    world.site.put_page("/simple", "tri", wheel("tri", "3.0.0"))
    with world.source() as source:
        listing = ask(source, "tri", nightly=True)
    assert names(listing) == [wheel("tri", "2.0.0+abc")]
    assert listing.notes == (
        "the default index also lists tri (newest 3.0.0): not considered, it comes from frame",
    )


def test_a_pre_release_a_person_pins_may_be_where_the_project_is_at_home(world: World) -> None:
    world.site.put_page("/frame/nightly/cu130", "tri", wheel("tri", "3.6.0.dev20260101"))
    world.site.put_page("/simple", "tri", wheel("tri", "3.5.0rc1"), wheel("tri", "3.5.0"))
    with world.source() as source:
        assert names(ask(source, "tri", nightly=True)) == [wheel("tri", "3.6.0.dev20260101")]
        listing = ask(source, "tri", "==3.5.0rc1", nightly=True)
    assert names(listing) == [wheel("tri", "3.5.0"), wheel("tri", "3.5.0rc1")]
    assert {file.index for file in listing.files} == {"default"}
    assert listing.notes == ("frame does not list tri 3.5.0rc1: it comes from the default index",)


def test_a_default_index_that_cannot_be_read_does_not_stand_in_the_way_of_a_nightly(
    world: World,
) -> None:
    world.site.put_page("/frame/nightly/cu130", "tri", wheel("tri", "2.0.0+abc"))
    world.site.put("/simple/tri/", b"no", status=500)
    with world.source() as source:
        listing = ask(source, "tri", nightly=True)
    assert names(listing) == [wheel("tri", "2.0.0+abc")]
    assert listing.notes == ()


def recorded_kernel(directory: Path, url: str, *folders: str) -> dict[str, Recording]:
    folder = directory / "kernel"
    folder.mkdir()
    listed = [
        {
            "url": f"{url}/kernel/{name}",
            "folder": name,
            "nightly": False,
            "projects": ["kernel", "serving"],
        }
        for name in folders
    ]
    parent = {"url": f"{url}/kernel", "complete": True, "source": "kernel/whl"}
    document = {"schema": 1, "definition": "kernel", "parents": [parent], "folders": listed}
    (folder / "publisher.json").write_text(json.dumps(document), encoding="utf-8")
    found = load_recording(directory, "kernel")
    assert found is not None
    return {"kernel": found}


def test_a_stale_copy_on_a_variant_index_is_named_and_never_taken(
    world: World, tmp_path: Path
) -> None:
    world.site.put_page("/simple", "serving", wheel("serving", "0.5.8"))
    recordings = recorded_kernel(tmp_path, world.site.url, "cu130", "cu129")
    with world.source(recordings=recordings) as source:
        listing = ask(source, "serving")
    assert names(listing) == [wheel("serving", "0.5.8")]
    assert listing.notes == (
        "kernel also lists serving (cu129, cu130): not considered, it comes from the default index",
    )


def test_a_project_that_is_there_for_other_releases_only_says_for_which(
    world: World, tmp_path: Path
) -> None:
    world.site.put_page("/simple", "kernel", wheel("kernel", "0.3"))
    recordings = recorded_kernel(tmp_path, world.site.url, "cu128", "cu126")
    with world.source(recordings=recordings) as source:
        listing = ask(source, "kernel")
    (note,) = listing.notes
    assert note.startswith(
        "kernel does not have kernel in cu131, cu130, and has it in cu126, cu128"
    )
    assert note.endswith("it comes from the default index")
