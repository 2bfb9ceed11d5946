"""What is asked of single wheels: their METADATA and the hash of their bytes, each once.

How METADATA is fetched (sidecar, else a range of the wheel) is known to `metadata_fetch.py`; which
files are asked for is the resolver's choice.
"""

from collections.abc import Callable

from cudalock.errors import IndexAccessError
from cudalock.index.client import Client
from cudalock.index.failures import HttpStatusError, RangeError
from cudalock.index.find_links import (
    DIRECT_INDEX,
    FIND_LINKS_INDEX,
    hash_local_file,
    local_path,
    read_local_metadata,
)
from cudalock.index.hash_memory import HashMemory
from cudalock.index.routes import DEFAULT_INDEX
from cudalock.index.variants_fetch import VariantsReader
from cudalock.memo import Memo
from cudalock.wheel.file_hash import HashedBytes
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.variants import VariantsMetadata, VariantsUnread

__all__ = ["FileReader"]

# Request Timeout, Too Early, Too Many Requests (RFC 9110, RFC 8470, RFC 6585).
_PASSING = frozenset({408, 425, 429})


class FileReader:
    """Reads METADATA and hashes. Thread-safe; each file is asked for once."""

    def __init__(self, client: Client, knowledge: Knowledge) -> None:
        self._client = client
        self._knowledge = knowledge
        self._metadata: Memo[str, CoreMetadata] = Memo()
        self._hashes: Memo[str, HashedBytes] = Memo()
        self._recalled: Memo[str, HashedBytes | None] = Memo()
        self._memory = HashMemory(client)
        self._variants = VariantsReader(client)

    def metadata(self, file: ListedFile) -> CoreMetadata:
        """Return what a wheel declares.

        The wheel's own METADATA is the stronger word, so a knowledge entry stands in, marked
        assumed, only where it cannot be had. Raises `IndexAccessError` and `WheelError`.
        """
        return self._metadata.get(file.url, lambda: self._read_metadata(file))

    def variants(self, file: ListedFile) -> VariantsMetadata | VariantsUnread:
        """Return what the variant labels of a file's version stand for; see `VariantsReader`."""
        try:
            return self._variants.read(file)
        except IndexAccessError as error:
            if file.index not in (DEFAULT_INDEX, DIRECT_INDEX, FIND_LINKS_INDEX):
                error.flag = f"--exclude-index {file.index}"
            raise

    def compute_hash(
        self, file: ListedFile, progress: Callable[[int, int | None], None] | None = None
    ) -> HashedBytes:
        """Return what the bytes of a file are; a remote one is streamed once, and not kept.

        The hash is remembered in the cache, so that no later run downloads the file either.
        """
        path = local_path(file.url)
        if path is not None:
            return self._hashes.get(file.url, lambda: hash_local_file(path))
        return self._hashes.get(file.url, lambda: self._memory.compute(file, progress))

    def recall_hash(self, file: ListedFile) -> HashedBytes | None:
        """Return what the bytes of a file are, if that is known without downloading it."""
        if local_path(file.url) is not None:
            return self.compute_hash(file)
        return self._recalled.get(file.url, lambda: self._memory.recall(file))

    def _read_metadata(self, file: ListedFile) -> CoreMetadata:
        path = local_path(file.url)
        if path is not None:
            return read_local_metadata(path)
        # A run whose metadata is all recorded or cached does not pay for the fetcher.
        from cudalock.index.metadata_fetch import fetch_metadata  # noqa: PLC0415 - as said above

        try:
            return fetch_metadata(self._client, file)
        except IndexAccessError as error:
            entry = None
            if _is_final(error):
                entry = self._knowledge.stand_in(file.wheel.project, file.wheel.version)
            if entry is None:
                if file.index not in (DEFAULT_INDEX, DIRECT_INDEX, FIND_LINKS_INDEX):
                    error.flag = f"--exclude-index {file.index}"
                raise
        return CoreMetadata(
            project=file.wheel.project,
            version=file.wheel.version,
            requires_dist=entry.requires_dist,
            source=entry.source,
            assumed=True,
        )


def _is_final(error: IndexAccessError) -> bool:
    """Whether METADATA cannot be had, now or later.

    A server that is down, busy or out of reach is not that: a set must not depend on the weather.
    """
    if isinstance(error, HttpStatusError):
        return 400 <= error.status < 500 and error.status not in _PASSING
    return isinstance(error, RangeError)
