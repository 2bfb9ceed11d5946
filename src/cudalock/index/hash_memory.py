"""Hashes that were computed from bytes, remembered so that no file is downloaded twice.

A memory is of an address and of what the page said of the file (its claims, its sidecar, its size
and time): a page that says something else means other bytes. The server is asked too, where it gave a
strong validator; one request without a body. Where neither tells bytes apart, a memory
is good for a week, as for METADATA. ``--offline`` takes what there is.
"""

import json
import re
from collections.abc import Callable

from cudalock.errors import IndexAccessError
from cudalock.index.client import Client
from cudalock.wheel.file_hash import HashedBytes
from cudalock.wheel.listing import ListedFile

__all__ = ["HashMemory"]

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_FOR_EVER = 10 * 365 * 24 * 3600.0
_BY_URL_SECONDS = 7 * 24 * 3600.0


class HashMemory:
    """Hashes files of indexes by way of a client and its cache. Thread-safe."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def recall(self, file: ListedFile) -> HashedBytes | None:
        """Return what was computed before and still holds; never downloads the file."""
        kept = self._client.load_kept(_key(file))
        if kept is None:
            return None
        try:
            hashed, etag = _parse(kept)
        except (ValueError, RecursionError):
            # Another version of this program kept something else there.
            return None
        if etag is None or self._client.offline:
            return hashed
        try:
            return hashed if self._client.is_unchanged(file.url, etag) else None
        except IndexAccessError:
            # Whether it still holds cannot be told.
            return None

    def compute(
        self, file: ListedFile, progress: Callable[[int, int | None], None] | None = None
    ) -> HashedBytes:
        """Return what is remembered, else download the file, hash it and remember."""
        known = self.recall(file)
        if known is not None:
            return known
        found = self._client.stream_hash(file.url, progress)
        content = {"sha256": found.hashed.sha256, "size": found.hashed.size, "etag": found.etag}
        lasting = found.etag is not None or _page_tells(file)
        self._client.keep(
            _key(file),
            json.dumps(content).encode(),
            seconds=_FOR_EVER if lasting else _BY_URL_SECONDS,
        )
        return found.hashed


def _page_tells(file: ListedFile) -> bool:
    """Whether the page says something of a file that other bytes would not have."""
    sidecar = isinstance(file.core_metadata, str)
    return bool(file.sha256) or sidecar or None not in (file.size, file.upload_time)


def _key(file: ListedFile) -> str:
    said = (file.sha256, file.core_metadata, file.size, file.upload_time)
    return f"hash of {file.url} as told: {said!r}"


def _parse(content: bytes) -> tuple[HashedBytes, str | None]:
    """Read what `compute` kept; raise ValueError for anything else."""
    found = json.loads(content)
    values = [found.get(key) for key in ("sha256", "size", "etag")] if type(found) is dict else []
    match values:
        case [str(sha256), int(size), (str() | None) as etag] if _SHA256.match(sha256):
            return HashedBytes(sha256, size), etag
        case _:
            raise ValueError("no hash")
