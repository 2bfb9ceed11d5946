"""What is served around a page: statuses, redirects to other hosts, folders and hosts of a publisher."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from builders import make_wheel
from cudalock.cuda import CudaVersion
from cudalock.errors import IndexAccessError
from cudalock.index.cache import Cache
from cudalock.index.client import Client
from cudalock.index.definitions import Definition
from cudalock.index.failures import HttpStatusError, NotAPageError, RedirectError
from cudalock.index.routes import RoutingOptions
from cudalock.index.routing import Router
from cudalock.index.source import IndexSource
from cudalock.wheel.listing import ProjectListing
from loopback import Asked, Loopback, Reply, serve, serve_file

PAGES = Path(__file__).parent.parent / "pages"
A, B = "a1" * 32, "b2" * 32
_HTML = {"Content-Type": "text/html"}


class Publisher:
    """Answers by path; what is not there is 404."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.files: dict[str, bytes] = {}

    def answer(self, asked: Asked) -> Reply:
        path = asked.path.partition("?")[0]
        if path in self.files and asked.headers.get("if-none-match") == '"1"':
            return Reply(304)
        if path in self.files:
            return serve_file(self.files[path], asked, etag='"1"')
        return self.replies.get(path, Reply(404))

    def page(self, path: str, text: str) -> None:
        self.replies[path] = Reply(200, text.encode(), _HTML)


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


@pytest.fixture
def site(publisher: Publisher) -> Iterator[Loopback]:
    with serve(publisher.answer) as found:
        yield found


@pytest.fixture
def mirror() -> Publisher:
    return Publisher()


@pytest.fixture
def other_host(mirror: Publisher) -> Iterator[str]:
    """Return the address of a second server under another host name than the first one's."""
    with serve(mirror.answer) as found:
        yield found.url.replace("127.0.0.1", "localhost")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(None, Cache(tmp_path / "cache"), sleep=lambda _: None, retries=0) as client:
        yield client


def source(site: Loopback, client: Client, *templates: str, absent: int = 404) -> IndexSource:
    definition = Definition(
        name="publisher",
        stable=tuple(f"{site.url}{template}" for template in templates),
        absent=frozenset({absent}),
        projects=frozenset({"left", "torch", "torchvision", "sgl-kernel"}),
    )
    router = Router(
        definitions=(definition,),
        options=RoutingOptions(default_url=f"{site.url}/simple"),
        cuda=CudaVersion(13, 1),
    )
    return IndexSource(router=router, client=client)


def ask(found: IndexSource, project: str) -> ProjectListing:
    return found.listing(project, admitted=SpecifierSet(), nightly=False)


def moved(address: str) -> Reply:
    return Reply(302, b"", {"Location": address})


def test_a_page_that_moved_to_another_host_has_its_links_there(
    publisher: Publisher, mirror: Publisher, site: Loopback, other_host: str, client: Client
) -> None:
    publisher.replies["/+simple/cu130/left/"] = moved(f"{other_host}/root/+simple/left/?token=x")
    mirror.page(
        "/root/+simple/left/",
        f'<a href="../../+f/aa/left-1.0-py3-none-any.whl#sha256={A}">x</a>',
    )
    with source(site, client, "/+simple/cu130") as found:
        (file,) = ask(found, "left").files
    assert file.url == f"{other_host}/root/+f/aa/left-1.0-py3-none-any.whl"
    # What a lock records as the index is the address that was asked.
    assert file.index_url == f"{site.url}/+simple/cu130"


def test_a_wheel_behind_a_redirect_to_another_host_is_read_and_keeps_its_own_address(
    publisher: Publisher,
    mirror: Publisher,
    site: Loopback,
    other_host: str,
    client: Client,
    tmp_path: Path,
) -> None:
    wheel = make_wheel(tmp_path, "left", "1.0", requires=["right>=2"])
    mirror.files["/blob/17"] = wheel.read_bytes()
    path = f"/owner/releases/download/v1/{wheel.name}"
    publisher.replies[path] = moved(f"{other_host}/blob/17?signature=1")
    publisher.page("/whl/cu130/left/", f'<a href="{path}">x</a>')
    with source(site, client, "/whl/{cuda}") as found:
        (file,) = ask(found, "left").files
        metadata = found.metadata(file)
        assert metadata is not None
        assert [str(r) for r in metadata.requires_dist] == ["right>=2"]
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        assert found.compute_hash(file).sha256 == digest
        # The validator came from the other host, and holds there.
        assert found.recall_hash(file) == (digest, wheel.stat().st_size)
    assert file.url == f"{site.url}{path}"


def test_redirects_in_a_circle_over_two_hosts_end(
    publisher: Publisher, mirror: Publisher, site: Loopback, other_host: str, client: Client
) -> None:
    publisher.replies["/whl/cu130/left/"] = moved(f"{other_host}/left/")
    mirror.replies["/left/"] = moved(f"{site.url}/whl/cu130/left/")
    with source(site, client, "/whl/{cuda}") as found, pytest.raises(RedirectError):
        ask(found, "left")
    assert len(site.asked) < 8


@pytest.mark.parametrize("status", [403, 404])
def test_a_publisher_may_say_absent_by_403(
    publisher: Publisher, site: Loopback, client: Client, status: int
) -> None:
    publisher.replies["/whl/cu131/left/"] = Reply(status, b"<Error>AccessDenied</Error>")
    publisher.page("/whl/cu130/left/", '<a href="left-1.0-py3-none-any.whl">x</a>')
    with source(site, client, "/whl/{cuda}", absent=403) as found:
        listing = ask(found, "left")
    assert [(a.folder, a.status) for a in listing.answers] == [
        ("cu131", "absent"),
        ("cu130", "listed"),
    ]


@pytest.mark.parametrize("status", [401, 403, 410, 451])
def test_for_any_other_publisher_it_is_no_answer(
    publisher: Publisher, site: Loopback, client: Client, status: int
) -> None:
    publisher.replies["/whl/cu131/left/"] = Reply(status)
    with source(site, client, "/whl/{cuda}") as found, pytest.raises(HttpStatusError) as caught:
        ask(found, "left")
    assert caught.value.flag == "--exclude-index publisher"


def test_an_object_stores_listing_at_the_address_of_a_page_is_no_answer(
    publisher: Publisher, site: Loopback, client: Client
) -> None:
    body = (PAGES / "s3-folder.xml").read_bytes()
    publisher.replies["/whl/cu131/left/"] = Reply(200, body, {"Content-Type": "application/xml"})
    with source(site, client, "/whl/{cuda}") as found, pytest.raises(NotAPageError) as caught:
        ask(found, "left")
    assert isinstance(caught.value, IndexAccessError)
    assert caught.value.flag == "--exclude-index publisher"


def test_one_path_on_two_hosts_of_a_publisher_is_one_file(
    publisher: Publisher, site: Loopback, client: Client
) -> None:
    body = (PAGES / "pytorch-two-hosts.html").read_bytes()
    publisher.replies["/whl/cu130/torch/"] = Reply(200, body, _HTML)
    with source(site, client, "/whl/{cuda}") as found:
        first, elsewhere = ask(found, "torch").files
    assert first.url.startswith("https://download-r2.example.org/")
    assert first.sha256 == (A,)
    assert [m.split("/")[2] for m in first.mirrors] == ["download.example.org"]
    # A host of another domain may be another publisher's, whatever its path is.
    assert elsewhere.url.startswith("https://d21usjoq99fcb9.cloudfront.example.net/")


def test_a_wheel_that_leaked_into_every_folder_is_of_none(
    publisher: Publisher, site: Loopback, client: Client
) -> None:
    link = f'<a href="/whl/torch-2.0.1-cp38-cp38-manylinux2014_aarch64.whl#sha256={A}">x</a>'
    for folder in ("cu131", "cu130"):
        publisher.page(f"/whl/{folder}/torch/", link)
    with source(site, client, "/whl/{cuda}") as found:
        (file,) = ask(found, "torch").files
    assert (file.folder, file.sha256) == (None, (A,))


def test_files_of_one_name_in_two_folders_are_two_files(
    publisher: Publisher, site: Loopback, client: Client
) -> None:
    name = "torchvision-0.24.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    for folder, digest in (("cu131", A), ("cu130", B)):
        publisher.page(f"/whl/{folder}/torchvision/", f'<a href="{name}#sha256={digest}">x</a>')
    with source(site, client, "/whl/{cuda}") as found:
        files = ask(found, "torchvision").files
    assert [(file.folder, file.sha256) for file in files] == [("cu131", (A,)), ("cu130", (B,))]


def test_hashes_that_folders_list_for_one_address_are_gathered(
    publisher: Publisher, site: Loopback, client: Client
) -> None:
    for folder, digest in (("cu131", A), ("cu130", B)):
        link = f'<a href="/releases/left-1.0-py3-none-any.whl#sha256={digest}">x</a>'
        publisher.page(f"/whl/{folder}/left/", link)
    with source(site, client, "/whl/{cuda}") as found:
        (file,) = ask(found, "left").files
    assert file.sha256 == (A, B)


def test_what_an_index_says_of_a_project_reaches_its_listing(
    publisher: Publisher, site: Loopback, client: Client
) -> None:
    body = (PAGES / "status.html").read_bytes()
    publisher.replies["/whl/cu130/left/"] = Reply(200, body, _HTML)
    with source(site, client, "/whl/{cuda}") as found:
        assert ask(found, "left").statuses == ("publisher marks left as archived: moved to right",)
