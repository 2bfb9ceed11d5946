"""Recorded pages of CUDA indices: `indices/recorded/NAME/`, read without the network.

`publisher.json` lists the publisher's folders and says which are recorded; one JSON file a folder
holds its pages. ``python -m scripts.record_indices`` writes both. A recording answers for the real
address, so a lock made from it names that address, and it never claims more than it holds:

``listed``      the whole page is recorded
``partial``     some of the page is: what is missing proves nothing
``absent``      the publisher does not have the folder, or the folder does not have the project
``unrecorded``  the publisher has it, or may have it, and the recording does not

A folder's file is read when its first page is asked for. Asking without being told to is left to
`routing.py`, which never does.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.version import Version

from cudalock.errors import IndexAccessError, WheelError
from cudalock.index.locate import DataFileError, read_data_file
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import FileRejection, IndexAnswer, ListedFile
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.names import (
    parse_extra,
    parse_requirement,
    parse_specifiers,
)

__all__ = ["Recording", "load_recording"]

_SCHEMA = 1
_HEX = frozenset("0123456789abcdef")
_FILE_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class _Parent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    complete: bool
    source: str


class _Folder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    folder: str | None
    nightly: bool
    projects: tuple[str, ...] | None = None
    file: str | None = None


class _Publisher(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    definition: str
    parents: tuple[_Parent, ...]
    folders: tuple[_Folder, ...]


class _Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    assumed: bool
    requires_dist: tuple[str, ...]
    requires_python: str | None = None
    provides_extra: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    sha256: tuple[str, ...] = ()
    size: int | None = None
    requires_python: str | None = None
    upload_time: str | None = None
    core_metadata: str | None = None
    metadata: Annotated[int, msgspec.Meta(ge=0)] | None = None


class _Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: str
    complete: bool
    sources: tuple[str, ...]
    files: tuple[_File, ...]


class _FolderFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    url: str
    metadata: tuple[_Metadata, ...]
    pages: tuple[_Page, ...]


_Table = TypeVar("_Table", _Publisher, _FolderFile)
_Listing = tuple[tuple[ListedFile, ...], tuple[FileRejection, ...], IndexAnswer]


def _read(path: Path, table: type[_Table]) -> _Table:
    try:
        found = msgspec.json.decode(read_data_file(path), type=table)
    except DataFileError as error:
        raise IndexAccessError(error.message, where=str(path)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IndexAccessError(f"expected a recording: {error}", where=str(path)) from error
    if found.schema != _SCHEMA:
        raise IndexAccessError(
            f"expected a recording of schema {_SCHEMA}, found {found.schema}", where=str(path)
        )
    return found


def load_recording(directory: Path, definition_name: str) -> "Recording | None":
    """Return the recording of one definition from the ``recorded`` folder, None without one.

    Reads only `publisher.json`; raises `IndexAccessError` when that is not a recording.
    """
    path = directory / definition_name / "publisher.json"
    if not path.is_file():
        return None
    publisher = _read(path, _Publisher)
    if publisher.definition != definition_name:
        raise IndexAccessError(
            f"expected the recording of `{definition_name}`, found `{publisher.definition}`",
            where=str(path),
        )
    return Recording(
        name=definition_name,
        _directory=path.parent,
        _folders={folder.url.rstrip("/"): folder for folder in publisher.folders},
        _parents={parent.url.rstrip("/"): parent for parent in publisher.parents},
    )


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What was recorded of one publisher. Folders read once are kept; safe to share by threads."""

    name: str
    _directory: Path
    _folders: dict[str, _Folder]
    _parents: dict[str, _Parent]
    _read_files: dict[str, _FolderFile] = field(default_factory=dict)

    @property
    def folder_names(self) -> tuple[str, ...]:
        """The names of the publisher's variant folders (``cu130``), sorted."""
        return tuple(sorted({f.folder for f in self._folders.values() if f.folder is not None}))

    @property
    def project_names(self) -> frozenset[str]:
        """Every project that a folder is known to hold; reads the folders not read yet."""
        names: set[str] = set()
        for folder in self._folders.values():
            names.update(folder.projects or ())
            if folder.file is not None:
                names.update(page.project for page in self._folder_file(folder).pages)
        return frozenset(names)

    def folders_with(self, project: str) -> tuple[str, ...]:
        """Return the variant folders whose own list names a project, sorted; reads no page."""
        found = {
            f"nightly/{folder.folder}" if folder.nightly else folder.folder
            for folder in self._folders.values()
            if folder.folder is not None and project in (folder.projects or ())
        }
        return tuple(sorted(found))

    def listing(self, url: str, project: str) -> _Listing:
        """Return files, rejections and the answer for one page.

        ``url`` is the address of the folder, or of the project's page in it, with or without a
        slash at its end; ``project`` is normalised. Files keep the order of the page. Raises
        `IndexAccessError` when the folder's file is broken. A file without metadata is one of
        which it is not known what it declares.
        """
        address = url.rstrip("/")
        if address not in self._folders and address.endswith(f"/{project}"):
            address = address.removesuffix(f"/{project}")
        folder = self._folders.get(address)
        if folder is None:
            # A folder that the publisher's own list does not have is absent.
            parent = self._parents.get(address.rpartition("/")[0])
            absent = parent is not None and parent.complete
            source = "" if parent is None else f"the list of folders in {parent.source}"
            name = None if parent is None else address.rpartition("/")[2]
            return (), (), self._answer(address, name, "absent" if absent else "unrecorded", source)
        if folder.projects is not None and project not in folder.projects:
            return (), (), self._answer(address, folder.folder, "absent", "the folder's own list")
        recorded = None if folder.file is None else self._folder_file(folder)
        pages = () if recorded is None else recorded.pages
        page = next((page for page in pages if page.project == project), None)
        if recorded is None or page is None:
            return (), (), self._answer(address, folder.folder, "unrecorded", "")
        status: Literal["listed", "partial"] = "listed" if page.complete else "partial"
        files, rejections = _read_page(page, recorded.metadata, self.name, folder)
        more = f" and {len(page.sources) - 1} more" if len(page.sources) > 1 else ""
        source = f"recorded from {page.sources[0]}{more}" if page.sources else "recorded"
        return files, rejections, self._answer(address, folder.folder, status, source)

    def _answer(
        self,
        url: str,
        folder: str | None,
        status: Literal["listed", "absent", "partial", "unrecorded"],
        source: str,
    ) -> IndexAnswer:
        return IndexAnswer(index=self.name, url=url, folder=folder, status=status, source=source)

    def _folder_file(self, folder: _Folder) -> _FolderFile:
        name = folder.file or ""
        found = self._read_files.get(name)
        if found is None:
            path = self._directory / name
            if not _FILE_NAME.issuperset(name) or name.startswith("."):
                raise IndexAccessError(f"expected a file name, found `{name}`", where=str(path))
            found = _read(path, _FolderFile)
            if found.url.rstrip("/") != folder.url.rstrip("/"):
                raise IndexAccessError(
                    f"expected the recording of {folder.url}, found {found.url}", where=str(path)
                )
            self._read_files[name] = found
        return found


def _read_page(
    page: _Page, metadata: tuple[_Metadata, ...], index: str, folder: _Folder
) -> tuple[tuple[ListedFile, ...], tuple[FileRejection, ...]]:
    files: list[ListedFile] = []
    rejections: list[FileRejection] = []
    for item in page.files:
        filename = unquote(urlsplit(item.url).path.rpartition("/")[2])
        try:
            found = _read_file(
                item,
                filename,
                project=page.project,
                metadata=metadata,
                index=index,
                folder=folder,
            )
        except WheelError as error:
            found = ("bad-name", error.message)
        if isinstance(found, ListedFile):
            files.append(found)
        else:
            kind, reason = found
            where = f"{folder.url}/{page.project}"
            rejections.append(
                FileRejection(filename=filename, kind=kind, reason=reason, where=where)
            )
    return tuple(files), tuple(rejections)


def _read_file(
    item: _File,
    filename: str,
    *,
    project: str,
    metadata: tuple[_Metadata, ...],
    index: str,
    folder: _Folder,
) -> ListedFile | tuple[str, str]:
    """Return one file, or the kind and the reason of its rejection."""
    wheel = parse_wheel_file(filename)
    if wheel.project != project:
        return "other-project", f"expected a wheel of {project}, found one of {wheel.project}"
    if not all(len(text) == 64 and _HEX.issuperset(text) for text in item.sha256):
        return "bad-hash", "expected sha256 hashes of 64 hexadecimal digits"
    core = None
    if item.metadata is not None:
        if item.metadata >= len(metadata):
            return "bad-metadata", f"expected metadata {item.metadata}, found {len(metadata)} of it"
        core = _core_metadata(project, wheel.version, metadata[item.metadata])
    return ListedFile(
        wheel=wheel,
        url=item.url,
        index=index,
        index_url=folder.url,
        folder=folder.folder,
        sha256=tuple(dict.fromkeys(item.sha256)),
        size=item.size,
        requires_python=item.requires_python,
        core_metadata=item.core_metadata,
        upload_time=item.upload_time,
        metadata=core,
        nightly=folder.nightly,
    )


def _core_metadata(project: str, version: Version, record: _Metadata) -> CoreMetadata:
    python = record.requires_python
    return CoreMetadata(
        project=project,
        version=version,
        requires_dist=tuple(parse_requirement(text) for text in record.requires_dist),
        requires_python=parse_specifiers(python) if python else None,
        provides_extra=frozenset(parse_extra(text) for text in record.provides_extra),
        source=record.source,
        assumed=record.assumed,
    )
