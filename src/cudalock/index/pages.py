"""Project pages, asked for once each: live ones through the client, recorded ones from their file.

Which pages to ask for is decided in `routing.py`, how a page is written is known to `simple.py`,
HTTP is left to `client.py`. Here the two kinds of answers become one, `PageAnswer`, and an index that
cannot be read becomes an error that names the flag which leaves it out.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Literal, TypeVar

from cudalock.errors import IndexAccessError
from cudalock.index.address import shown_url
from cudalock.index.client import Client
from cudalock.index.failures import OfflineError
from cudalock.index.find_links import (
    FIND_LINKS_INDEX,
    WheelDirectory,
    probable_project,
    read_wheel_directory,
)
from cudalock.index.recorded import Recording
from cudalock.index.routes import DEFAULT_INDEX, FolderRequest, Route
from cudalock.memo import Memo
from cudalock.wheel.listing import FileRejection, IndexAnswer, ListedFile
from cudalock.wheel.tag_filter import TagFilter

__all__ = ["PageAnswer", "PageReader"]

_THREADS = 16
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAnswer:
    """What one page said about one project; ``status`` is its sentence on the project as a whole."""

    files: tuple[ListedFile, ...]
    rejections: tuple[FileRejection, ...]
    answer: IndexAnswer
    unfit: tuple[str, ...] = ()
    status: str | None = None

    @property
    def absent(self) -> bool:
        """Whether the index said that it does not have the page."""
        return self.answer.status == "absent"


class PageReader:
    """Reads pages of any index. Thread-safe; each page is read once for the life of the reader."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._answers: Memo[tuple[str, str, str, bool, TagFilter | str | None], PageAnswer] = Memo()
        self._directories: Memo[Path, WheelDirectory] = Memo()
        self._lock = Lock()
        self._recorded: set[tuple[str, str]] = set()
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """End the threads; a later request starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def ask(
        self,
        route: Route,
        folders: Sequence[FolderRequest],
        recording: Recording | None,
        fit: TagFilter | None = None,
    ) -> list[PageAnswer]:
        """Ask ``folders`` of one index, at the same time; the answers keep their order.

        With a ``recording`` nothing is asked of the network. With a ``fit``, wheels whose tags it
        turns away are only named. Raises `IndexAccessError` for the
        first folder, in that order, that gave no usable answer.
        """
        if recording is not None:
            return [self._recorded_page(route, folder, recording) for folder in folders]
        return self.together([partial(self._live_page, route, folder, fit) for folder in folders])

    def together(self, questions: Sequence[Callable[[], _Answer]]) -> list[_Answer]:
        """Ask questions that wait for the network only, at the same time; answers keep the order."""
        if len(questions) < 2:
            return [question() for question in questions]
        pool = self._executor()
        waiting = [pool.submit(question) for question in questions]
        return [future.result() for future in waiting]

    def find_links(self, where: str | Path, project: str) -> PageAnswer | None:
        """Return what ``--find-links`` adds to a project; nothing found is no answer."""
        if isinstance(where, Path):
            directory = self._directories.get(where, lambda: read_wheel_directory(where))
            url = directory.url
            files = directory.files.get(project, ())
            rejections = directory.rejections.get(project, ())
        else:
            url = shown_url(where)
            # Nothing means "absent" here: a page the person named must be there.
            page = FolderRequest(url=where, index_url=url, absent=frozenset(), flat=True)
            answer = self._answers.get(
                (where, project, FIND_LINKS_INDEX, False, None),
                lambda: self._fetched(project, FIND_LINKS_INDEX, page, flag="--find-links"),
            )
            files, rejections = answer.files, answer.rejections
        if not files and not rejections:
            return None
        return PageAnswer(
            files=files,
            rejections=rejections,
            answer=IndexAnswer(index=FIND_LINKS_INDEX, url=url, folder=None, status="listed"),
        )

    def recorded(self, file: ListedFile) -> bool:
        """Whether ``file`` was listed by a recording that this reader asked."""
        with self._lock:
            return (file.index, file.url) in self._recorded

    def _executor(self) -> ThreadPoolExecutor:
        # Only page requests run in it, which wait for nothing but the network, so a caller that
        # runs in a pool of its own cannot starve it.
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="cudalock-index")
            return self._pool

    def _recorded_page(
        self, route: Route, folder: FolderRequest, recording: Recording
    ) -> PageAnswer:
        key = (folder.url, route.project, route.index, folder.nightly, "recorded")
        found = self._answers.get(key, lambda: _read_recording(route, folder, recording))
        with self._lock:
            self._recorded.update((file.index, file.url) for file in found.files)
        return found

    def _live_page(self, route: Route, folder: FolderRequest, fit: TagFilter | None) -> PageAnswer:
        flag = f"--exclude-index {route.index}"
        if route.index == DEFAULT_INDEX:
            flag = "--default-index URL"
        key = (folder.url, route.project, route.index, folder.nightly, fit)
        return self._answers.get(
            key, lambda: self._fetched(route.project, route.index, folder, flag=flag, fit=fit)
        )

    def _fetched(
        self,
        project: str,
        index: str,
        folder: FolderRequest,
        *,
        flag: str,
        fit: TagFilter | None = None,
    ) -> PageAnswer:
        # A run that reads no page does not pay for the parser.
        from cudalock.index.simple import PageContext, parse_page  # noqa: PLC0415 - as said above

        files: tuple[ListedFile, ...] = ()
        rejections: tuple[FileRejection, ...] = ()
        unfit: tuple[str, ...] = ()
        told: str | None = None
        try:
            page = self._client.fetch_page(folder.url, absent=folder.absent)
            if page is not None:
                context = PageContext(
                    index=index,
                    index_url=folder.index_url,
                    folder=folder.folder,
                    nightly=folder.nightly,
                    fit=fit,
                )
                parsed = parse_page(
                    page.body,
                    content_type=page.content_type,
                    url=page.url,
                    project=project,
                    context=context,
                )
                files, rejections, unfit = parsed.files, parsed.rejections, parsed.unfit
                told = parsed.status
        except IndexAccessError as error:
            # The client knows addresses, not the flags that choose among indexes.
            offline = isinstance(error, OfflineError) and index == DEFAULT_INDEX
            error.flag = "--offline" if offline else flag
            raise
        if folder.flat:
            # A flat page lists every project of its publisher, and links that are no wheel's: only
            # what is wrong with this project's files is this project's business.
            rejections = tuple(
                rejection
                for rejection in rejections
                if probable_project(rejection.filename) == project
            )
        seen = bool(files or rejections or unfit)
        status = _flat_status(folder, seen=seen) if page is not None else "absent"
        return PageAnswer(
            files=files,
            rejections=rejections,
            unfit=unfit,
            status=told,
            answer=IndexAnswer(
                index=index, url=shown_url(folder.url), folder=folder.shown_folder, status=status
            ),
        )


def _flat_status(folder: FolderRequest, *, seen: bool) -> Literal["listed", "absent"]:
    # A flat page without one file of the project says that the publisher does not have it.
    return "absent" if folder.flat and not seen else "listed"


def _read_recording(route: Route, folder: FolderRequest, recording: Recording) -> PageAnswer:
    files, rejections, answer = recording.listing(folder.url, route.project)
    # A folder that is not in the recording's list has no name there; the request knows it.
    return PageAnswer(
        files=files, rejections=rejections, answer=replace(answer, folder=folder.shown_folder)
    )
