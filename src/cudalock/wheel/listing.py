"""A wheel file as an index lists it, and what the asked indices answered for a project.

These values are how `index/` hands pages to `resolver/`: neither imports the other.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from cudalock.wheel.filename import WheelFile
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.variants import VariantsLink, VariantsMetadata

__all__ = [
    "DEFAULT_INDEX",
    "FileRejection",
    "HashAside",
    "IndexAnswer",
    "ListedFile",
    "ProjectListing",
]


DEFAULT_INDEX = "default"
"""The name that files and answers of the default index carry."""


class HashAside(NamedTuple):
    """A sha256 that an index gives for a file and that does not count, and why (``it is …``)."""

    sha256: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """One wheel on one index.

    ``index`` is the name of the definition (or the default index's name), ``index_url`` the
    address a lock records, ``folder`` the variant folder it was listed in (``cu130``) if any.
    ``sha256`` holds every distinct hash the index claims for this URL, in the order listed: none,
    one, or several; ``aside`` those that do not count. ``mirrors`` are further addresses of the same
    file on sibling hosts of the publisher.
    ``core_metadata`` is None when the page says nothing about a sidecar, True when it has one, or
    the sha256 of the sidecar. ``metadata`` is set where a recorded page carries it.
    ``variants_link`` is where the page says that the metadata of the version's variants is, ``variants``
    what was read there.
    """

    wheel: WheelFile
    url: str
    index: str
    index_url: str
    folder: str | None = None
    sha256: tuple[str, ...] = ()
    aside: tuple[HashAside, ...] = ()
    mirrors: tuple[str, ...] = ()
    size: int | None = None
    requires_python: str | None = None
    yanked: str | bool = False
    core_metadata: str | bool | None = None
    upload_time: str | None = None
    metadata: CoreMetadata | None = field(default=None, compare=False)
    nightly: bool = False
    variants_link: VariantsLink | None = field(default=None, compare=False)
    variants: VariantsMetadata | None = field(default=None, compare=False)

    @property
    def filename(self) -> str:
        """The wheel's file name."""
        return self.wheel.filename


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRejection:
    """A file ruled out while a page was read.

    ``kind`` groups rejections for a person: ``not-a-wheel``, ``bad-name``, ``bad-hash``,
    ``other-project``, ``bad-url``, ``quarantined`` … ``reason`` says what was found; ``where`` is the page's URL
    with the anchor's text.
    """

    filename: str
    kind: str
    reason: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAnswer:
    """What one folder of one index answered for a project.

    ``listed`` (files, perhaps none that fit), ``absent`` (the index said so), ``partial`` (a
    recording that does not hold the whole page), ``unrecorded`` (the publisher has the folder, the
    recording does not). Only the first two support a conclusion.
    """

    index: str
    url: str
    folder: str | None
    status: Literal["listed", "absent", "partial", "unrecorded"]
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectListing:
    """Every file the indices responsible for a project list, in no particular order.

    ``unfit`` are the file names of wheels whose tags the target cannot accept, not read any further
    (a `TagFilter` was given). ``answers`` says what each asked folder answered; ``notes`` is for a person (a shadow copy on
    another index, a crossing to the default index); ``statuses`` is what indices say of the project
    as a whole (archived, deprecated). ``elsewhere`` are files that another index lists and that were
    read anyway: never candidates.
    """

    project: str
    files: tuple[ListedFile, ...] = ()
    unfit: tuple[str, ...] = ()
    rejections: tuple[FileRejection, ...] = ()
    answers: tuple[IndexAnswer, ...] = ()
    notes: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    elsewhere: tuple[ListedFile, ...] = ()

    @property
    def absent(self) -> bool:
        """Whether every asked index said that it does not have the project."""
        return bool(self.answers) and all(a.status == "absent" for a in self.answers)
