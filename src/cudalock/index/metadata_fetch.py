"""METADATA of a wheel on an index, by the cheapest way that is safe (PEP 658, PEP 714, RFC 9110 ranges).

A sidecar where the page claims one, else the end of the wheel, which holds the zip directory and, in
nearly every wheel, METADATA: 64 KiB, or a 400th of a wheel that the page says is large (measured on
torch 2.9.1 of 900 MB and vllm 0.21.0 of 248 MB, whose directories with RECORD take 1.7 and 0.5 MB). A server is never asked with HEAD, and never for a sidecar that nobody
claimed. What is read must be about the file it came from.
"""

import hashlib
from dataclasses import replace

from cudalock.errors import WheelError
from cudalock.index.address import shown_url
from cudalock.index.client import Client
from cudalock.index.failures import BodyError
from cudalock.index.zip_tail import read_metadata_member
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.metadata import METADATA_LIMIT, CoreMetadata, parse_core_metadata

__all__ = ["fetch_metadata"]

_SUFFIX = 64 * 1024
_LONGEST_SUFFIX = 4 * 1024 * 1024
# A claimed sidecar that is not there: the publisher's fault, and no reason to stop.
_NO_SIDECAR = frozenset({401, 403, 404, 410})
_FOR_EVER = 10 * 365 * 24 * 3600.0
# Under a URL alone a file may be replaced, which publishers of nightlies do.
_BY_URL_SECONDS = 7 * 24 * 3600.0


def fetch_metadata(client: Client, file: ListedFile) -> CoreMetadata:
    """Return what a wheel declares; at most one request for a sidecar and three for ranges.

    What a recorded page carries is returned as it is. Raises `IndexAccessError` when the wheel cannot
    be reached and `WheelError` naming its URL when it contradicts itself: METADATA of another project or
    another public version. A local version label that only the file name has (a known way of
    repackaging) is taken from there, and ``source`` says so.
    """
    if file.metadata is not None:
        return file.metadata
    claimed = file.core_metadata if isinstance(file.core_metadata, str) else None
    sidecar_key = None if claimed is None else f"metadata sha256={claimed}"
    for key in (sidecar_key, _file_key(file)):
        kept = None if key is None else client.load_kept(key)
        if kept is not None:
            words, _, content = kept.partition(b"\n")
            return _parse(file, content, words.decode("utf-8", "replace"))
    data = _fetch_sidecar(client, file, claimed) if file.core_metadata else None
    if data is not None:
        metadata = _keep(client, file, data, "METADATA sidecar", sidecar_key)
    else:
        data = _fetch_by_range(client, file)
        metadata = _keep(client, file, data, "METADATA in the wheel", None)
    return metadata


def _file_key(file: ListedFile) -> str:
    # The address is part of it: a hash is only claimed here, and another index that claims the same
    # one must not get to say what this file declares.
    return f"metadata of {file.url} sha256={file.sha256[0] if len(file.sha256) == 1 else None}"


def _keep(
    client: Client, file: ListedFile, data: bytes, place: str, sidecar_key: str | None
) -> CoreMetadata:
    """Parse, and keep what parses: for ever under a hash, for a week under an address."""
    metadata = _parse(file, data, place)
    hashed = sidecar_key is not None or len(file.sha256) == 1
    client.keep(
        sidecar_key or _file_key(file),
        place.encode() + b"\n" + data,
        seconds=_FOR_EVER if hashed else _BY_URL_SECONDS,
    )
    return metadata


def _fetch_sidecar(client: Client, file: ListedFile, claimed: str | None) -> bytes | None:
    """Return the sidecar, None for one that is missing or is not the one the page claims."""
    address, mark, query = file.url.partition("?")
    data = client.fetch_whole(
        f"{address}.metadata{mark}{query}", limit=METADATA_LIMIT, absent=_NO_SIDECAR
    )
    if data is None or claimed is None:
        return data
    return data if hashlib.sha256(data).hexdigest() == claimed else None


def _fetch_by_range(client: Client, file: ListedFile) -> bytes:
    suffix = min(max(_SUFFIX, (file.size or 0) // 400), _LONGEST_SUFFIX)
    tail = client.fetch_range_suffix(file.url, suffix)
    etag, total = tail.etag, tail.total

    def fetch(start: int, end: int) -> bytes:
        part = client.fetch_range(file.url, start, end, etag=etag)
        if part.total != total or (etag is not None and part.etag not in (None, etag)):
            raise BodyError(
                f"expected the file of {total} bytes, found that it changed while it was read",
                where=shown_url(file.url),
            )
        return part.data[start - part.start : end - part.start]

    return read_metadata_member(tail.data, total=total, fetch=fetch, where=shown_url(file.url))


def _parse(file: ListedFile, data: bytes, place: str) -> CoreMetadata:
    where = shown_url(file.url)
    metadata = parse_core_metadata(data, where=where)
    wheel = file.wheel
    if metadata.project != wheel.project:
        raise WheelError(
            f"expected METADATA of {wheel.project}, found that of {metadata.project}", where=where
        )
    if metadata.version == wheel.version:
        return replace(metadata, source=place)
    if metadata.version.public != wheel.version.public:
        raise WheelError(
            f"expected METADATA of version {wheel.version}, found {metadata.version}", where=where
        )
    # sgl-project/sglang#14327: wheels that were renamed to +cu130 and say 0.4.0 inside.
    return replace(
        metadata,
        version=wheel.version,
        source=f"{place} (it says {metadata.version}, the file name {wheel.version})",
    )
