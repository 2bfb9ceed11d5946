"""What a person is told about where a project comes from, and about answers nobody gave.

A copy of a project on another index is named and never mixed in; a folder that is not there, a
page that is there and empty, and an index of which only a part was asked are three answers. Which
index is asked is decided in `routing.py`.
"""

from collections.abc import Iterable, Sequence

from cudalock.index.address import shown_url
from cudalock.index.pages import PageAnswer
from cudalock.index.releases import listed_releases
from cudalock.index.routes import DEFAULT_INDEX, FolderRequest, Route
from cudalock.wheel.listing import IndexAnswer

__all__ = [
    "not_whole",
    "nothing_to_ask",
    "shadows_on_default",
    "told_absence",
    "told_emptiness",
    "told_index",
]


def told_absence(route: Route, answered: Iterable[PageAnswer]) -> str:
    """Say where the index was asked and does not have the project."""
    folders = dict.fromkeys(a.answer.folder for a in answered if a.answer.folder is not None)
    inside = f" in {', '.join(folders)}" if folders else ""
    return f"{route.index} does not have {route.project}{inside}"


def told_emptiness(route: Route, answered: Sequence[PageAnswer]) -> list[str]:
    """Say that pages are there and list nothing for this project, which is not their absence."""
    listed = [a for a in answered if a.answer.status == "listed"]
    if not listed or any(a.files or a.unfit or a.rejections for a in answered):
        return []
    if any(a.answer.status in ("partial", "unrecorded") for a in answered):
        return []
    folders = dict.fromkeys(a.answer.folder for a in listed if a.answer.folder is not None)
    inside = f" in {', '.join(folders)}" if folders else ""
    return [
        f"{told_index(route.index)} has a page of {route.project}{inside} and lists no wheel there"
    ]


def told_index(name: str) -> str:
    """Return an index's name as it stands in a sentence."""
    return f"the {name} index" if name == DEFAULT_INDEX else name


def nothing_to_ask(route: Route, why: str = "it has no folder for this target") -> PageAnswer:
    """Answer for an index that has no folder to ask for."""
    return PageAnswer(
        files=(),
        rejections=(),
        answer=IndexAnswer(
            index=route.index,
            url="",
            folder=None,
            status="absent",
            source=f"{route.reason}, and {why}",
        ),
    )


def shadows_on_default(route: Route, elsewhere: Iterable[PageAnswer]) -> list[str]:
    """Say that the default index lists the project too, if it does, and how new."""
    listed = listed_releases(file for answer in elsewhere for file in answer.files)
    if not listed:
        return []
    there = f"the {DEFAULT_INDEX} index also lists {route.project} (newest {max(listed)})"
    return [f"{there}: not considered, it comes from {route.index}"]


def not_whole(route: Route, folder: FolderRequest, why: str) -> PageAnswer:
    """Answer for folders that were not asked for, which proves nothing about them."""
    return PageAnswer(
        files=(),
        rejections=(),
        answer=IndexAnswer(
            index=route.index,
            url=shown_url(folder.url),
            folder=folder.shown_folder,
            status="partial",
            source=why,
        ),
    )
