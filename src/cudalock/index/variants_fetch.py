"""Reading ``{name}-{version}-variants.json`` of an index or a directory, each once.

What cannot be used is no reason to stop: PEP 825 has tools "degrade gracefully ... by ignoring the
variant wheels", and here that is said with the reason. An index that gives no answer at all stays
an error: what is taken must not depend on the weather.
"""

import hashlib
from pathlib import Path

from cudalock.errors import IndexAccessError, WheelError
from cudalock.index.address import shown_url
from cudalock.index.client import Client
from cudalock.index.find_links import local_path
from cudalock.memo import Memo
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.variants import (
    VARIANTS_LIMIT,
    VariantsLink,
    VariantsMetadata,
    VariantsUnread,
    parse_variants,
    variants_file_name,
)

__all__ = ["VariantsReader"]

_NOT_THERE = frozenset({401, 403, 404, 410})
_FOR_EVER = 10 * 365 * 24 * 3600.0
# "This file SHOULD NOT be considered immutable": without a hash it is asked for again soon.
_BY_URL_SECONDS = 600.0


class VariantsReader:
    """Reads the metadata of variants. Thread-safe; each file is asked for once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read: Memo[VariantsLink, VariantsMetadata | VariantsUnread] = Memo()

    def read(self, file: ListedFile) -> VariantsMetadata | VariantsUnread:
        """Return what the labels of a file's version stand for, or why that is not known.

        At most one request, of at most a mebibyte. Raises `IndexAccessError` when there is no
        answer.
        """
        link = file.variants_link
        if link is None:
            name = variants_file_name(file.wheel)
            return VariantsUnread(reason=f"no {name} is listed beside it")
        return self._read.get(link, lambda: self._fetch(link))

    def _fetch(self, link: VariantsLink) -> VariantsMetadata | VariantsUnread:
        where = shown_url(link.url)
        if len(link.sha256) > 1:
            return VariantsUnread(reason=f"{len(link.sha256)} hashes are listed for {where}")
        claimed = link.sha256[0] if link.sha256 else None
        key = f"variants {link.url} sha256={claimed}"
        path = local_path(link.url)
        kept = self._client.load_kept(key) if path is None else None
        data = kept if kept is not None else self._bytes(link, path)
        if data is None:
            return VariantsUnread(reason=f"{where} is not there")
        if claimed is not None and hashlib.sha256(data).hexdigest() != claimed:
            return VariantsUnread(reason=f"{where} does not have the listed sha256")
        try:
            found = parse_variants(data, where=where)
        except WheelError as error:
            return VariantsUnread(reason=str(error))
        if kept is None and path is None:
            seconds = _BY_URL_SECONDS if claimed is None else _FOR_EVER
            self._client.keep(key, data, seconds=seconds)
        return found

    def _bytes(self, link: VariantsLink, path: Path | None) -> bytes | None:
        if path is None:
            return self._client.fetch_whole(link.url, limit=VARIANTS_LIMIT, absent=_NOT_THERE)
        try:
            with path.open("rb") as file:
                # One more than is read: the reader says that it is too large.
                return file.read(VARIANTS_LIMIT + 1)
        except OSError as error:
            raise IndexAccessError(
                f"expected variant metadata: {error.strerror}", where=str(path)
            ) from error
