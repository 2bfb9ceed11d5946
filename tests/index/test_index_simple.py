import json
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import CudalockError, IndexAccessError
from cudalock.index.simple import NotAPageError, PageContext, ProjectPage, parse_page

PAGES = Path(__file__).parent.parent / "pages"
CONTEXT = PageContext(
    index="frame", index_url="https://index.example.org/whl/cu130", folder="cu130", nightly=True
)
PAGE_URL = "https://index.example.org/whl/cu130/torch/"
A, B, C, D = "a1" * 32, "b2" * 32, "c3" * 32, "d4" * 32
HTML = "text/html; charset=utf-8"
JSON = "application/vnd.pypi.simple.v1+json"


def parse(
    body: str | bytes,
    project: str | None = "left",
    *,
    url: str = PAGE_URL,
    content_type: str | None = HTML,
) -> ProjectPage:
    data = body.encode() if isinstance(body, str) else body
    return parse_page(data, content_type=content_type, url=url, project=project, context=CONTEXT)


def saved(name: str, project: str | None, *, url: str = PAGE_URL) -> ProjectPage:
    kind = None if name.endswith(".xml") else JSON if name.endswith(".json") else HTML
    return parse((PAGES / name).read_bytes(), project, url=url, content_type=kind)


def link(href: str, text: str = "x", more: str = "") -> str:
    return f'<html><body><a href="{href}" {more}>{text}</a></body></html>'


def json_page(*files: dict[str, object], **more: object) -> str:
    page = {"meta": {"api-version": "1.1"}, "name": "left", "files": list(files), **more}
    return json.dumps(page)


def json_file(**more: object) -> dict[str, object]:
    name = "left-1.0-py3-none-any.whl"
    return {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": A}, **more}


def kinds(page: ProjectPage) -> list[str]:
    return [rejection.kind for rejection in page.rejections]


# The dialects


def test_the_pytorch_dialect() -> None:
    page = saved("pytorch-stable.html", "torch")
    assert not page.rejections
    labelled, unhashed, from_root, stale, confused = page.files
    assert str(labelled.wheel.version) == "2.10.0+cu130"
    assert labelled.url == (
        "https://download.example.org/whl/cu130/torch-2.10.0%2Bcu130-cp312-cp312-manylinux_2_28_x86_64.whl"
    )
    assert (labelled.sha256, labelled.core_metadata) == ((A,), B)
    assert (labelled.index, labelled.index_url) == ("frame", CONTEXT.index_url)
    assert (labelled.folder, labelled.nightly) == ("cu130", True)
    assert (unhashed.sha256, unhashed.core_metadata) == ((), C)
    assert urlsplit(unhashed.url).hostname == "download-r2.example.org"
    assert from_root.url.startswith("https://index.example.org/whl/cu130/torch-2.9.1%2Bcu130-")
    assert stale.wheel.version.local is None
    assert (
        stale.url == "https://index.example.org/whl/torch-2.0.1-cp38-cp38-manylinux2014_aarch64.whl"
    )
    assert stale.upload_time == "2026-01-23T15:10:22Z"
    # The hash of METADATA is not the wheel's: it counts as none.
    assert (confused.sha256, confused.core_metadata) == ((), B)


def test_the_sglang_dialect_lists_one_url_with_every_distinct_hash_in_order() -> None:
    page = saved("sglang.html", "sgl-kernel")
    assert not page.rejections
    relisted, unhashed = page.files
    assert relisted.filename == "sgl_kernel-0.3.21+cu130-cp310-abi3-manylinux2014_x86_64.whl"
    assert "+cu130" in relisted.url
    assert relisted.sha256 == (A, B)
    assert unhashed.sha256 == ()


def test_the_flashinfer_dialect_and_a_wheel_of_a_sibling_project() -> None:
    page = saved("flashinfer.html", "flashinfer-jit-cache")
    assert [str(file.wheel.version) for file in page.files] == ["0.6.10+cu130", "0.6.4+cu130"]
    assert kinds(page) == ["other-project"]
    assert page.rejections[0].filename.startswith("flashinfer_jit_cache_sm120f-")
    assert len(saved("flashinfer.html", "flashinfer-jit-cache-sm120f").files) == 1


def test_the_vllm_dialect_climbs_out_of_its_folder() -> None:
    page = saved("vllm.html", "vllm", url="https://wheels.example.org/0.19.1/cu130/vllm/")
    assert page.files[0].url == (
        "https://wheels.example.org/b1388b1fbf5aaef47937fabe98931211684666a6/"
        "vllm-0.19.1%2Bcu130-cp38-abi3-manylinux_2_35_aarch64.whl"
    )
    assert str(page.files[1].wheel.version) == "0.19.1rc8.dev14+gaa384b3c0.cu130"


def test_single_quotes_capitals_and_escaped_attributes() -> None:
    first, second = saved("cosmos.html", "flash_attn").files
    assert (str(first.wheel.version), first.sha256) == ("2.7.4.post1+cu130.torch29", (A,))
    assert (str(second.wheel.version), second.sha256) == ("2.8.0+cu130.torch210", ())
    assert second.requires_python == ">=3.10,<3.14"


def test_a_flat_page_lists_one_project_or_all() -> None:
    url = "https://whl.example.org/cu130/torch2.10.0/index.html"
    page = saved("natten.html", "natten", url=url)
    assert page.files[0].url == (
        "https://whl.example.org/cu130/torch2.10.0/natten-0.21.1%2Btorch2100cu130-cp312-cp312-linux_x86_64.whl"
    )
    assert kinds(page) == ["other-project"]
    everything = saved("torch-stable-flat.html", None, url="https://d.example.org/whl/stable.html")
    assert [file.wheel.project for file in everything.files] == ["torch", "torch", "torchvision"]
    assert everything.files[1].url.endswith("/whl/cu100/torch-1.0.0-cp27-cp27m-linux_x86_64.whl")


def test_the_devpi_dialect_keeps_a_plus_sign_of_the_path() -> None:
    page = saved("devpi.html", "torch", url="https://pypi.example.dev/jp6/cu126/+simple/torch/")
    assert page.files[0].url == (
        "https://pypi.example.dev/jp6/cu126/+f/6ef/f643c0a7acda9/torch-2.7.0-cp310-cp310-linux_aarch64.whl"
    )


def test_links_in_scripts_and_comments_are_none() -> None:
    page = saved("windreamer.html", "flash-attn-3")
    assert len(page.files) == 1
    assert not page.rejections


def test_the_json_dialect() -> None:
    url = "https://index.example.org/simple/left-pad/"
    page = saved("default.json", "left-pad", url=url)
    full, weak, bare = page.files
    assert full.url == "https://index.example.org/packages/aa/left_pad-1.0-py3-none-any.whl"
    assert (full.sha256, full.size, full.requires_python) == ((A,), 1234, ">=3.8")
    assert (full.core_metadata, full.yanked) == (B, False)
    assert full.upload_time == "2026-01-02T03:04:53.503430Z"
    assert (weak.sha256, weak.yanked, weak.core_metadata) == ((), "broken on 3.12", False)
    assert (bare.sha256, bare.core_metadata) == ((), True)
    assert kinds(page) == ["not-a-wheel"]


def test_json_and_html_are_told_apart_by_type_and_else_by_the_first_byte() -> None:
    text = json_page(json_file())
    for kind in (None, "", "text/plain", "binary/octet-stream", "application/json", JSON + "; x=y"):
        assert len(parse("\ufeff " + text if kind is None else text, content_type=kind).files) == 1
    html = link("left-1.0-py3-none-any.whl")
    for kind in (None, HTML, "application/vnd.pypi.simple.v1+html", "application/xhtml+xml"):
        assert len(parse(html, content_type=kind).files) == 1
    with pytest.raises(NotAPageError):
        parse(html, content_type=JSON)


# What a page says about a file


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", None),
        ('data-core-metadata="true"', True),
        ('data-dist-info-metadata="true"', True),
        ('data-core-metadata="false"', False),
        (f'data-core-metadata="sha256={B}" data-dist-info-metadata="sha256={C}"', B),
        (f'data-dist-info-metadata="sha256={C.upper()}"', C),
        (f'data-core-metadata="sha512={B}{B}"', True),
    ],
)
def test_what_a_link_claims_about_its_sidecar(attributes: str, expected: str | bool | None) -> None:
    page = parse(link("left-1.0-py3-none-any.whl", more=attributes))
    assert page.files[0].core_metadata == expected


def test_yanked_with_and_without_a_reason() -> None:
    assert parse(link("left-1.0-py3-none-any.whl", more="data-yanked")).files[0].yanked is True
    why = parse(link("left-1.0-py3-none-any.whl", more='data-yanked="a &amp; b"')).files[0]
    assert why.yanked == "a & b"
    assert parse(json_page(json_file(yanked=True)), content_type=JSON).files[0].yanked is True


def test_links_resolve_against_the_base_of_a_page() -> None:
    html = '<html><head><base href="/mirror/x/"></head><a href="left-1.0-py3-none-any.whl">x</a></html>'
    url = "https://index.example.org/mirror/x/left-1.0-py3-none-any.whl"
    assert parse(html).files[0].url == url


def test_the_userinfo_of_the_page_is_in_no_link_and_no_rejection() -> None:
    html = link("left-1.0-py3-none-any.whl") + link("nonsense.whl")
    page = parse(html, url="https://user:canary@index.example.org/left/?key=canary")
    assert len(page.files) == len(page.rejections) == 1
    assert "canary" not in repr(page)


def test_query_strings_of_links_stay() -> None:
    page = parse(link("left-1.0-py3-none-any.whl?X-Sig=1&amp;b=2#sha256=" + A))
    assert page.files[0].url == PAGE_URL + "left-1.0-py3-none-any.whl?X-Sig=1&b=2"
    assert page.files[0].sha256 == (A,)


def test_a_second_listing_adds_what_the_first_did_not_say() -> None:
    name = "left-1.0-py3-none-any.whl"
    page = parse(
        f'<a href="{name}">x</a><a href="{name}#sha256={A.upper()}" data-yanked="bad" '
        f'data-requires-python="&gt;=3.9" data-core-metadata="true">x</a>'
        f'<a href="{name}" data-core-metadata="sha256={B}">x</a>'
    )
    (file,) = page.files
    assert (file.sha256, file.yanked, file.requires_python) == ((A,), "bad", ">=3.9")
    assert file.core_metadata == B
    rival = parse(
        f'<a href="{name}" data-core-metadata="sha256={B}">x</a>'
        f'<a href="{name}" data-core-metadata="sha256={C}">x</a>'
    )
    assert rival.files[0].core_metadata is True


# Files that are ruled out


@pytest.mark.parametrize(
    ("href", "kind"),
    [
        ("left-1.0.tar.gz", "not-a-wheel"),
        ("left-1.0-py2.7.egg", "not-a-wheel"),
        ("../", "not-a-wheel"),
        ("cu130/", "not-a-wheel"),
        ("#top", "not-a-wheel"),
        ("right-1.0-py3-none-any.whl", "other-project"),
        ("left-1.0-py3-none.whl", "bad-name"),
        ("left-one-py3-none-any.whl", "bad-name"),
        ("l%D0%B5ft-1.0-py3-none-any.whl", "bad-name"),
        ("left-1.0-py3-none-any%1B[31m.whl", "bad-name"),
        ("..%2f..%2fleft-1.0-py3-none-any.whl", "bad-name"),
        ("left-1.0%252Bcu130-py3-none-any.whl", "bad-name"),
        ("left-1.0-py3-none-any.whl#sha256=abc", "bad-hash"),
        ("left-1.0-py3-none-any.whl#sha256=" + "zz" * 32, "bad-hash"),
        ("left-1.0-py3-none-any.whl#sha256=", "bad-hash"),
        ("left-1.0-py3-none-any.whl#md5=abc", "bad-hash"),
        ("javascript:alert(1)//left-1.0-py3-none-any.whl", "bad-url"),
        ("file:///srv/left-1.0-py3-none-any.whl", "bad-url"),
        ("data:text/html,left-1.0-py3-none-any.whl", "bad-url"),
        ("https:left-1.0-py3-none-any.whl", "bad-url"),
        ("https://h@evil.example.org/left-1.0-py3-none-any.whl", "bad-url"),
        ("//u:p@evil.example.org/left-1.0-py3-none-any.whl", "bad-url"),
        ("https://evil.example.org:99999/left-1.0-py3-none-any.whl", "bad-url"),
        ("ht\ntps://evil.example.org/left-1.0-py3-none-any.whl", "bad-url"),
        ("https:\\\\evil.example.org\\left-1.0-py3-none-any.whl", "bad-url"),
        ("a b/left-1.0-py3-none-any.whl", "bad-url"),
        ("\u202eleft-1.0-py3-none-any.whl", "bad-url"),
        ("http://[::1/left-1.0-py3-none-any.whl", "bad-url"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_counted_rejection(href: str, kind: str) -> None:
    page = parse(link("left-2.0-py3-none-any.whl") + link(href, "the text"))
    assert len(page.files) == 1
    (rejection,) = page.rejections
    assert rejection.kind == kind
    assert rejection.where == f"{PAGE_URL}, anchor `the text`"
    assert (rejection.filename + rejection.reason + rejection.where).isprintable()


def test_a_malformed_hash_of_a_sidecar_is_a_rejection_too() -> None:
    name = "left-1.0-py3-none-any.whl"
    assert kinds(parse(link(name, more='data-core-metadata="sha256=12"'))) == ["bad-hash"]
    claim = {"core-metadata": {"sha256": "12"}}
    assert kinds(parse(json_page(json_file(**claim)), content_type=JSON)) == ["bad-hash"]


def test_a_good_listing_survives_a_bad_one_of_the_same_url() -> None:
    name = "left-1.0-py3-none-any.whl"
    page = parse(f'<a href="{name}#sha256=12">x</a><a href="{name}#sha256={A}">x</a>')
    assert [file.sha256 for file in page.files] == [(A,)]
    assert kinds(page) == ["bad-hash"]


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (json_file(url="ftp://h/left-1.0-py3-none-any.whl"), "bad-url"),
        (json_file(url="/files/left-2.0-py3-none-any.whl"), "bad-name"),
        (json_file(hashes={"sha256": A[1:]}), "bad-hash"),
        (json_file(filename="right-1.0-py3-none-any.whl"), "other-project"),
    ],
)
def test_json_files_are_ruled_out_alike(file: dict[str, object], kind: str) -> None:
    page = parse(json_page(file), content_type=JSON)
    assert (page.files, kinds(page)) == ((), [kind])


def test_the_name_in_json_holds_where_the_url_names_no_wheel() -> None:
    page = parse(json_page(json_file(url="https://f.example.org/blob/17")), content_type=JSON)
    assert page.files[0].filename == "left-1.0-py3-none-any.whl"


def test_a_project_in_quarantine_lists_no_file() -> None:
    text = json_page(json_file(), **{"project-status": {"status": "quarantined"}})
    page = parse(text, content_type=JSON)
    assert (page.files, kinds(page)) == ((), ["quarantined"])
    meta = '<meta name="pypi:project-status" content="quarantined">'
    page = parse(meta + link("left-1.0-py3-none-any.whl"))
    assert (page.files, kinds(page)) == ((), ["quarantined"])
    archived = json_page(json_file(), **{"project-status": {"status": "archived"}})
    assert len(parse(archived, content_type=JSON).files) == 1


# Pages that are none


def test_an_empty_page_of_an_index_is_a_page() -> None:
    assert saved("empty.html", "left") == ProjectPage(files=(), rejections=())
    assert parse(json_page(), content_type=JSON).files == ()


@pytest.mark.parametrize("name", ["error-page.html", "listing.xml", "sglang-empty.html"])
def test_a_page_that_is_not_a_page(name: str) -> None:
    with pytest.raises(NotAPageError) as caught:
        saved(name, "left", url="https://u:canary@h.example.org/x?canary")
    assert caught.value.where == "https://h.example.org/x"
    assert isinstance(caught.value, IndexAccessError)
    assert (caught.value.code, caught.value.exit_code) == ("not-a-page", 3)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "0 links"),
        ("Service unavailable", "0 links"),
        ("\x89PNG\r\n\x1a\n", "0 links"),
        ("<!DOCTYPE html><html><body>" + link("x.whl")[12:-14], "ends inside its html element"),
        (link("left-1.0-py3-none-any.whl")[:-18], "ends inside a link"),
        ('<a href="left-1.0-py3-none-any.whl', "ends inside a tag"),
        ('<a href="left-1.0-py3-none-any.whl">x</a><!-- TIMEST', "ends inside a comment"),
        ("<!DOCTYPE htm", "ends inside a declaration"),
        ("<script>var x = '", "ends inside a script element"),
        ('<meta name="pypi:repository-version" content="2.0">', "version `2.0` of the API"),
    ],
)
def test_html_that_is_no_page_says_what_it_is(body: str, words: str) -> None:
    with pytest.raises(NotAPageError, match=re.escape(words)):
        parse(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "does not parse"),
        ("{", "does not parse"),
        ('{"files": [NaN]}', "does not parse"),
        ('{"files": [-Infinity]}', "does not parse"),
        ('{"files": [1' + "0" * 5000 + "]}", "does not parse"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("[]", "no object"),
        ("{}", "without a list of `files`"),
        ('{"files": {}}', "without a list of `files`"),
        ('{"files": [], "meta": 1}', "`meta` that is not an object"),
        ('{"files": [], "meta": {"api-version": 1}}', "`api-version` that is not a string"),
        ('{"files": [], "meta": {"api-version": "2.0"}}', "version `2.0` of the API"),
        ('{"files": [], "name": 1}', "`name` that is not a string"),
        ('{"files": [], "name": "\u043beft"}', "one named"),
        ('{"files": [], "name": "right"}', "that of right where left was asked for"),
        ('{"files": [], "files": []}', "the key `files` stands twice"),
        ('{"files": [{"hashes": {"sha256": "a", "sha256": "b"}}]}', "`sha256` stands twice"),
        ('{"files": [], "project-status": []}', "`project-status` that is not an object"),
        ('{"files": [1]}', "no members"),
        ('{"files": [{"url": "x"}]}', "no `filename`"),
        (json_page(json_file(hashes=[])), "wrong type"),
        (json_page(json_file(hashes={"sha256": 1})), "wrong type"),
        (json_page(json_file(size="1")), "wrong type"),
        (json_page(json_file(size=-1)), "wrong type"),
        (json_page(json_file(size=True)), "wrong type"),
        (json_page(json_file(yanked=1)), "wrong type"),
        (json_page(json_file(**{"requires-python": 3})), "wrong type"),
        (json_page(json_file(**{"upload-time": 3})), "wrong type"),
        (json_page(json_file(**{"core-metadata": "yes"})), "wrong type"),
    ],
)
def test_json_that_is_no_page_says_what_it_is(body: str, words: str) -> None:
    with pytest.raises(NotAPageError, match=re.escape(words)):
        parse(body, content_type=JSON)


def test_a_page_over_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudalock.index.simple.PAGE_LIMIT", 10)
    with pytest.raises(NotAPageError, match="one of 12 bytes, where 10 are read"):
        parse("<a>12345</a>")


@pytest.mark.parametrize("name", ["pytorch-stable.html", "vllm.html", "default.json"])
def test_a_page_cut_anywhere_is_refused(name: str) -> None:
    body = (PAGES / name).read_bytes()
    project = {"p": "torch", "v": "vllm", "d": "left-pad"}[name[0]]
    kind = JSON if name.endswith("json") else HTML
    whole = len(parse(body, project, content_type=kind).files)
    end = len(body.rstrip()) if kind == JSON else body.index(b"</html>") + len(b"</html>")
    for length in range(end):
        with pytest.raises(NotAPageError):
            parse(body[:length], project, content_type=kind)
    for length in range(end, len(body) + 1):
        try:
            assert len(parse(body[:length], project, content_type=kind).files) == whole
        except NotAPageError as error:
            message = str(error)
            assert re.search("ends inside a (comment|declaration|tag)", message)


@given(
    st.one_of(
        st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace"))
    )
)
def test_any_bytes_raise_only_our_errors(body: bytes) -> None:
    for kind in (HTML, JSON, None):
        try:
            parse(body, content_type=kind)
        except CudalockError as error:
            assert str(error).isprintable()


_PIECES = st.sampled_from(
    [
        "<a ",
        "<a href=",
        "left-1.0-py3-none-any.whl",
        "#sha256=",
        ">",
        "</a>",
        "'",
        '"',
        "&#99",
        "\n",
        "<!--",
        "-->",
        "<html>",
        "</html>",
        "<base href=",
        "//",
        "https://",
        "http://[",
        "%",
        "\\",
        "<h1>",
    ]
)


@given(st.lists(_PIECES, max_size=24))
def test_any_pieces_of_a_page_raise_only_our_errors_and_lead_to_the_web(
    pieces: Iterable[str],
) -> None:
    try:
        page = parse("".join(pieces))
    except CudalockError:
        return
    for file in page.files:
        parts = urlsplit(file.url)
        assert parts.scheme in ("http", "https")
        assert parts.hostname
        assert parts.username is None
        assert file.url.isascii()


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("files/left-1.0-py3-none-any.whl", f"{PAGE_URL}files/left-1.0-py3-none-any.whl"),
        ("a/b%2B/c+d/left-1.0-py3-none-any.whl", f"{PAGE_URL}a/b%2B/c+d/left-1.0-py3-none-any.whl"),
        ("a/../left-1.0-py3-none-any.whl", f"{PAGE_URL}left-1.0-py3-none-any.whl"),
        ("a/./left-1.0-py3-none-any.whl", f"{PAGE_URL}a/left-1.0-py3-none-any.whl"),
        (
            "//h.example.org/left-1.0-py3-none-any.whl",
            "https://h.example.org/left-1.0-py3-none-any.whl",
        ),
    ],
)
def test_links_below_beside_and_on_other_hosts_lead_where_the_standard_says(
    href: str, url: str
) -> None:
    assert [file.url for file in parse(link(href)).files] == [url]


def test_a_link_to_a_host_that_is_named_like_a_wheel_is_no_file_of_this_page() -> None:
    found = parse(link("//left-1.0-py3-none-any.whl"))
    assert all("index.example.org" not in file.url for file in found.files)
