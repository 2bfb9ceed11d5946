"""Variant metadata of an index: where pages link it, and what is fetched and kept of it."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cudalock.errors import IndexAccessError
from cudalock.index.cache import Cache
from cudalock.index.client import Client
from cudalock.index.failures import HttpStatusError, OfflineError
from cudalock.index.find_links import read_wheel_directory
from cudalock.index.simple import PageContext, ProjectPage, parse_page
from cudalock.index.variants_fetch import VariantsReader
from cudalock.wheel import ListedFile, parse_wheel_file
from cudalock.wheel.tag_filter import TagFilter
from cudalock.wheel.variants import (
    VARIANTS_LIMIT,
    VariantsLink,
    VariantsMetadata,
    VariantsUnread,
)
from loopback import Asked, Loopback, Reply, serve

WHEEL = "left-1.0-py3-none-any-cu130.whl"
NAME = "left-1.0-variants.json"
URL = "https://index.example.org/simple/left/"
A, B = "a1" * 32, "b2" * 32
DOCUMENT = {
    "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["nvidia"]},
    "variants": {"cu130": {"nvidia": {"cuda_version_lower_bound": ["13.0"]}}},
}
BODY = json.dumps(DOCUMENT).encode()
SHA = hashlib.sha256(BODY).hexdigest()


def html(*hrefs: str, fit: TagFilter | None = None) -> ProjectPage:
    body = "".join(f'<a href="{href}">x</a>' for href in hrefs).encode()
    context = PageContext(index="default", index_url=URL, fit=fit)
    return parse_page(body, content_type="text/html", url=URL, project="left", context=context)


def reasons(page: ProjectPage) -> list[tuple[str, str]]:
    return [(rejection.kind, rejection.reason) for rejection in page.rejections]


def test_a_link_to_variant_metadata_is_no_rejection_and_goes_with_its_version() -> None:
    page = html(
        f"/f/{NAME}#sha256={A}", WHEEL, "left-1.0-py3-none-any.whl", "left-2.0-py3-none-any.whl"
    )
    assert page.rejections == ()
    link = VariantsLink(url=f"https://index.example.org/f/{NAME}", sha256=(A,))
    assert [file.variants_link for file in page.files] == [link, link, None]


def test_a_json_page_links_it_as_any_file() -> None:
    files = [
        {"filename": WHEEL, "url": f"/f/{WHEEL}", "hashes": {"sha256": B}},
        {"filename": NAME, "url": f"/f/{NAME}", "hashes": {"sha256": A}},
    ]
    page = {"meta": {"api-version": "1.1"}, "name": "left", "files": files}
    found = parse_page(
        json.dumps(page).encode(),
        content_type="application/vnd.pypi.simple.v1+json",
        url=URL,
        project="left",
        context=PageContext(index="default", index_url=URL),
    )
    assert found.rejections == ()
    link = VariantsLink(url=f"https://index.example.org/f/{NAME}", sha256=(A,))
    assert [file.variants_link for file in found.files] == [link]


def test_a_json_page_may_not_lead_off_the_web() -> None:
    files = [{"filename": NAME, "url": "file:///left-1.0-variants.json", "hashes": {}}]
    page = {"meta": {"api-version": "1.1"}, "name": "left", "files": files}
    found = parse_page(
        json.dumps(page).encode(),
        content_type="application/vnd.pypi.simple.v1+json",
        url=URL,
        project="left",
        context=PageContext(index="default", index_url=URL),
    )
    assert reasons(found) == [("not-a-wheel", "variant metadata at no http or https address")]


def test_versions_are_compared_as_versions() -> None:
    page = html("Left-1.0.0-variants.json", WHEEL)
    assert page.files[0].variants_link == VariantsLink(url=f"{URL}Left-1.0.0-variants.json")


def test_two_hashes_of_one_address_are_both_kept() -> None:
    page = html(f"{NAME}#sha256={A}", f"{NAME}#sha256={B}", NAME, WHEEL)
    assert page.files[0].variants_link == VariantsLink(url=URL + NAME, sha256=(A, B))


@pytest.mark.parametrize(
    ("href", "kind", "words"),
    [
        ("variants-variants.json", "not-a-wheel", "without a name and a version"),
        ("left-1.0-x-variants.json", "not-a-wheel", "without a name and a version"),
        ("left-two-variants.json", "not-a-wheel", "expected a version"),
        ("right-1.0-variants.json", "other-project", "variant metadata of right"),
        (f"left-1.0-variants.json#sha256={A[:-1]}", "not-a-wheel", "malformed sha256"),
        ("file:///left-1.0-variants.json", "bad-url", "expected an http or https address"),
        (f"{'l' * 300}-1.0-variants.json", "not-a-wheel", "without a name and a version"),
    ],
)
def test_a_link_that_cannot_be_used_is_a_rejection_with_its_reason(
    href: str, kind: str, words: str
) -> None:
    page = html(href, WHEEL)
    [(found, reason)] = reasons(page)
    assert found == kind
    assert words in reason
    assert page.files[0].variants_link is None


def test_a_second_address_of_one_version_is_a_rejection() -> None:
    page = html(f"/a/{NAME}", f"/b/{NAME}", WHEEL)
    assert reasons(page) == [
        ("not-a-wheel", f"variant metadata that is at https://index.example.org/a/{NAME} too")
    ]


def test_a_variant_for_another_platform_is_only_named() -> None:
    fit = TagFilter(parse_wheel_file(WHEEL).tags)
    page = html(NAME, WHEEL, "left-1.0-py3-none-win_amd64-cu130.whl", fit=fit)
    assert [file.filename for file in page.files] == [WHEEL]
    assert page.unfit == ("left-1.0-py3-none-win_amd64-cu130.whl",)


def test_a_directory_may_hold_it_too(tmp_path: Path) -> None:
    for name in (WHEEL, NAME, "package-lock-variants.json"):
        (tmp_path / name).write_bytes(BODY)
    found = read_wheel_directory(tmp_path)
    [file] = found.files["left"]
    assert file.variants_link == VariantsLink(url=(tmp_path / NAME).as_uri())
    assert found.rejections == {}
    with Client() as client:
        answer = VariantsReader(client).read(file)
    assert isinstance(answer, VariantsMetadata)
    assert set(answer.variants) == {"cu130"}


def test_a_directory_it_was_taken_from_again_is_an_error(tmp_path: Path) -> None:
    (tmp_path / WHEEL).touch()
    (tmp_path / NAME).touch()
    [file] = read_wheel_directory(tmp_path).files["left"]
    (tmp_path / NAME).unlink()
    with Client() as client, pytest.raises(IndexAccessError, match="expected variant metadata"):
        VariantsReader(client).read(file)


# Fetching


@pytest.fixture
def site() -> Iterator[tuple[Loopback, list[Reply]]]:
    replies = [Reply(200, BODY)]

    def answer(_: Asked) -> Reply:
        return replies[0]

    with serve(answer) as loopback:
        yield loopback, replies


@pytest.fixture
def file(site: tuple[Loopback, list[Reply]]) -> Callable[..., ListedFile]:
    def make(*sha256: str) -> ListedFile:
        url = f"{site[0].url}/{NAME}"
        return ListedFile(
            wheel=parse_wheel_file(WHEEL),
            url=f"{site[0].url}/{WHEEL}",
            index="default",
            index_url=site[0].url,
            variants_link=VariantsLink(url=url, sha256=sha256),
        )

    return make


def test_it_is_fetched_once(
    site: tuple[Loopback, list[Reply]], file: Callable[..., ListedFile]
) -> None:
    with Client(retries=0) as client:
        reader = VariantsReader(client)
        first, second = reader.read(file(SHA)), reader.read(file(SHA))
    assert first == second
    assert isinstance(first, VariantsMetadata)
    assert first.source == f"{site[0].url}/{NAME}"
    assert len(site[0].asked) == 1


def test_under_a_hash_it_is_kept_for_ever_and_without_one_for_minutes(
    site: tuple[Loopback, list[Reply]], file: Callable[..., ListedFile], tmp_path: Path
) -> None:
    now = [1000.0]
    for later, sha256, asked in (
        (0, (SHA,), 1),
        (0, (), 2),
        (300, (), 2),
        (9000, (SHA,), 2),
        (9000, (), 3),
    ):
        now[0] = 1000.0 + later
        with Client(None, Cache(tmp_path), wall=lambda: now[0], retries=0) as client:
            assert isinstance(VariantsReader(client).read(file(*sha256)), VariantsMetadata)
        assert len(site[0].asked) == asked


def test_offline_only_what_was_kept_is_had(
    site: tuple[Loopback, list[Reply]], file: Callable[..., ListedFile], tmp_path: Path
) -> None:
    with Client(None, Cache(tmp_path), offline=True) as client, pytest.raises(OfflineError):
        VariantsReader(client).read(file(SHA))
    with Client(None, Cache(tmp_path)) as client:
        VariantsReader(client).read(file(SHA))
    with Client(None, Cache(tmp_path), offline=True) as client:
        assert isinstance(VariantsReader(client).read(file(SHA)), VariantsMetadata)
    assert len(site[0].asked) == 1


@pytest.mark.parametrize(
    ("reply", "sha256", "words"),
    [
        (Reply(404), (), "is not there"),
        (Reply(403), (), "is not there"),
        (Reply(200, b"{}"), (), "expected schema 0.1.x"),
        (Reply(200, b"<html>"), (), "in JSON"),
        (Reply(200, BODY), (A,), "does not have the listed sha256"),
        (Reply(200, BODY), (A, SHA), "2 hashes are listed"),
    ],
)
def test_what_cannot_be_used_is_unread_with_its_reason(
    site: tuple[Loopback, list[Reply]],
    file: Callable[..., ListedFile],
    reply: Reply,
    sha256: tuple[str, ...],
    words: str,
    tmp_path: Path,
) -> None:
    site[1][0] = reply
    with Client(None, Cache(tmp_path), retries=0) as client:
        answer = VariantsReader(client).read(file(*sha256))
        assert isinstance(answer, VariantsUnread)
        assert words in answer.reason
        # What was no good is not kept: the publisher may mend it.
        site[1][0] = Reply(200, BODY)
        if len(sha256) == 0:
            assert isinstance(VariantsReader(client).read(file()), VariantsMetadata)


def test_a_wheel_whose_page_links_none_is_unread() -> None:
    wheel = parse_wheel_file(WHEEL)
    with Client() as client:
        file = ListedFile(wheel=wheel, url=URL + WHEEL, index="default", index_url=URL)
        answer = VariantsReader(client).read(file)
    assert answer == VariantsUnread(reason=f"no {NAME} is listed beside it")


def test_an_index_that_gives_no_answer_is_an_error_and_not_unread(
    site: tuple[Loopback, list[Reply]], file: Callable[..., ListedFile]
) -> None:
    site[1][0] = Reply(500)
    with Client(retries=0) as client, pytest.raises(HttpStatusError):
        VariantsReader(client).read(file())


def test_no_more_than_a_mebibyte_is_read(
    site: tuple[Loopback, list[Reply]], file: Callable[..., ListedFile]
) -> None:
    site[1][0] = Reply(200, b" " * (VARIANTS_LIMIT + 1))
    with Client(retries=0) as client, pytest.raises(IndexAccessError):
        VariantsReader(client).read(file())
