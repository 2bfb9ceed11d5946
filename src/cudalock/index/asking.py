"""Asks the folders of one index for one project: those that are there, a release's, a partner's, a pin's.

`routing.py` says which folders a route has and `releases.py` which releases stand in them; which
index is asked next, and what a listing is, is left to `source.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Protocol

from packaging.specifiers import SpecifierSet

from cudalock.errors import IndexAccessError
from cudalock.index.origins import not_whole, nothing_to_ask
from cudalock.index.pages import PageAnswer, PageReader
from cudalock.index.recorded import Recording
from cudalock.index.releases import (
    RELEASES_LIMIT,
    admitted_releases,
    listed_releases,
    partner_requests,
    unserved_pin,
)
from cudalock.index.routes import FolderRequest, Route
from cudalock.index.routing import Router
from cudalock.wheel.listing import ProjectListing
from cudalock.wheel.published import AsOf
from cudalock.wheel.tag_filter import TagFilter

__all__ = ["FolderAsker"]


class _Listing(Protocol):
    def __call__(self, project: str, *, admitted: SpecifierSet, nightly: bool) -> ProjectListing:
        """Return what the indexes responsible for another project list."""
        ...


class FolderAsker:
    """Asks folders, each page once (`PageReader` keeps them). Thread-safe; blocking.

    ``admitted`` is what the request admits by project, ``listing`` answers for a partner. With
    ``as_of`` folders of releases that came later are not asked.
    """

    def __init__(
        self,
        *,
        router: Router,
        pages: PageReader,
        recordings: Mapping[str, Recording],
        fit: TagFilter | None,
        admitted: Mapping[str, SpecifierSet],
        listing: _Listing,
        as_of: AsOf | None = None,
    ) -> None:
        self._router = router
        self._pages = pages
        self._recordings = recordings
        self._fit = fit
        self._admitted = dict(admitted)
        self._listing = listing
        self._as_of = as_of
        self._lock = Lock()
        self._folders: dict[tuple[str, str], bool] = {}

    def ask_route(
        self, route: Route, admitted: SpecifierSet, *, nightly: bool, mention: bool = True
    ) -> tuple[list[PageAnswer], list[PageAnswer]]:
        """Ask every folder of one index; also return what another index was seen to list in passing.

        Without ``mention`` no index is asked for what would only be mentioned.
        """
        plain = [f for f in route.folders if not (f.versioned or f.partnered or f.pinned)]
        answered = self._ask(route, plain)
        partnered = [folder for folder in route.folders if folder.partnered]
        if partnered and route.partner is not None:
            answered += self._ask_partnered(route, route.partner, partnered, nightly=nightly)
        shadows: list[PageAnswer] = []
        versioned = [folder for folder in route.folders if folder.versioned]
        if versioned:
            found, shadows = self._ask_versioned(route, versioned, admitted, nightly=nightly)
            answered += found
        elif mention and self.nightly_only(route):
            shadows = self._shadow_of_nightly(route, answered)
        pin = unserved_pin(admitted, (file for answer in answered for file in answer.files))
        # Nightlies have folders of their own.
        if pin is not None and not pin.is_devrelease:
            answered += self._ask(route, [folder for folder in route.folders if folder.pinned])
        return answered, shadows

    def _ask_versioned(
        self,
        route: Route,
        versioned: Sequence[FolderRequest],
        admitted: SpecifierSet,
        *,
        nightly: bool,
    ) -> tuple[list[PageAnswer], list[PageAnswer]]:
        """Ask the folders of each release, newest first, until one serves."""
        answered: list[PageAnswer] = []
        default = self._router.default_route(route.project)
        # Which releases there are is asked of wheels for any machine, and of source distributions.
        elsewhere = self._ask(default, default.folders, whole=True)
        listed = listed_releases(
            (file for answer in elsewhere for file in answer.files),
            (rejection for answer in elsewhere for rejection in answer.rejections),
            as_of=self._as_of,
        )
        releases = admitted_releases(listed, admitted, prereleases=nightly)
        for release in releases[:RELEASES_LIMIT]:
            found = self._ask(route, [folder.at_version(release) for folder in versioned])
            answered += found
            if any(answer.files or answer.unfit for answer in found):
                break
        else:
            if len(releases) > RELEASES_LIMIT:
                cut = f"only the newest {RELEASES_LIMIT} releases were asked for"
                answered.append(not_whole(route, versioned[0], cut))
        return answered, elsewhere

    def _ask_partnered(
        self, route: Route, partner: str, folders: Sequence[FolderRequest], *, nightly: bool
    ) -> list[PageAnswer]:
        """Ask the folders of each release of the partner that its own listing shows."""
        admitted = self._admitted.get(partner, SpecifierSet())
        listing = self._listing(partner, admitted=admitted, nightly=nightly)
        if self._fit is not None:
            # A recorded page holds wheels for other machines too.
            fitting = tuple(file for file in listing.files if self._fit.admits(file.filename))
            listing = replace(listing, files=fitting)
        requests = partner_requests(folders, listing, admitted)
        answered = self._ask(route, requests.folders)
        if requests.cut:
            answered.append(not_whole(route, folders[0], requests.cut))
        elif not answered:
            why = f"{partner} lists no release that is admitted for these folders"
            answered.append(nothing_to_ask(route, why))
        return answered

    def _shadow_of_nightly(self, route: Route, answered: Iterable[PageAnswer]) -> list[PageAnswer]:
        """Return what the default index, the usual home of the project, lists beside its nightlies.

        A name that is taken from a publisher's nightlies is not mixed with that of another index,
        however new: whoever registers it there could take its place.
        """
        if all(answer.absent for answer in answered):
            return []
        default = self._router.default_route(route.project)
        try:
            return self._ask(default, default.folders)
        except IndexAccessError:
            # It would only have been mentioned.
            return []

    def nightly_only(self, route: Route) -> bool:
        """Whether an index is the source of the project in its nightly folders only."""
        return (
            bool(route.folders)
            and all(folder.nightly for folder in route.folders)
            and self.owned(route, nightly=True)
        )

    def owned(self, route: Route, *, nightly: bool) -> bool:
        """Whether a definition's word makes the index of ``route`` the source of its project."""
        sources = self._router.sources_of(route.project, nightly=nightly)
        return route.index in {definition.name for definition in sources}

    def _ask(
        self, route: Route, folders: Sequence[FolderRequest], *, whole: bool = False
    ) -> list[PageAnswer]:
        recording = self._recordings.get(route.index) if route.recordable else None
        answered = self._pages.ask(route, folders, recording, None if whole else self._fit)
        with self._lock:
            for folder, answer in zip(folders, answered, strict=True):
                if folder.folder is not None:
                    key = (route.index, folder.shown_folder or folder.folder)
                    self._folders[key] = self._folders.get(key, False) or not answer.absent
        return answered

    def absent_folders(self) -> tuple[tuple[str, str], ...]:
        """Return (index, folder) of folders that answered "absent" for every project asked."""
        with self._lock:
            return tuple(sorted(key for key, populated in self._folders.items() if not populated))
