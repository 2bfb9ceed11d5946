from pathlib import Path

import pytest

from counting_patterns import CountingPattern, Steps
from cudalock.index import anchors
from cudalock.index.anchors import (
    LINKS_LIMIT,
    CutPageError,
    HtmlPage,
    ManyLinksError,
    read_anchors,
)

PAGES = Path(__file__).parent.parent / "pages"

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


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Let the reader's own patterns count the characters they look at."""
    counted = Steps()
    for name in ("_TOKEN", "_ATTRIBUTE", "_COMMENT_END"):
        monkeypatch.setattr(anchors, name, CountingPattern(getattr(anchors, name), counted))
    raw = {name: CountingPattern(p, counted) for name, p in anchors._RAW_TEXT.items()}
    monkeypatch.setattr(anchors, "_RAW_TEXT", raw)
    return counted


def outcome(text: str) -> HtmlPage | str:
    try:
        return read_anchors(text)
    except CutPageError as error:
        return error.found.removeprefix("one that ends inside ")


@pytest.mark.parametrize("piece", HOSTILE)
def test_steps_grow_with_the_length_of_a_hostile_page_and_no_faster(
    piece: str, steps: Steps
) -> None:
    counts = []
    for length in (400, 3200):
        steps.count = 0
        outcome(piece * (length // len(piece)))
        counts.append(steps.count)
    # Eight times the length: a quadratic reader would take 64 times as many.
    assert counts[1] <= 9 * counts[0] + 100
    assert counts[1] < 200 * 3200


@pytest.mark.parametrize(
    "text",
    [
        *(piece * 5 for piece in HOSTILE),
        *(path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.html"))),
    ],
)
def test_counting_changes_nothing_that_is_read(text: str, request: pytest.FixtureRequest) -> None:
    plain = outcome(text)
    request.getfixturevalue("steps")
    assert outcome(text) == plain


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
    assert caught.value.found == f"one that ends inside {what}"


def test_a_page_of_more_links_than_any_index_has_is_not_read_on() -> None:
    link = "<a href=x>x</a>"
    assert len(read_anchors(link * 1000).anchors) == 1000
    with pytest.raises(ManyLinksError) as caught:
        read_anchors(link * (LINKS_LIMIT + 2))
    assert caught.value.found == "one of more than 250000 links"
