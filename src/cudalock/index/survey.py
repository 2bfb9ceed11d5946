"""What a publisher serves, project by project: every file it lists for any machine and any CUDA.

A survey asks what a resolve would ask, for each CUDA major that NVIDIA's tables or the publisher's
own list of folders name and from its newest minor down, so the releases a publisher has are what it
answers and no list of ours. What is wrong with the answers is for `doctor.py`, how they are shown for `cli`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass

from packaging.tags import Tag
from packaging.version import Version

from cudalock.cuda import CudaVersion, known_majors
from cudalock.errors import IndexAccessError, WheelError
from cudalock.index.anchors import CutPageError, read_anchors
from cudalock.index.client import Client
from cudalock.index.definitions import Definition
from cudalock.index.failures import TransportError
from cudalock.index.source import IndexSource
from cudalock.index.union import unite
from cudalock.wheel.evidence import label_of
from cudalock.wheel.listing import FileRejection, IndexAnswer, ListedFile
from cudalock.wheel.names import parse_project_name

__all__ = [
    "Cell",
    "ProjectSurvey",
    "Survey",
    "cuda_of",
    "listed_projects",
    "listed_releases",
    "survey_index",
]

_CPYTHON = re.compile(r"cp([1-9])([0-9]{1,3})")
_MACHINES = ("x86_64", "aarch64", "amd64", "arm64")
_SYSTEMS = (
    ("manylinux", "linux"),
    ("linux", "linux"),
    ("musllinux", "musl"),
    ("macosx", "macos"),
    ("win", "win"),
)
_NO_LIST = frozenset({401, 403, 404, 405, 410})
# No CUDA major has had more than ten minors, and a publisher is at most a few ahead of our tables.
_NEWEST_MINOR = 20
_NEW_MAJORS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What there is of a project for one CUDA release: how many files, and the newest version.

    ``pythons`` (``3.12``, ``3.13t``, ``3.10+`` for the stable ABI, ``any``) and ``platforms``
    (``linux-x86_64``) are those of the newest version's files.
    """

    count: int
    newest: Version
    uploaded: str | None = None
    pythons: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSurvey:
    """One project on one index.

    ``files`` hold each URL once, nightly ones beside the others; ``answers`` what each folder said;
    ``error`` why the index could not be read, if so: then nothing is known to be missing. ``silent``
    says that it gave no response at all. ``by_folder`` says that folders tell the CUDA of files
    without a label. ``others`` are files for other machines, where one was asked about.
    """

    project: str
    files: tuple[ListedFile, ...] = ()
    rejections: tuple[FileRejection, ...] = ()
    answers: tuple[IndexAnswer, ...] = ()
    statuses: tuple[str, ...] = ()
    error: str = ""
    silent: bool = False
    by_folder: bool = False
    others: tuple[ListedFile, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every page that was asked for was seen whole, or is known to be absent."""
        return not self.error and all(a.status in ("listed", "absent") for a in self.answers)

    def cells(self) -> dict[CudaVersion | None, Cell]:
        """Return what there is by CUDA release; None stands for files that name none.

        Reads every file; a caller that needs it twice keeps it.
        """
        groups: dict[CudaVersion | None, list[ListedFile]] = {}
        for file in self.files:
            groups.setdefault(cuda_of(file, by_folder=self.by_folder), []).append(file)
        return {cuda: _cell(files) for cuda, files in groups.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A publisher: ``definition`` says what it should have, ``projects`` what it answered.

    ``beside`` are projects that it lists and was not asked for, ``unasked`` CUDA releases likewise.
    ``python`` and ``platform`` say which machine ``files`` are for, None for any.
    """

    definition: Definition
    projects: tuple[ProjectSurvey, ...]
    recorded: bool = False
    beside: frozenset[str] = frozenset()
    unasked: frozenset[CudaVersion] = frozenset()
    python: str | None = None
    platform: str | None = None

    @property
    def releases(self) -> tuple[CudaVersion, ...]:
        """Every CUDA release that some file is for, whatever its machine, ascending."""
        found = {
            cuda_of(file, by_folder=project.by_folder)
            for project in self.projects
            for file in (*project.files, *project.others)
        }
        return tuple(sorted(cuda for cuda in found if cuda is not None))


def cuda_of(file: ListedFile, *, by_folder: bool) -> CudaVersion | None:
    """Return the release a file is for, by its label.

    A file without any label is told by its folder where the publisher says that folders tell it
    (``by_folder``), and by nothing elsewhere: old builds lie in every folder.
    """
    local = file.wheel.version.local
    if local is not None or not by_folder or file.folder is None:
        return label_of(local).cuda
    return label_of(file.folder).cuda


def survey_index(
    definition: Definition,
    *,
    sources: Sequence[IndexSource],
    projects: Iterable[str],
    executor: Executor,
    progress: Callable[[str, int], None] | None = None,
    recorded: bool = False,
) -> Survey:
    """Ask a publisher for ``projects``, by ``sources`` that ask for one CUDA major each.

    Costs one request for each folder and project. An index that cannot be read is an error of its
    project, not of the survey; where the first project gets no response, the others are not asked for.
    """
    names = sorted(set(projects))
    by_folder = "folder" in definition.labels
    found: list[ProjectSurvey] = []
    # One project goes ahead: where nobody answers it is enough to be told so once.
    for batch in (names[:1], names[1:]):
        if found and found[0].silent:
            why = f"not asked for, since {found[0].project} got no response: {found[0].error}"
            found += [ProjectSurvey(project=project, error=why, silent=True) for project in batch]
            break
        waiting = [
            [executor.submit(_ask, source, definition, project) for source in sources]
            for project in batch
        ]
        for project, futures in zip(batch, waiting, strict=True):
            parts = [future.result() for future in futures]
            found.append(_joined(project, parts, by_folder=by_folder))
            if progress is not None:
                progress(project, len(found))
    return Survey(definition=definition, projects=tuple(found), recorded=recorded)


def _ask(source: IndexSource, definition: Definition, project: str) -> ProjectSurvey:
    try:
        answered = source.answers(definition, project)
    except IndexAccessError as error:
        silent = isinstance(error, TransportError)
        return ProjectSurvey(project=project, error=str(error), silent=silent)
    return ProjectSurvey(
        project=project,
        files=tuple(file for answer in answered for file in answer.files),
        rejections=tuple(r for answer in answered for r in answer.rejections),
        answers=tuple(answer.answer for answer in answered),
        statuses=tuple(answer.status for answer in answered if answer.status is not None),
    )


def listed_projects(client: Client, url: str) -> frozenset[str]:
    """Return the projects that the list at a folder's own address names; none if there is no list.

    PEP 503: the root is "an anchor per project". Publishers put variant folders between them, and
    what is no project's name is left out. One request.
    """
    names = set()
    for last in _listed_folders(client, url):
        if label_of(last).cuda is None:
            # A folder that is no project's name, such as `.git/`, is left out.
            with suppress(WheelError):
                names.add(parse_project_name(last))
    return frozenset(names)


def listed_releases(
    client: Client, definition: Definition
) -> tuple[frozenset[CudaVersion], frozenset[CudaVersion]]:
    """Return the CUDA releases of the folders that a publisher's own lists name, where it has any.

    A list need not be whole, so a release that it lacks is asked for all the same: it only adds what
    NVIDIA's tables do not know yet. Names beyond reason come apart, second: every minor from the
    newest down would be asked for. One request a list.
    """
    parents = {
        before
        for template in definition.templates
        for before, placeholder, after in (template.partition("{cuda}"),)
        if placeholder and before.endswith("/") and "{" not in before and after[:1] in ("", "/")
    }
    found = {
        cuda
        for url in sorted(parents)
        for last in _listed_folders(client, url)
        if (cuda := label_of(last).cuda) is not None and cuda.label == last
    }
    new = sorted({cuda.major for cuda in found if cuda.minor <= _NEWEST_MINOR} - {*known_majors()})
    believed = {*known_majors(), *new[:_NEW_MAJORS]}
    asked = {cuda for cuda in found if cuda.major in believed and cuda.minor <= _NEWEST_MINOR}
    return frozenset(asked), frozenset(found - asked)


def _listed_folders(client: Client, url: str) -> list[str]:
    """Return the last part of every link to a folder on a page; none if it is no page."""
    try:
        page = client.fetch_page(f"{url.rstrip('/')}/", absent=_NO_LIST)
        anchors = () if page is None else read_anchors(page.body.decode("utf-8", "replace")).anchors
    except (IndexAccessError, CutPageError):
        return []
    links = [attributes.get("href", "").partition("#")[0] for attributes, _ in anchors]
    links = [link.partition("?")[0] for link in links]
    return [link.rstrip("/").rpartition("/")[2] for link in links if link.endswith("/")]


def _joined(project: str, parts: Sequence[ProjectSurvey], *, by_folder: bool) -> ProjectSurvey:
    return ProjectSurvey(
        project=project,
        files=unite(file for part in parts for file in part.files),
        rejections=tuple(dict.fromkeys(r for part in parts for r in part.rejections)),
        answers=tuple(dict.fromkeys(a for part in parts for a in part.answers)),
        statuses=tuple(dict.fromkeys(s for part in parts for s in part.statuses)),
        error=next((part.error for part in parts if part.error), ""),
        silent=bool(parts) and all(part.silent for part in parts),
        by_folder=by_folder,
    )


def _cell(files: Sequence[ListedFile]) -> Cell:
    versions = [Version(file.wheel.version.public) for file in files]
    newest = max(versions)
    those = [file for file, version in zip(files, versions, strict=True) if version == newest]
    tags = {tag for file in those for tag in file.wheel.tags}
    times = [file.upload_time for file in those if file.upload_time is not None]
    return Cell(
        count=len(files),
        newest=newest,
        uploaded=max(times, default=None),
        pythons=tuple(sorted({_python(tag) for tag in tags}, key=_python_order)),
        platforms=tuple(sorted({_platform(tag) for tag in tags})),
    )


def _python(tag: Tag) -> str:
    """Name the Python of a tag: ``3.12``, ``3.13t``, ``3.10+`` for the stable ABI, ``any``."""
    found = _CPYTHON.fullmatch(tag.interpreter)
    if found is None:
        return "any" if tag.interpreter.startswith("py") else tag.interpreter
    version = f"{found[1]}.{found[2]}"
    if tag.abi == "abi3":
        return f"{version}+"
    return f"{version}t" if tag.abi.endswith("t") else version


def _python_order(text: str) -> tuple[int, int, str]:
    major, _, minor = text.rstrip("t+").partition(".")
    return (int(major), int(minor), text) if minor.isdecimal() else (0, 0, text)


def _platform(tag: Tag) -> str:
    """Name the platform of a tag as ``--platform`` does, where that knows it."""
    machine = next((m for m in _MACHINES if tag.platform.endswith(f"_{m}")), None)
    system = next((name for lead, name in _SYSTEMS if tag.platform.startswith(lead)), None)
    return tag.platform if machine is None or system is None else f"{system}-{machine}"
