"""What indexes answered, kept on disk: pages, metadata, and "absent" (RFC 9111 where it is HTTP's).

An entry is one file, named by the sha256 of its key under a folder that names the schema; the key
holds no credentials. It begins with the digest of all that follows, so that a damaged or torn entry is
a miss. Nothing in it is unmarshalled: a line of JSON, then the bytes. Writers put a whole file in place
by renaming, so readers and other processes need no lock (which network file systems would not keep).
A cache that cannot be read or written costs requests, never a result.
"""

import hashlib
import json
import os
import re
import stat
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

__all__ = ["CACHE_SCHEMA", "Cache", "CacheEntry", "freshness_seconds"]

CACHE_SCHEMA = "v1"
_MAGIC = b"cudalock-cache 1 "
_HEADER_LIMIT = 16 * 1024
_ENTRY_LIMIT = 80 * 1024 * 1024
# An index that says nothing about freshness is asked again after ten minutes, which is also what the
# default index itself allows.
_SILENT_SECONDS = 600
_LONGEST_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One answer. ``status`` is 200, or the one that meant "absent", with an empty body.

    ``url`` is where the body was found, without userinfo and query. ``stored_at`` is in seconds since
    1970, ``fresh_for`` in seconds from then.
    """

    url: str
    status: int
    stored_at: float
    fresh_for: float
    body: bytes = b""
    content_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None

    def is_fresh(self, now: float) -> bool:
        """Whether it may be used without asking; an entry from the future is stale."""
        return 0 <= now - self.stored_at < self.fresh_for

    @property
    def has_validator(self) -> bool:
        """Whether the index can be asked if it still holds."""
        return self.etag is not None or self.last_modified is not None


def freshness_seconds(cache_control: str | None, age: str | None) -> float:
    """Return for how long an answer with these headers may be used without asking again.

    ``max-age`` less ``Age`` counts, up to a day. ``no-cache`` and ``no-store`` mean not at all: the
    answer is kept all the same, to be revalidated and for ``--offline``, which asks for any age. Silence
    means ten minutes.
    """
    directives = [part.strip().lower() for part in (cache_control or "").split(",")]
    if "no-cache" in directives or "no-store" in directives:
        return 0
    for directive in directives:
        match = re.fullmatch(r"max-age=\"?([0-9]{1,18})\"?", directive, re.ASCII)
        if match is not None:
            spent = int(age) if age is not None and re.fullmatch("[0-9]{1,18}", age) else 0
            return max(0, min(int(match[1]), _LONGEST_SECONDS) - spent)
    return _SILENT_SECONDS


class Cache:
    """A folder of entries. Thread-safe, and safe between processes.

    ``disabled`` says why nothing is read or written, where that is so: the folder belongs to
    somebody else, or others may write to it.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / CACHE_SCHEMA
        self.disabled: str | None = None
        self._checked = False

    def load(self, key: str) -> CacheEntry | None:
        """Return the entry of a key, None for a miss or anything that is not sound."""
        if not self._usable():
            return None
        path, name = self._path(key)
        try:
            # A link that somebody planted is not followed.
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
                data = file.read(_ENTRY_LIMIT + 1)
        except OSError:
            return None
        return _parse_entry(data, name)

    def store(self, key: str, entry: CacheEntry) -> bool:
        """Keep an entry, in place of an older one; return whether it was kept."""
        if len(entry.body) > _ENTRY_LIMIT - _HEADER_LIMIT - 256 or not self._usable():
            return False
        path, name = self._path(key)
        data = _format_entry(entry, name)
        temporary = None
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            # Unique among processes and threads, also on a file system that hosts share; O_EXCL makes
            # a name that exists all the same an error, and follows no link.
            unique = f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
            temporary = path.parent / f".new-{unique}"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
                file.write(data)
            temporary.replace(path)
        except OSError:
            if temporary is not None:
                with suppress(OSError):
                    temporary.unlink()
            return False
        return True

    def page_addresses(self, *, most: int = 5000) -> list[str]:
        """Return the addresses of the project pages kept here, sorted; of ``most`` entries at most.

        Only the head of each entry is read and nothing is checked against its digest: good for
        suggesting a name, and for nothing else.
        """
        found: set[str] = set()
        if not self._usable():
            return []
        for path in islice(self._folder.glob("[0-9a-f]*/[0-9a-f]*"), most):
            try:
                with path.open("rb") as file:
                    head = file.read(_HEADER_LIMIT).split(b"\n", 2)
                header = json.loads(head[1])
                url, kind = header["url"], header["content-type"]
            except (OSError, ValueError, RecursionError, KeyError, TypeError, IndexError):
                continue
            if isinstance(url, str) and isinstance(kind, str) and header.get("status") == 200:
                found.add(url)
        return sorted(found)

    def _path(self, key: str) -> tuple[Path, str]:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / name[:2] / name[2:], name

    def _usable(self) -> bool:
        if not self._checked:
            self.disabled = self._fault()
            self._checked = True
        return self.disabled is None

    def _fault(self) -> str | None:
        """Make the folder and return why it must not be used, if so."""
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            found = self._folder.lstat()
        except OSError as error:
            return f"the cache folder cannot be made: {error.strerror} ({self._folder})"
        if not stat.S_ISDIR(found.st_mode):
            return f"expected a folder of the cache, found something else ({self._folder})"
        if os.name == "posix":
            if found.st_uid != os.geteuid():
                return f"the cache folder belongs to another user ({self._folder})"
            if found.st_mode & 0o022:
                return f"others may write to the cache folder ({self._folder})"
        return None


def _format_entry(entry: CacheEntry, name: str) -> bytes:
    header = {
        "key": name,
        "url": entry.url,
        "status": entry.status,
        "stored-at": entry.stored_at,
        "fresh-for": entry.fresh_for,
        "content-type": entry.content_type,
        "etag": entry.etag,
        "last-modified": entry.last_modified,
        "length": len(entry.body),
    }
    rest = json.dumps(header, sort_keys=True).encode() + b"\n" + entry.body
    return _MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _parse_entry(data: bytes, name: str) -> CacheEntry | None:
    first = data.find(b"\n", 0, 256)
    if first < 0 or not data.startswith(_MAGIC):
        return None
    rest = memoryview(data)[first + 1 :]
    if data[len(_MAGIC) : first] != hashlib.sha256(rest).hexdigest().encode():
        return None
    second = data.find(b"\n", first + 1, first + 1 + _HEADER_LIMIT)
    if second < 0:
        return None
    try:
        header = json.loads(data[first + 1 : second])
        return _entry_from(header, data[second + 1 :], name)
    except (ValueError, RecursionError, KeyError, TypeError):
        # The digest holds, so another version of this program wrote it, or somebody with a grudge.
        return None


def _entry_from(header: Any, body: bytes, name: str) -> CacheEntry | None:  # noqa: ANN401 - any JSON
    texts = [header[key] for key in ("content-type", "etag", "last-modified")]
    if header["key"] != name or header["length"] != len(body):
        return None
    if not all(text is None or isinstance(text, str) for text in [header["url"], *texts]):
        return None
    return CacheEntry(
        url=str(header["url"]),
        status=int(header["status"]),
        stored_at=float(header["stored-at"]),
        fresh_for=float(header["fresh-for"]),
        body=body,
        content_type=texts[0],
        etag=texts[1],
        last_modified=texts[2],
    )
