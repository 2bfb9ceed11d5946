import contextlib
import time

import pytest

from cudalock.index.anchors import CutPageError, HtmlPage, read_anchors

# Each repeated until it fills a page; the first two take the standard library's parser 45 s on 100 KB, the
# last but one takes lexbor 27 s and 9 GB.
HOSTILE = [
    "<a x=",
    "<a a='",
    '<a href="x" ',
    "<a ",
    "<a/",
    "<a =",
    "<a" + " " * 40,
    "<a href=x>y",
    "<a>&#9",
    "<",
    "</",
    "</a",
    "<!",
    "<!--",
    "<!-->",
    "<?",
    "<script>",
    "<script></script",
    "<title>x</title>",
    "<h1>",
    "<div>",
    "<p><b a=1></p>",
    "<table><a>x",
]


def seconds(text: str) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        with contextlib.suppress(CutPageError):
            read_anchors(text)
        best = min(best, time.perf_counter() - start)
    return best


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_length_of_a_hostile_page_and_no_faster(piece: str) -> None:
    short, long = (piece * (length // len(piece)) for length in (50_000, 400_000))
    # Eight times the length: a quadratic reader would take 64 times as long.
    assert seconds(long) < 24 * max(seconds(short), 0.002)


def test_formatting_that_every_paragraph_opens_again_costs_nothing() -> None:
    opened = "<p>" + "".join(f"<b a={i}>" for i in range(5000)) + "</p>"
    assert read_anchors(opened + "<p>x</p>" * 5000 + "<a href=y>z</a>").anchors[0].text == "z"


def hrefs(text: str) -> list[str | None]:
    return [anchor.attributes.get("href") for anchor in read_anchors(text).anchors]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a href=x>y</a>", ["x"]),
        ("<A HREF='x'>y</A >", ["x"]),
        ('<a class=b href = "x" >y</a>', ["x"]),
        ("<a href=x href=y>z</a>", ["x"]),
        ("<a/href=x>y</a>", ["x"]),
        ("<a href=x/y>z</a>", ["x/y"]),
        ("<a b'c href=x>y</a>", ["x"]),
        ('<a href="a>b">c</a>', ["a>b"]),
        ("<a href=>y</a>", [""]),
        ("<a href>y</a>", [""]),
        ("<a name=x>y</a>", [None]),
        ("<a>y</a>", [None]),
        ("<a href=x><b>y</b></a><a href=z></a>", ["x", "z"]),
        ("<a href=x>one<a href=y>two</a>", ["x", "y"]),
        ("<a href=x><i>one<a href=y><i>two</a>", ["x", "y"]),
        ("<abbr href=x>y</abbr><a\thref=z>w</a>", ["z"]),
        ("a < b </> <3 <!x> <?y?> </ z><a href=x>y</a>", ["x"]),
        ("<!--><a href=x>y</a>", ["x"]),
        ("<!-- a --!><a href=x>y</a>", ["x"]),
        ("<!-- <a href=x>y</a> -->", []),
        ("<script><a href=x>y</a></SCRIPT ><a href=z>w</a>", ["z"]),
        ("<textarea><a href=x>y</a></textareas></textarea>", []),
        ("</a><a href=x>y</a></a>", ["x"]),
    ],
)
def test_which_links_a_browser_would_see(text: str, expected: list[str | None]) -> None:
    assert hrefs(text) == expected


def test_text_and_attributes_are_decoded() -> None:
    (anchor,) = read_anchors(
        "<a href='a&amp;b' x='&gt;=3&#49;'>c &lt; <b>d</b>&eacute;</a>"
    ).anchors
    assert anchor.attributes == {"href": "a&b", "x": ">=31"}
    assert "".join(anchor.text.split()) == "c<dé"


def test_a_numeric_reference_of_thousands_of_digits_stands_for_itself() -> None:
    text = "&#" + "9" * 5000 + ";"
    assert read_anchors(f"<a href='{text}'>x</a>").anchors[0].attributes["href"] == text


def test_headings_meta_and_base() -> None:
    page = read_anchors(
        "<title>Links for &lt;x&gt;</title><META name='A' content=1><meta name=a content=2>"
        "<base href=/x/><base href=/y/><h1>Links</h1>" + "<h1>more</h1>" * 20
    )
    assert page.headings[:2] == ["Links for <x>", "Links"]
    assert len(page.headings) == 8
    assert (page.meta, page.base) == ({"a": "1"}, "/x/")
    assert read_anchors("") == HtmlPage()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<html>", "its html element"),
        ("<html></body>", "its html element"),
        ("<a href=x>", "a link"),
        ("<a href=x>y", "a link"),
        ("<a href='x>y</a>", "a tag"),
        ("<div", "a tag"),
        ("</div", "a tag"),
        ("<!-- -", "a comment"),
        ("<!x", "a declaration"),
        ("</ x", "a declaration"),
        ("<style>p { }", "a style element"),
    ],
)
def test_a_page_that_ends_inside_something_is_cut(text: str, what: str) -> None:
    with pytest.raises(CutPageError) as caught:
        read_anchors(text)
    assert caught.value.what == what
