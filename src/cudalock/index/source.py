"""Everything the indexes say, project by project: what the resolver asks for its candidates.

`routing.py` decides where a project is asked for; here it is asked, once, and the answers become one
listing: the union over the populated folders of one index. A definition that answers "absent" in
every folder leaves the project to the default index, which is said; an index that cannot be read
is an error that names the flag which leaves it out, never "absent".

The resolver declares the protocol this fits; neither room imports the other. HTTP is left to
`client.py`, pages to `simple.py`, recordings to `recorded.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Self

from packaging.specifiers import SpecifierSet

from cudalock.index.asking import FolderAsker
from cudalock.index.client import Client
from cudalock.index.definitions import Definition
from cudalock.index.file_reader import FileReader
from cudalock.index.find_links import parse_direct_file, parse_find_links
from cudalock.index.known import known_names
from cudalock.index.origins import (
    nothing_to_ask,
    shadows_on_default,
    told_absence,
    told_emptiness,
    told_index,
)
from cudalock.index.pages import PageAnswer, PageReader
from cudalock.index.recorded import Recording
from cudalock.index.releases import (
    unserved_pin,
)
from cudalock.index.routes import Route
from cudalock.index.routing import Router
from cudalock.index.union import unite
from cudalock.memo import Memo
from cudalock.wheel.file_hash import HashedBytes
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile, ProjectListing
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.published import AsOf
from cudalock.wheel.tag_filter import TagFilter
from cudalock.wheel.variants import VariantsMetadata, VariantsUnread

__all__ = ["IndexSource"]


class IndexSource:
    """Listings and metadata of projects, each asked for once. Thread-safe; blocking.

    ``recordings`` maps the name of a definition to what was recorded of it: such an index answers
    from there, without the network. ``fit`` names a target's wheels at a glance: others are listed
    by name only. ``find_links`` adds wheels to those of any project.
    ``admitted`` is what the request admits of each project, for publishers that keep a folder a
    release of another project, and ``as_of`` the time before which releases count there.
    ``cached_projects`` are names met before, used for nothing but
    `known_projects`.
    """

    def __init__(
        self,
        *,
        router: Router,
        client: Client,
        knowledge: Knowledge | None = None,
        recordings: Mapping[str, Recording] | None = None,
        find_links: Sequence[str] = (),
        cached_projects: Iterable[str] = (),
        readers: tuple[PageReader, FileReader] | None = None,
        fit: TagFilter | None = None,
        admitted: Mapping[str, SpecifierSet] | None = None,
        as_of: AsOf | None = None,
    ) -> None:
        self._router = router
        self._client = client
        self._knowledge = Knowledge() if knowledge is None else knowledge
        self._recordings = dict(recordings or {})
        self._find_links = tuple(find_links)
        self._linked = tuple(parse_find_links(text) for text in find_links)
        self._cached_projects = frozenset(cached_projects)
        if readers is None:
            readers = PageReader(client), FileReader(client, self._knowledge)
        self._pages, self._files = readers
        self._listings: Memo[tuple[str, bool, str], ProjectListing] = Memo()
        self._lock = Lock()
        self._notes: set[str] = set()
        self._asker = FolderAsker(
            router=router,
            pages=self._pages,
            recordings=self._recordings,
            fit=fit,
            admitted=admitted or {},
            listing=self.listing,
            as_of=as_of,
        )

    def rerouted(
        self,
        router: Router,
        fit: TagFilter | None = None,
        admitted: Mapping[str, SpecifierSet] | None = None,
        as_of: AsOf | None = None,
    ) -> "IndexSource":
        """Return a source for another question, which reads no page or METADATA a second time."""
        return IndexSource(
            router=router,
            client=self._client,
            knowledge=self._knowledge,
            recordings=self._recordings,
            find_links=self._find_links,
            cached_projects=self._cached_projects,
            readers=(self._pages, self._files),
            fit=fit,
            admitted=admitted,
            as_of=as_of,
        )

    def for_any_machine(self) -> "IndexSource":
        """Return this source without a target: every wheel is read, whatever its tags."""
        return self.rerouted(self._router)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the threads that ask for pages; the client stays the caller's."""
        self._pages.close()

    # Listings

    def listing(self, project: str, *, admitted: SpecifierSet, nightly: bool) -> ProjectListing:
        """Return every file the indexes responsible for ``project`` list.

        ``admitted`` matters only where a publisher keeps a folder a release, or folders for exact
        pins only: those are asked. ``nightly`` opens the publisher's nightly templates. Raises
        `IndexAccessError` when an index gave no usable answer, with the flag that leaves it out.
        """
        route = self._router.route(project, nightly=nightly)
        # Where nothing hangs on what is admitted, one listing serves every question.
        folders = [folder for step in route.chain for folder in step.folders]
        asking = any(folder.versioned or folder.pinned or folder.nightly for folder in folders)
        key = (project, nightly, str(admitted) if asking else "")
        return self._listings.get(key, lambda: self._listing(route, admitted, nightly=nightly))

    def _listing(self, route: Route, admitted: SpecifierSet, *, nightly: bool) -> ProjectListing:
        project = route.project
        answered: list[PageAnswer] = []
        notes: list[str] = []
        elsewhere: list[ListedFile] = []
        for step in route.chain:
            found, passed = self._asker.ask_route(step, admitted, nightly=nightly)
            elsewhere += (file for answer in passed for file in answer.files)
            pin = None
            if self._asker.nightly_only(step) and step.otherwise is not None:
                # The default index is the project's home: a pre-release the person pins may be
                # there and not among the nightlies.
                pin = unserved_pin(admitted, (file for a in found for file in a.files))
            if pin is not None and step.otherwise is not None:
                # What was not seen whole still counts; its files do not.
                answered += [replace(answer, files=(), unfit=()) for answer in found]
                notes.append(
                    f"{step.index} does not list {project} {pin}:"
                    f" it comes from {told_index(step.otherwise.index)}"
                )
                continue
            answered += found
            if not all(answer.absent for answer in found):
                notes += [
                    *shadows_on_default(step, passed),
                    *self._recorded_shadows(step, route),
                    *told_emptiness(step, found),
                ]
                break
            if step.otherwise is not None and self._asker.owned(step, nightly=nightly):
                there = told_absence(step, found) + self._told_elsewhere(step)
                sibling = self._sibling(step, nightly=nightly)
                if sibling is not None:
                    notes.append(
                        f"{there}, and does have {sibling} of its family:"
                        f" {project} is not taken from another index"
                    )
                    break
                notes.append(f"{there}: it comes from {told_index(step.otherwise.index)}")
        if not answered:
            answered.append(nothing_to_ask(route))
        for where in self._linked:
            linked = self._pages.find_links(where, project)
            if linked is not None:
                answered.append(linked)
        with self._lock:
            self._notes.update(notes)
        return ProjectListing(
            project=project,
            files=unite(file for answer in answered for file in answer.files),
            unfit=tuple(name for answer in answered for name in answer.unfit),
            rejections=tuple(
                dict.fromkeys(rejection for a in answered for rejection in a.rejections)
            ),
            answers=tuple(dict.fromkeys(answer.answer for answer in answered)),
            notes=tuple(notes),
            statuses=tuple(dict.fromkeys(a.status for a in answered if a.status is not None)),
            elsewhere=tuple(elsewhere),
        )

    def _recorded_shadows(self, taken: Route, whole: Route) -> list[str]:
        """Name the publishers whose recorded lists hold the project too; nothing is read for it.

        Those on the ``whole`` way to the index that was ``taken`` have been asked.
        """
        asked = {step.index for step in whole.chain}
        return [
            f"{name} also lists {taken.project} ({', '.join(folders)}):"
            f" not considered, it comes from {told_index(taken.index)}"
            for name, recording in sorted(self._recordings.items())
            if name not in asked and (folders := recording.folders_with(taken.project))
        ]

    def _told_elsewhere(self, route: Route) -> str:
        """Say for which other releases the publisher is known to have the project."""
        recording = self._recordings.get(route.index)
        folders = recording.folders_with(route.project) if recording is not None else ()
        return f", and has it in {', '.join(folders)}" if folders else ""

    def _sibling(self, route: Route, *, nightly: bool) -> str | None:
        """Return a project of the family that this index does list, asking for it.

        Asked rather than remembered: what was listed before must not depend on the order in which
        the resolver, or its threads, came to the projects.
        """
        for sibling in self._knowledge.siblings(route.project):
            for step in self._router.route(sibling, nightly=nightly).chain:
                if step.index == route.index and self._asker.owned(step, nightly=nightly):
                    found, _ = self._asker.ask_route(step, SpecifierSet(), nightly=nightly)
                    if any(answer.files or answer.unfit for answer in found):
                        return sibling
        return None

    def answers(self, definition: Definition, project: str) -> list[PageAnswer]:
        """Return what every folder of one definition says of a project, and of no other index.

        Its nightly folders are asked too. Raises `IndexAccessError` as `listing` does.
        """
        nightly = bool(definition.nightly)
        route = Route(
            project=project,
            index=definition.name,
            folders=self._router.folders_of(definition, project, nightly=nightly),
            reason="it was asked for",
            recordable=True,
            partner=definition.partner,
        )
        answered, _ = self._asker.ask_route(route, SpecifierSet(), nightly=nightly, mention=False)
        return answered

    # Files

    def direct(self, project: str, url: str, sha256: str | None) -> ListedFile:
        """Return the wheel a URL requirement names; see `parse_direct_file`."""
        return parse_direct_file(project, url, sha256)

    def metadata(self, file: ListedFile) -> CoreMetadata | None:
        """Return what a wheel declares; None when it is unknown.

        A recorded page's file without metadata is unknown: nothing is fetched for it. Else the
        wheel's own METADATA is fetched; only where that cannot be had does a knowledge entry stand
        in, marked assumed. Raises `IndexAccessError` and `WheelError`.
        """
        if file.metadata is not None:
            return file.metadata
        return None if self._pages.recorded(file) else self._files.metadata(file)

    def variants(self, files: Sequence[ListedFile]) -> list[VariantsMetadata | VariantsUnread]:
        """Return what the variant labels of each file's version stand for, asking all at once.

        Raises `IndexAccessError` for the first that got no answer.
        """
        return self._pages.together([partial(self._files.variants, file) for file in files])

    def compute_hash(
        self, file: ListedFile, progress: Callable[[int, int | None], None] | None = None
    ) -> HashedBytes:
        """Return what a file's bytes are, downloading it once; `observing.py` compares the claims."""
        return self._files.compute_hash(file, progress)

    def recall_hash(self, file: ListedFile) -> HashedBytes | None:
        """Return what a file's bytes are, if that is known without downloading it."""
        return self._files.recall_hash(file)

    # What a person is told

    def known_projects(self) -> frozenset[str]:
        """Return every project's name met in data, for near-name suggestions; nothing is asked."""
        return self._cached_projects | known_names(
            self._router.definitions,
            self._recordings.values(),
            self._knowledge,
            self._client.page_addresses(),
        )

    def absent_folders(self) -> tuple[tuple[str, str], ...]:
        """Return (index, folder) of folders that answered "absent" for every project asked."""
        return self._asker.absent_folders()

    @property
    def origin_notes(self) -> tuple[str, ...]:
        """What a person should know about where projects came from, sorted."""
        with self._lock:
            return tuple(sorted(self._notes))
