"""What reading a page costs, in calls made: it grows with the length of the page and no faster.

Looks at single characters are counted in `test_index_anchors.py`; here it is all the rest.
"""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from counting_calls import calls_of
from cudalock.errors import CudalockError
from cudalock.index.simple import PageContext, parse_page
from cudalock.index.union import unite
from cudalock.wheel.listing import ListedFile

CONTEXT = PageContext(index="publisher", index_url="https://index.example.org/whl")


def read(text: str, project: str | None = "left") -> tuple[ListedFile, ...]:
    url = "https://index.example.org/whl/left/"
    with suppress(CudalockError):
        page = parse_page(
            text.encode(), content_type=None, url=url, project=project, context=CONTEXT
        )
        return unite(page.files)
    return ()


def link(href: str, more: str = "") -> str:
    return f'<a href="{href}" {more}>x</a>\n'


def json_page(count: int, url: str) -> str:
    files = [
        {
            "filename": f"left-{n}-py3-none-any.whl",
            "url": url.format(n),
            "hashes": {"sha256": f"{n:064x}"},
        }
        for n in range(count)
    ]
    return json.dumps({"files": files})


SHAPES: dict[str, Callable[[int], str]] = {
    "one address, each time another hash": lambda n: "".join(
        link(f"left-1-py3-none-any.whl#sha256={i:064x}") for i in range(n)
    ),
    "one address, each time another sidecar": lambda n: "".join(
        link("left-1-py3-none-any.whl", f'data-core-metadata="sha256={i:064x}"') for i in range(n)
    ),
    "one path, each time another host": lambda n: "".join(
        link(f"https://h{i}.example.org/left-1-py3-none-any.whl#sha256={i:064x}") for i in range(n)
    ),
    "each time another folder": lambda n: "".join(
        link(f"../{i}/left-1-py3-none-any.whl") for i in range(n)
    ),
    "each time another project": lambda n: "".join(
        link(f"right{i}-1-py3-none-any.whl") for i in range(n)
    ),
    "each time no file": lambda n: "".join(link(f"f{i}/") for i in range(n)),
    "many attributes": lambda n: link("left-1-py3-none-any.whl", "data-yanked=x " * n),
    "many parts of a fragment": lambda n: link("left-1-py3-none-any.whl#" + "a=b&" * n),
    "many headings": lambda n: "<h1>Links for left</h1>" * n,
    "json": lambda n: json_page(n, "left-{}-py3-none-any.whl"),
    "json on many hosts": lambda n: json_page(n, "https://h{}.example.org/x/"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_grow_with_the_length_of_a_page_and_no_faster(shape: str) -> None:
    make = SHAPES[shape]
    short, long = make(40), make(320)
    # What is memoised (names, folders) is warm for both.
    read(long)
    few, many = calls_of(lambda: read(short)), calls_of(lambda: read(long))
    assert many <= 9 * few + 200


def test_a_counter_of_calls_tells_a_quadratic_reader() -> None:
    def quadratic(n: int) -> Callable[[], object]:
        return lambda: [abs(j) for i in range(n) for j in range(i)]

    assert calls_of(quadratic(320)) > 9 * calls_of(quadratic(40)) + 200
