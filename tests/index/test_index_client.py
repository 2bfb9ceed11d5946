import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest

from cudalock.errors import IndexAccessError, UsageError
from cudalock.index.address import Origin
from cudalock.index.cache import Cache
from cudalock.index.client import Client, FetchedPage, open_client
from cudalock.index.failures import (
    BodyError,
    HttpStatusError,
    OfflineError,
    RangeError,
    RedirectError,
    TransportError,
)
from loopback import Answer, Asked, Loopback, Reply, serve, serve_file

PAGE = b"<!DOCTYPE html><html><body><h1>Links for left</h1></body></html>"
HTML = {"Content-Type": "text/html"}
CANARY = "canary"


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def connect(clock: Clock) -> Iterator[Callable[..., Client]]:
    """Return a maker of clients whose clock stands still; they are closed in the end."""
    made: list[Client] = []

    def connect(cache: Path | None = None, **more: object) -> Client:
        options: dict[str, object] = {
            "clock": clock,
            "wall": clock,
            "sleep": clock.sleep,
            "jitter": lambda: 0.0,
        }
        options.update(more)
        client = Client(None, None if cache is None else Cache(cache), **options)  # type: ignore[arg-type] # any
        made.append(client)
        return client

    yield connect
    for client in made:
        client.close()


def page_reply(
    body: bytes = PAGE, headers: Mapping[str, str] | None = None, status: int = 200
) -> Reply:
    return Reply(status, body, {**HTML, **(headers or {})})


def in_turn(*replies: Reply) -> Answer:
    """Answer with each reply once, then with the last for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


# Pages


def test_a_page_is_asked_for_in_the_dialects_we_read(connect: Callable[..., Client]) -> None:
    packed = gzip.compress(PAGE, mtime=0)
    with serve(lambda _: page_reply(packed, {"Content-Encoding": "gzip"})) as site:
        client = connect()
        page = client.fetch_page(site.url + "/left/")
    assert page == FetchedPage(url=site.url + "/left/", body=PAGE, content_type="text/html")
    sent = site.asked[0].headers
    assert sent["accept"].startswith("application/vnd.pypi.simple.v1+json, ")
    assert sent["accept-encoding"] == "gzip, identity"
    assert set(sent) == {"host", "user-agent", "accept", "accept-encoding"}
    assert client.statistics.requests == 1
    assert client.statistics.bytes == len(packed)


@pytest.mark.parametrize(
    ("status", "absent", "found"),
    [
        (404, {404}, True),
        (403, {403, 404}, True),
        (403, {404}, False),
        (401, {404}, False),
        (410, {404}, False),
        (404, set(), False),
        (500, {404}, False),
        (204, {404}, False),
        (304, {404}, False),
    ],
)
def test_only_the_statuses_that_mean_absent_mean_it(
    connect: Callable[..., Client], status: int, absent: set[int], found: bool
) -> None:
    with serve(lambda _: Reply(status)) as site:
        client = connect(retries=0)
        if found:
            assert client.fetch_page(site.url + "/left/", absent=frozenset(absent)) is None
            return
        with pytest.raises(HttpStatusError, match=f"found HTTP status {status}") as caught:
            client.fetch_page(site.url + "/left/", absent=frozenset(absent))
    assert (caught.value.status, caught.value.where) == (status, site.url + "/left/")
    assert (caught.value.exit_code, caught.value.flag) == (3, None)


def test_a_gzip_page_cut_anywhere_is_never_taken_for_whole(connect: Callable[..., Client]) -> None:
    packed = gzip.compress(PAGE, mtime=0)
    coded = {"Content-Encoding": "gzip"}
    length = [0]
    with serve(lambda _: page_reply(packed[: length[0]], coded)) as site:
        client = connect(retries=0)
        for length[0] in range(len(packed)):
            with pytest.raises(BodyError):
                client.fetch_page(f"{site.url}/{length[0]}/")


def test_a_cut_page_is_asked_for_again(connect: Callable[..., Client], clock: Clock) -> None:
    short = replace(page_reply(PAGE[:-5]), length=len(PAGE))
    unframed = Reply(200, PAGE[:-20], HTML, length=None)
    with serve(in_turn(short, unframed, page_reply())) as site:
        page = connect().fetch_page(site.url)
        assert page is not None
        assert page.body == PAGE
    assert len(site.asked) == 3
    assert clock.slept == [0.25, 0.5]


def test_more_than_was_announced_is_never_read(connect: Callable[..., Client]) -> None:
    with serve(lambda _: replace(page_reply(PAGE + b"<a>"), length=len(PAGE))) as site:
        page = connect().fetch_page(site.url)
    assert page is not None
    assert page.body == PAGE


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_status_that_says_later_is_asked_again(
    connect: Callable[..., Client], clock: Clock, status: int
) -> None:
    with serve(in_turn(Reply(status), Reply(status), page_reply())) as site:
        assert connect().fetch_page(site.url) is not None
    assert clock.slept == [0.25, 0.5]


@pytest.mark.parametrize(
    ("after", "slept"),
    [
        ("3", 3.0),
        (formatdate(1_000_007, usegmt=True), 7.0),
        ("999999999999", 30.0),
        ("9" * 400, 30.0),
        (formatdate(2_000_000, usegmt=True), 30.0),
        ("-5", 0.25),
        (formatdate(1_000, usegmt=True), 0.25),
        ("soon", 0.25),
        ("Mon, 99 Foo 99999 99:99:99 GMT", 0.25),
        ("0", 0.25),
    ],
)
def test_retry_after_is_obeyed_within_reason(
    connect: Callable[..., Client], clock: Clock, after: str, slept: float
) -> None:
    with serve(in_turn(Reply(503, b"", {"Retry-After": after}), page_reply())) as site:
        assert connect().fetch_page(site.url) is not None
    assert clock.slept == [slept]


def test_tries_and_time_are_limited(connect: Callable[..., Client], clock: Clock) -> None:
    with serve(lambda _: Reply(503, b"", {"Retry-After": "25"})) as site:
        with pytest.raises(HttpStatusError, match="tried 4 times"):
            connect().fetch_page(site.url)
        assert len(site.asked) == 4
        with pytest.raises(HttpStatusError, match="tried 2 times"):
            connect(deadline=30.0).fetch_page(site.url)
        assert len(site.asked) == 6
    assert clock.slept == [25.0] * 4


def test_jitter_spreads_clients_that_failed_together(
    connect: Callable[..., Client], clock: Clock
) -> None:
    with serve(in_turn(Reply(500), page_reply())) as site:
        assert connect(jitter=lambda: 1.0).fetch_page(site.url) is not None
    assert clock.slept == [0.375]


def test_what_cannot_get_better_is_not_tried_again(
    connect: Callable[..., Client], clock: Clock
) -> None:
    with serve(lambda _: Reply()) as gone:
        pass
    with pytest.raises(TransportError, match="refused"):
        connect().fetch_page(gone.url)
    with serve(lambda _: Reply()) as site, pytest.raises(TransportError, match="TLS"):
        connect().fetch_page(site.url.replace("http:", "https:"))
    with serve(lambda _: page_reply(PAGE, {"Content-Encoding": "br"})) as site:
        with pytest.raises(BodyError):
            connect().fetch_page(site.url)
        assert len(site.asked) == 1
    assert clock.slept == []


@pytest.mark.parametrize(
    "url", ["ftp://h/x", "file:///etc/passwd", "h/x", "http://", "http://h:99999/"]
)
def test_an_address_that_is_none_is_the_persons_mistake(
    connect: Callable[..., Client], url: str
) -> None:
    with pytest.raises(UsageError):
        connect().fetch_page(url)


# Redirects and credentials


def test_redirects_are_followed_and_links_start_where_they_end(
    connect: Callable[..., Client],
) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.path == "/simple/Left/":
            return Reply(301, b"", {"Location": "../left/?X-Signature=canary"})
        return page_reply()

    with serve(answer) as site:
        page = connect().fetch_page(site.url + "/simple/Left/")
    assert page is not None
    assert page.url == site.url + "/simple/left/"
    assert site.paths() == ["/simple/Left/", "/simple/left/?X-Signature=canary"]


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("", "without userinfo"),
        ("file:///etc/passwd", "without userinfo"),
        ("javascript:alert(1)", "without userinfo"),
        ("http://user:canary@127.0.0.1/", "without userinfo"),
        ("http://h:99999/", "without userinfo"),
        ("/loop", "at most 5 redirects"),
    ],
)
def test_a_redirect_that_leads_nowhere_is_an_error(
    connect: Callable[..., Client], location: str, words: str
) -> None:
    reply = Reply(302, b"", {"Location": location} if location else {})
    with serve(lambda _: reply) as site, pytest.raises(RedirectError, match=words) as caught:
        connect().fetch_page(site.url + "/x")
    assert CANARY not in str(caught.value)
    assert len(site.asked) <= 6


def test_no_redirect_leaves_https(connect: Callable[..., Client]) -> None:
    class Secure:
        """Stands for a server on https, which a test has no certificate for."""

        status = 302
        headers: Mapping[str, str] = {"location": "http://127.0.0.1/x"}

        def send(self, _: object) -> "Secure":
            return self

        def chunks(self) -> Iterator[bytes]:
            yield b""

        def close(self) -> None:
            pass

    with pytest.raises(RedirectError, match="stays on https"):
        Client(Secure()).fetch_page("https://h.example.org/x")


def two_sites(location: str) -> tuple[Answer, Answer]:
    return (
        lambda asked: (
            Reply(307, b"", {"Location": location, "Set-Cookie": f"a={CANARY}"})
            if asked.path == "/away"
            else page_reply()
        ),
        lambda _: page_reply(),
    )


@pytest.mark.parametrize("in_url", [True, False])
def test_credentials_stay_with_their_origin(
    connect: Callable[..., Client], tmp_path: Path, in_url: bool
) -> None:
    with serve(lambda _: page_reply()) as other:
        first, _ = two_sites(other.url + "/there")
        with serve(first) as site:
            port = int(site.url.rpartition(":")[2])
            if in_url:
                client = connect(tmp_path)
                url = site.url.replace("http://", f"http://user%40x:{CANARY}%3A@") + "/away"
            else:
                origin = Origin("http", "127.0.0.1", port)
                client = connect(tmp_path, auth={origin: ("user@x", CANARY + ":")})
                url = site.url + "/away"
            page = client.fetch_page(url)
            client.fetch_page(site.url + "/again")
            client.fetch_page(other.url + "/direct")
            # Another name of the same machine is another origin.
            client.fetch_page(site.url.replace("127.0.0.1", "localhost") + "/name")
    assert page is not None
    assert page.url == other.url + "/there"
    # base64 of "user@x:canary:"
    sent = [asked.headers.get("authorization") for asked in site.asked]
    assert sent == ["Basic dXNlckB4OmNhbmFyeTo="] * 2 + [None]
    for asked in other.asked:
        assert not {"authorization", "cookie", "proxy-authorization"} & set(asked.headers)
        assert CANARY not in repr(asked)
    for path in tmp_path.rglob("*"):
        assert CANARY not in path.name
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes()
            assert b"dXNlckB4" not in path.read_bytes()


def test_no_secret_reaches_a_message_or_the_cache(
    connect: Callable[..., Client], tmp_path: Path
) -> None:
    with serve(lambda asked: page_reply() if asked.path.startswith("/ok") else Reply(500)) as site:
        url = site.url.replace("http://", f"http://user:{CANARY}@")
        client = connect(tmp_path, retries=0)
        for ask in (
            client.fetch_page,
            client.fetch_whole,
            client.stream_hash,
            lambda url: client.fetch_range_suffix(url, 10),
            lambda url: client.fetch_range(url, 0, 10),
        ):
            with pytest.raises(IndexAccessError) as caught:
                ask(f"{url}/x?token={CANARY}")
            assert CANARY not in str(caught.value) + str(caught.value.where)
        page = client.fetch_page(f"{url}/ok?token={CANARY}")
    assert page is not None
    assert CANARY not in page.url
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) == 1
    assert CANARY.encode() not in kept[0].read_bytes()


# The cache


def test_a_page_is_read_once_by_a_client_however_short_lived(
    connect: Callable[..., Client], tmp_path: Path, clock: Clock
) -> None:
    with serve(lambda _: page_reply(headers={"Cache-Control": "no-store"})) as site:
        for client in (connect(tmp_path), connect()):
            pages = []
            for _ in range(3):
                pages.append(client.fetch_page(site.url))
                clock.now += 10_000
            assert pages[0] == pages[1] == pages[2]
            assert client.statistics.requests == 1
            assert client.statistics.cache_hits == 2


def test_the_second_run_makes_no_request_that_the_cache_can_answer(
    connect: Callable[..., Client], tmp_path: Path, clock: Clock
) -> None:
    def answer(asked: Asked) -> Reply:
        control = {"/said": "max-age=100", "/silent": "", "/never": "no-cache"}[asked.path]
        return page_reply(headers={"Cache-Control": control})

    with serve(answer) as site:
        for _ in range(2):
            client = connect(tmp_path)
            for path in ("/said", "/silent", "/never"):
                assert client.fetch_page(site.url + path) is not None
            clock.now += 99
        assert site.paths() == ["/said", "/silent", "/never", "/never"]
        connect(tmp_path).fetch_page(site.url + "/said")
        connect(tmp_path).fetch_page(site.url + "/silent")
        assert site.paths()[4:] == ["/said"]
        clock.now += 600
        connect(tmp_path).fetch_page(site.url + "/silent")
        assert site.paths()[5:] == ["/silent"]


@pytest.mark.parametrize(
    ("validator", "condition"),
    [
        ({"ETag": 'W/"one"'}, {"if-none-match": 'W/"one"'}),
        (
            {"Last-Modified": formatdate(900_000, usegmt=True)},
            {"if-modified-since": formatdate(900_000, usegmt=True)},
        ),
    ],
)
def test_a_stale_page_is_revalidated(
    connect: Callable[..., Client],
    tmp_path: Path,
    clock: Clock,
    validator: dict[str, str],
    condition: dict[str, str],
) -> None:
    def answer(asked: Asked) -> Reply:
        if condition.items() <= asked.headers.items():
            return Reply(304, b"", validator)
        return page_reply(headers={"Cache-Control": "max-age=60", **validator})

    with serve(answer) as site:
        connect(tmp_path).fetch_page(site.url)
        clock.now += 61
        client = connect(tmp_path)
        page = client.fetch_page(site.url)
        assert page is not None
        assert page.body == PAGE
        assert client.statistics.revalidated == 1
        # The 304 made it fresh again, for as long as the page once said.
        clock.now += 59
        connect(tmp_path).fetch_page(site.url)
        assert len(site.asked) == 2


def test_a_page_that_changed_replaces_the_old_one(
    connect: Callable[..., Client], tmp_path: Path
) -> None:
    old = page_reply(headers={"ETag": '"1"', "Cache-Control": "no-cache"})
    new = page_reply(PAGE + b"\n", headers={"ETag": '"2"', "Cache-Control": "no-cache"})
    with serve(in_turn(old, new, Reply(304))) as site:
        bodies = []
        for _ in range(3):
            page = connect(tmp_path).fetch_page(site.url)
            assert page is not None
            bodies.append(page.body)
    assert bodies == [PAGE, PAGE + b"\n", PAGE + b"\n"]
    assert [asked.headers.get("if-none-match") for asked in site.asked] == [None, '"1"', '"2"']


def test_offline_uses_what_is_cached_of_any_age_and_opens_no_connection(
    connect: Callable[..., Client], tmp_path: Path, clock: Clock
) -> None:
    def answer(asked: Asked) -> Reply:
        return (
            Reply(404)
            if asked.path == "/gone"
            else page_reply(headers={"Cache-Control": "no-store"})
        )

    with serve(answer) as site:
        client = connect(tmp_path)
        client.fetch_page(site.url + "/x")
        client.fetch_page(site.url + "/gone")
    clock.now += 10**8
    offline = connect(tmp_path, offline=True)
    page = offline.fetch_page(site.url + "/x")
    assert page is not None
    assert page.body == PAGE
    assert offline.fetch_page(site.url + "/gone") is None
    # Where 404 does not mean absent, the cached answer does not say it either.
    with pytest.raises(OfflineError):
        offline.fetch_page(site.url + "/gone", absent=frozenset())
    for ask in (
        offline.fetch_page,
        offline.fetch_whole,
        offline.stream_hash,
        lambda url: offline.fetch_range_suffix(url, 10),
    ):
        with pytest.raises(OfflineError, match="offline: no cached copy") as caught:
            ask(site.url + "/y")
        assert caught.value.where == site.url + "/y"
    assert offline.statistics.requests == 0


def test_absent_is_remembered_for_a_while(
    connect: Callable[..., Client], tmp_path: Path, clock: Clock
) -> None:
    with serve(lambda _: Reply(404, b"", {"Cache-Control": "max-age=90000"})) as site:
        for _ in range(2):
            assert connect(tmp_path).fetch_page(site.url) is None
        assert len(site.asked) == 1
        clock.now += 600
        assert connect(tmp_path).fetch_page(site.url) is None
        assert len(site.asked) == 2


def test_an_index_that_fails_is_no_answer_even_with_a_stale_copy(
    connect: Callable[..., Client], tmp_path: Path
) -> None:
    stale = page_reply(headers={"Cache-Control": "max-age=0", "ETag": '"1"'})
    with serve(in_turn(stale, Reply(500))) as site:
        assert connect(tmp_path).fetch_page(site.url) is not None
        with pytest.raises(HttpStatusError):
            connect(tmp_path).fetch_page(site.url)


def test_damaged_entries_are_asked_for_again_and_healed(
    connect: Callable[..., Client], tmp_path: Path
) -> None:
    with serve(lambda _: page_reply()) as site:
        connect(tmp_path).fetch_page(site.url)
        (path,) = [found for found in tmp_path.rglob("*") if found.is_file()]
        sound = path.read_bytes()
        for place in (0, 20, 90, len(sound) - 1):
            path.write_bytes(sound[:place] + b"\xff" + sound[place + 1 :])
            page = connect(tmp_path).fetch_page(site.url)
            assert page is not None
            assert page.body == PAGE
            assert path.read_bytes() == sound
    assert len(site.asked) == 5


# Threads


def test_two_threads_that_ask_for_one_page_make_one_request(connect: Callable[..., Client]) -> None:
    release = threading.Event()

    def answer(asked: Asked) -> Reply:
        release.wait(5)
        return page_reply() if asked.path == "/x" else Reply(500)

    with serve(answer) as site, ThreadPoolExecutor(8) as pool:
        client = connect(retries=0)
        good = [pool.submit(client.fetch_page, site.url + "/x") for _ in range(4)]
        bad = [pool.submit(client.fetch_page, site.url + "/y") for _ in range(4)]
        while len(site.asked) < 2:
            time.sleep(0.005)
        time.sleep(0.05)
        release.set()
        assert len({page.result() for page in good}) == 1
        for page in bad:
            with pytest.raises(HttpStatusError):
                page.result()
    assert sorted(site.paths()) == ["/x", "/y"]


def test_many_pages_are_fetched_at_the_same_time(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Reply:
        time.sleep(0.02)
        return page_reply(f"<html>{asked.path}</html>".encode())

    with (
        serve(answer) as site,
        open_client(cache_dir=tmp_path) as client,
        ThreadPoolExecutor(16) as pool,
    ):
        urls = [f"{site.url}/{number}" for number in range(64)]
        pages = list(pool.map(client.fetch_page, urls))
    assert [page.body for page in pages if page is not None] == [
        f"<html>/{number}</html>".encode() for number in range(64)
    ]


# Files and their parts

FILE = bytes(range(256)) * 40


@pytest.fixture
def files() -> Iterator[Loopback]:
    def answer(asked: Asked) -> Reply:
        return serve_file(FILE, asked, etag={"/weak": 'W/"1"'}.get(asked.path, '"1"'))

    with serve(answer) as site:
        yield site


def test_the_end_and_the_middle_of_a_file(connect: Callable[..., Client], files: Loopback) -> None:
    client = connect()
    tail = client.fetch_range_suffix(files.url + "/f", 100)
    assert (tail.data, tail.start, tail.total) == (FILE[-100:], len(FILE) - 100, len(FILE))
    assert tail.etag == '"1"'
    part = client.fetch_range(files.url + "/f", 5, 15, etag=tail.etag)
    assert (part.data, part.start) == (FILE[5:15], 5)
    whole = client.fetch_range_suffix(files.url + "/f", 10**6)
    assert (whole.data, whole.start) == (FILE, 0)
    changed = client.fetch_range(files.url + "/f", 5, 15, etag='"0"')
    assert (changed.data, changed.start) == (FILE, 0)
    assert client.fetch_range_suffix(files.url + "/weak", 9).etag is None
    with pytest.raises(RangeError, match="there are none"):
        client.fetch_range(files.url + "/f", 10**6, 10**6 + 5)
    assert {asked.method for asked in files.asked} == {"GET"}
    assert {asked.headers["accept-encoding"] for asked in files.asked} == {"identity"}


def test_servers_without_ranges_give_the_whole_file_up_to_a_limit(
    connect: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.path == "/416" and "range" in asked.headers:
            return Reply(416)
        return Reply(200, FILE, length=None if asked.path == "/unframed" else -1)

    with serve(answer) as site:
        client = connect(retries=0)
        for path in ("/200", "/416"):
            part = client.fetch_range_suffix(site.url + path, 100)
            assert (part.data, part.start, part.total) == (FILE, 0, len(FILE))
        with pytest.raises(BodyError, match="may be cut"):
            client.fetch_range_suffix(site.url + "/unframed", 100)
        monkeypatch.setattr("cudalock.index.ranges.WHOLE_FILE_LIMIT", 1000)
        with pytest.raises(RangeError, match=f"found all of its {len(FILE)} bytes"):
            client.fetch_range_suffix(site.url + "/200", 100)


@pytest.mark.parametrize(
    ("said", "body"),
    [
        ("bytes 10140-10239/10240", FILE[:99]),
        ("bytes 0-99/10240", FILE[:100]),
        ("bytes 10139-10238/10240", FILE[-100:]),
        ("bytes 10140-10239/10241", FILE[-100:]),
        ("bytes 10190-10239/10240", FILE[-50:]),
        ("bytes 10140-10239/*", FILE[-100:]),
        ("bytes */10240", FILE[-100:]),
        ("bytes 10239-10140/10240", b""),
        ("items 10140-10239/10240", FILE[-100:]),
        ("", FILE[-100:]),
        ("bytes 1" + "0" * 400 + "-2/3", FILE[-100:]),
    ],
)
def test_a_range_reply_that_lies_is_an_error(
    connect: Callable[..., Client], said: str, body: bytes
) -> None:
    with serve(lambda _: Reply(206, body, {"Content-Range": said})) as site:
        client = connect(retries=0)
        with pytest.raises(BodyError):
            client.fetch_range_suffix(site.url, 100)
        with pytest.raises(BodyError):
            client.fetch_range(site.url, 7, 107)


def test_a_coded_range_is_refused(connect: Callable[..., Client]) -> None:
    headers = {"Content-Range": "bytes 10140-10239/10240", "Content-Encoding": "gzip"}
    with serve(lambda _: Reply(206, FILE[-100:], headers)) as site, pytest.raises(BodyError):
        connect(retries=0).fetch_range_suffix(site.url, 100)


def test_a_whole_file_within_its_limit(connect: Callable[..., Client], files: Loopback) -> None:
    client = connect(retries=0)
    assert client.fetch_whole(files.url + "/f") == FILE
    with pytest.raises(BodyError, match="at most 10 bytes"):
        client.fetch_whole(files.url + "/f", limit=10)
    with serve(lambda _: Reply(404)) as site:
        assert client.fetch_whole(site.url, absent=frozenset({404})) is None
        with pytest.raises(HttpStatusError):
            client.fetch_whole(site.url)


def test_a_file_is_hashed_while_it_is_streamed(
    connect: Callable[..., Client], files: Loopback
) -> None:
    told: list[tuple[int, int | None]] = []
    found = connect().stream_hash(files.url + "/f", lambda seen, total: told.append((seen, total)))
    assert found.hashed == (hashlib.sha256(FILE).hexdigest(), len(FILE))
    assert told[-1] == (len(FILE), len(FILE))
    cut = Reply(200, FILE[:-1], length=len(FILE))
    with serve(in_turn(cut, Reply(200, FILE))) as site:
        assert connect().stream_hash(site.url).hashed == found.hashed
    unframed = Reply(200, FILE, length=None)
    with serve(lambda _: unframed) as site, pytest.raises(BodyError, match="may be cut"):
        connect(retries=0).stream_hash(site.url)


def test_a_client_needs_nothing_to_begin_with() -> None:
    with serve(lambda _: page_reply()) as site, Client() as client:
        assert client.fetch_page(site.url) is not None
