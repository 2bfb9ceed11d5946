"""The anchors of an HTML page, in one pass over its tags (HTML standard, section "Tokenization").

No tree is built, and that is the point. Tree construction is where hostile pages bite: the HTML
parser of the standard library takes 45 s on 100 KB of ``<a x=``, and lexbor (selectolax) 27 s and 9 GB on
100 KB of formatting elements that every paragraph opens again, as the standard demands. Here each
character is looked at a bounded number of times: every quantifier is possessive, and what has no end
(a tag, a comment, a quoted value, raw text) is a cut page, which is refused.
"""

import html
import re
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = [
    "LINKS_LIMIT",
    "Anchor",
    "CutPageError",
    "HtmlPage",
    "ManyLinksError",
    "read_anchors",
]

_WS = r"[ \t\n\f\r]"
_NOT_WS = r"[^ \t\n\f\r"
# "Before attribute value state": a quoted value ends at its quote, an unquoted one at white space
# or `>`. An attribute that has `=` must have such a value, so an open quote makes the tag fail.
_VALUE = rf"""(?:"[^"]*+"|'[^']*+'|(?=>)|{_NOT_WS}>"']{_NOT_WS}>]*+)"""
_BODY = rf"(?:(?:{_WS}|/)++|{_NOT_WS}/>]{_NOT_WS}/>=]*+(?:{_WS}*+={_WS}*+{_VALUE}|(?!{_WS}*+=)))*+"
_TOKEN = re.compile(
    # 1 the attributes of a link without markup inside, 2 its text: nearly every link there is
    rf"<[aA](?=[ \t\n\f\r/>])({_BODY})>([^<]*+)</[aA]{_WS}*+>"
    # 3 "/" of an end tag, 4 the tag's name, 5 its attributes
    rf"|<(/?+)([A-Za-z]{_NOT_WS}/>]*+)({_BODY})>"
    # 6 a comment begins, 7 a bogus comment begins, 8 a tag that never ends
    r"|<(?:(!--)|([!?]|/[^A-Za-z])|(/?+[A-Za-z]))"
    # a run of what begins nothing, but for its last
    r"|(?:<(?=<))++"
    r"|<"
)
_ATTRIBUTE = re.compile(
    rf"({_NOT_WS}/>]{_NOT_WS}/>=]*+)"
    rf"(?:{_WS}*+={_WS}*+(?:\"([^\"]*+)\"|'([^']*+)'|(?=>|\Z)|({_NOT_WS}>\"']{_NOT_WS}>]*+)))?+"
)
_COMMENT_END = re.compile(r"-->|--!>")
# Inside these nothing is markup until their own end tag.
_RAW_TEXT = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE)
    for name in ("script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp")
}
_HEADING_LIMIT = 400
# The fullest page of a project that is known has 4,400 files; what makes a value of each link is bounded.
LINKS_LIMIT = 250_000


class CutPageError(Exception):
    """The page is not read: it ends inside something. ``found`` says what was found."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


class ManyLinksError(CutPageError):
    """The page has more links than any index lists of one project."""

    def __init__(self) -> None:
        super().__init__(f"one of more than {LINKS_LIMIT} links")


class Anchor(NamedTuple):
    """A link: its attributes (names in lower case, values decoded) and the text inside."""

    attributes: dict[str, str]
    text: str


@dataclass(slots=True)
class HtmlPage:
    """What a page holds that a reader of indexes can use.

    ``headings`` are the texts of title and h1, ``meta`` the named meta elements (the first of a name).
    """

    anchors: list[Anchor] = field(default_factory=list)
    base: str | None = None
    headings: list[str] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)


def read_anchors(text: str) -> HtmlPage:
    """Read a whole page, in time linear in its length.

    Raises `ManyLinksError` past 250,000 links, `CutPageError` for a page that ends inside a tag, a comment, a link or raw text, or that
    opens an html element and does not close it. A page without an html element is as good as another.
    """
    page = HtmlPage()
    search = _TOKEN.search
    anchors = page.anchors
    position = 0
    opened = closed = False
    link: dict[str, str] | None = None
    inside: list[str] = []
    heading_start = -1
    while (match := search(text, position)) is not None:
        last = match.lastindex
        if len(anchors) > LINKS_LIMIT:
            raise ManyLinksError
        if link is not None:
            inside.append(text[position : match.start()])
        position = match.end()
        if last == 2:
            if link is not None:
                # "If there is an a element open, close it": a link inside a link ends the first.
                anchors.append(Anchor(link, _decode("".join(inside))))
                link = None
                inside = []
            anchors.append(Anchor(_attributes(match[1]), _decode(match[2])))
        elif last == 5:
            name = match[4].lower()
            if name == "a":
                if link is not None:
                    anchors.append(Anchor(link, _decode("".join(inside))))
                    link = None
                    inside = []
                if not match[3]:
                    link = _attributes(match[5])
            elif match[3]:
                closed = closed or name == "html"
                if name == "h1" and heading_start >= 0:
                    _keep_heading(page, text, heading_start, match.start())
                    heading_start = -1
            elif name in _RAW_TEXT:
                end = _RAW_TEXT[name].search(text, position)
                if end is None:
                    raise CutPageError(f"one that ends inside a {name} element")
                if name == "title":
                    _keep_heading(page, text, position, end.start())
                position = end.start()
            elif name == "html":
                opened = True
            elif name == "h1":
                heading_start = position
            elif name == "base" and page.base is None:
                page.base = _attributes(match[5]).get("href")
            elif name == "meta":
                attributes = _attributes(match[5])
                page.meta.setdefault(
                    attributes.get("name", "").strip().lower(), attributes.get("content", "")
                )
        elif last == 6:
            # "<!-->" and "<!--->" are comments too.
            end = _COMMENT_END.search(text, position - 2)
            if end is None:
                raise CutPageError("one that ends inside a comment")
            position = max(position, end.end())
        elif last == 7:
            found = text.find(">", position - 1)
            if found < 0:
                raise CutPageError("one that ends inside a declaration")
            position = found + 1
        elif last == 8:
            raise CutPageError("one that ends inside a tag")
    if link is not None:
        raise CutPageError("one that ends inside a link")
    if opened and not closed:
        raise CutPageError("one that ends inside its html element")
    return page


def _attributes(body: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(body):
        # "If there is already an attribute of that name, the new one must be removed."
        found.setdefault(name.lower(), _decode(double or single or bare))
    return found


def _decode(text: str) -> str:
    if "&" not in text:
        return text
    try:
        return html.unescape(text)
    except ValueError:
        # A numeric reference of thousands of digits stands for nothing.
        return text


def _keep_heading(page: HtmlPage, text: str, start: int, end: int) -> None:
    if len(page.headings) < 8:
        page.headings.append(_decode(text[start : min(end, start + _HEADING_LIMIT)]).strip())
