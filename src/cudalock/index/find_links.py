"""Wheels the person points at: ``--find-links URL|DIR`` and URL requirements.

A directory is read here; a flat page is fetched and parsed like any other page. Only the person's
own words may name a ``file:`` address: a page that does is refused where pages are parsed. Wheels on
this disk are read for METADATA and hashes without a network.
"""

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cudalock.errors import IndexAccessError, UsageError, WheelError
from cudalock.index.address import shown_url
from cudalock.index.claims import RejectedError
from cudalock.index.variants_links import VARIANTS_SUFFIX, VariantsLinks
from cudalock.index.zip_tail import read_metadata_member
from cudalock.wheel.file_hash import HashedBytes
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import FileRejection, ListedFile
from cudalock.wheel.metadata import CoreMetadata, parse_core_metadata
from cudalock.wheel.names import format_quoted, parse_project_name

__all__ = [
    "DIRECT_INDEX",
    "FIND_LINKS_INDEX",
    "WheelDirectory",
    "hash_local_file",
    "local_path",
    "parse_direct_file",
    "parse_find_links",
    "probable_project",
    "read_local_metadata",
    "read_wheel_directory",
]

FIND_LINKS_INDEX = "find-links"
DIRECT_INDEX = "direct"
_ENTRIES_LIMIT = 100_000
_CHUNK = 1024 * 1024
_TAIL = 64 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelDirectory:
    """The wheels of one directory by project, and the names there that are not a wheel's."""

    url: str
    files: dict[str, tuple[ListedFile, ...]]
    rejections: dict[str, tuple[FileRejection, ...]]


def local_path(url: str) -> Path | None:
    """Return the path a ``file:`` address names on this machine, None for any other address."""
    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    # It brings an HTTP client along, which a run without file addresses need not load.
    from urllib.request import url2pathname  # noqa: PLC0415 - as said above

    if parts.netloc not in ("", "localhost"):
        raise UsageError("expected a file address of this machine", where=shown_url(url))
    return Path(url2pathname(parts.path))


def parse_find_links(text: str) -> str | Path:
    """Parse ``--find-links URL|DIR``: an http(s) address as it is, or an existing directory."""
    scheme = text.partition(":")[0].lower()
    if scheme in ("http", "https"):
        return text
    path = local_path(text) if scheme == "file" else Path(text)
    if path is None or not text or "\0" in text or not path.is_dir():
        raise UsageError(
            f"expected a URL or a directory that exists, found {format_quoted(text)}",
            where="--find-links",
        )
    return path


def read_wheel_directory(path: Path) -> WheelDirectory:
    """List the wheels of a directory (not below it), sorted by name; hashes are not computed.

    Raises `IndexAccessError` for a directory that cannot be read or has over 100,000 entries.
    """
    url = path.resolve().as_uri() + "/"
    try:
        with os.scandir(path) as entries:
            names: list[tuple[str, int]] = []
            for count, entry in enumerate(entries):
                if count >= _ENTRIES_LIMIT:
                    raise IndexAccessError(
                        f"expected at most {_ENTRIES_LIMIT} entries in a directory of wheels",
                        where=str(path),
                        flag="--find-links",
                    )
                if entry.name.endswith((".whl", VARIANTS_SUFFIX)) and entry.is_file():
                    names.append((entry.name, entry.stat().st_size))
    except OSError as error:
        raise IndexAccessError(
            f"expected a directory of wheels: {error.strerror}",
            where=str(path),
            flag="--find-links",
        ) from error
    files: dict[str, list[ListedFile]] = {}
    rejections: dict[str, list[FileRejection]] = {}
    variants = VariantsLinks()
    for name, _ in names:
        if name.endswith(VARIANTS_SUFFIX):
            with suppress(RejectedError):
                # A JSON file of another kind may well lie beside wheels.
                variants.note(name, (path.resolve() / name).as_uri(), {}, None)
    for name, size in sorted(names):
        if name.endswith(VARIANTS_SUFFIX):
            continue
        try:
            wheel = parse_wheel_file(name)
        except WheelError as error:
            project = probable_project(name)
            rejections.setdefault(project, []).append(
                FileRejection(
                    filename=name,
                    kind="bad-name",
                    reason=error.message,
                    where=f"{path}: {format_quoted(name)}",
                )
            )
            continue
        files.setdefault(wheel.project, []).append(
            ListedFile(
                wheel=wheel,
                url=(path.resolve() / name).as_uri(),
                index=FIND_LINKS_INDEX,
                index_url=url,
                size=size,
                variants_link=variants.of(wheel),
            )
        )
    return WheelDirectory(
        url=url,
        files={project: tuple(found) for project, found in files.items()},
        rejections={project: tuple(found) for project, found in rejections.items()},
    )


def probable_project(filename: str) -> str:
    """Return the project a broken file name seems to be of, "" when not even that can be told."""
    try:
        return parse_project_name(filename.partition("-")[0].removesuffix(".whl"))
    except WheelError:
        return ""


def parse_direct_file(project: str, url: str, sha256: str | None) -> ListedFile:
    """Return the wheel a requirement ``project @ url`` names; nothing is fetched.

    The file name is the last segment of the URL's path, decoded exactly once (``%252e`` stays
    ``%2e``). A ``#sha256=`` fragment counts when ``sha256`` is not given. ``index_url`` is empty:
    the file comes from no index. Raises `WheelError` naming the URL for anything but a wheel of
    ``project``, `UsageError` for a malformed hash or scheme.
    """
    where = shown_url(url)
    try:
        parts = urlsplit(url)
        scheme, usable = parts.scheme, bool(parts.hostname) or parts.scheme == "file"
    except ValueError as error:
        raise UsageError("expected a URL", where=where) from error
    if scheme not in ("http", "https", "file") or not usable:
        raise UsageError("expected an http, https or file address", where=where)
    hashes = dict(part.partition("=")[::2] for part in parts.fragment.split("&"))
    found = sha256 or hashes.get("sha256")
    if found is not None and not _SHA256.match(found.lower()):
        raise UsageError(
            f"expected a sha256 of 64 hexadecimal digits, found {format_quoted(found)}",
            where=where,
        )
    if sha256 is not None and hashes.get("sha256", sha256).lower() != sha256.lower():
        raise UsageError("expected one sha256, found two that differ", where=where)
    filename = unquote(parts.path.rpartition("/")[2])
    try:
        wheel = parse_wheel_file(filename)
    except WheelError as error:
        raise WheelError(error.message, where=where) from error
    if wheel.project != project:
        raise WheelError(
            f"expected a wheel of {project}, found one of {wheel.project}", where=where
        )
    return ListedFile(
        wheel=wheel,
        url=parts._replace(fragment="").geturl(),
        index=DIRECT_INDEX,
        index_url="",
        sha256=() if found is None else (found.lower(),),
    )


def read_local_metadata(path: Path) -> CoreMetadata:
    """Read METADATA of a wheel on this disk, as strictly as one that is fetched.

    Raises `WheelError` naming the file for one that is no wheel or contradicts its own name; a local
    version label that only the name has is taken from there. `IndexAccessError` when it cannot be
    read at all.
    """
    where = str(path)

    def read(start: int, end: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    try:
        total = path.stat().st_size
        tail = read(max(0, total - _TAIL), total)
        data = read_metadata_member(tail, total=total, fetch=read, where=where)
    except OSError as error:
        raise IndexAccessError(f"expected a wheel: {error.strerror}", where=where) from error
    metadata = parse_core_metadata(data, where=where)
    wheel = parse_wheel_file(path.name)
    if metadata.project != wheel.project or metadata.version.public != wheel.version.public:
        raise WheelError(
            f"expected METADATA of {wheel.project} {wheel.version},"
            f" found that of {metadata.project} {metadata.version}",
            where=where,
        )
    return replace(metadata, version=wheel.version, source="METADATA in the wheel")


def hash_local_file(path: Path) -> HashedBytes:
    """Hash a file on this disk; raise `IndexAccessError` when it cannot be read."""
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise IndexAccessError(
            f"expected a wheel to hash: {error.strerror}", where=str(path)
        ) from error
    return HashedBytes(digest.hexdigest(), size)
