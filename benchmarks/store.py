"""What the replay index answers from: pages and METADATA, recorded once from the default index.

A page is kept in the two forms that are served. Whatever is missing is fetched when it is first
asked for, so that a recording is made by running the tools to be compared.
"""

import gzip
import io
import json
import os
import ssl
import tempfile
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin

if TYPE_CHECKING:
    import httpx

__all__ = ["PAGE_TYPE", "RECORDINGS", "Recordings", "UpstreamError"]

RECORDINGS = Path(__file__).resolve().parent / "recordings"
PAGE_TYPE = "application/vnd.pypi.simple.v1+json"
_METADATA_KEYS = ("core-metadata", "dist-info-metadata", "data-dist-info-metadata")


class UpstreamError(Exception):
    """The default index could not be asked for what no recording has."""


class _Upstream:
    """The default index, asked only for what no recording has, by a few threads at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(8)
        self._client: httpx.Client | None = None
        self.address = ""

    def fetch_page(self, project: str) -> bytes | None:
        """Fetch a project's page as JSON; None when the index has none."""
        with self._asking() as client:
            return _fetch(client, f"{self.address}{project}/", PAGE_TYPE)

    def fetch_metadata(self, address: str) -> bytes | None:
        """Fetch a wheel's METADATA: its sidecar, else from the wheel by ranges."""
        with self._asking() as client:
            data = _fetch(client, f"{address}.metadata", "*/*")
            if data is not None:
                return data
            with zipfile.ZipFile(_RangeFile(client, address)) as wheel:
                names = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
                return wheel.read(min(names, key=len)) if names else None

    @contextmanager
    def _asking(self) -> Iterator["httpx.Client"]:
        # A server that has everything recorded does not need this import.
        import httpx  # noqa: PLC0415 - as above

        with self._turns:
            try:
                yield self._connect()
            except (httpx.HTTPError, OSError, zipfile.BadZipFile) as error:
                raise UpstreamError(f"the default index gave no usable answer: {error}") from error

    def _connect(self) -> "httpx.Client":
        import httpx  # noqa: PLC0415 - as above

        from cudalock.cli.default_index import ask_default_index  # noqa: PLC0415 - as above

        with self._lock:
            if self._client is None:
                with tempfile.TemporaryDirectory() as folder:
                    url = ask_default_index(environ=os.environ, cache_dir=Path(folder)).url
                self.address = url.reveal().rstrip("/") + "/"
                transport = httpx.HTTPTransport(verify=ssl.create_default_context(), retries=4)
                self._client = httpx.Client(transport=transport, follow_redirects=True, timeout=60)
            return self._client


def _fetch(client: "httpx.Client", address: str, accept: str) -> bytes | None:
    answer = client.get(address, headers={"Accept": accept})
    return None if answer.status_code in {403, 404} else answer.raise_for_status().content


class _RangeFile(io.RawIOBase):
    """A remote file that can be read anywhere; its last 64 KiB are fetched at once and kept."""

    def __init__(self, client: "httpx.Client", address: str) -> None:
        self._client = client
        self._address = address
        self._position = 0
        answer = self._get(f"bytes=-{64 * 1024}")
        self._tail = answer.content
        self._size = int(answer.headers["Content-Range"].rpartition("/")[2])

    def _get(self, ranges: str) -> "httpx.Response":
        headers = {"Range": ranges, "Accept-Encoding": "identity"}
        answer = self._client.get(self._address, headers=headers).raise_for_status()
        if answer.status_code != 206:
            raise OSError(f"expected a range of {self._address}, found all of it")
        return answer

    def seekable(self) -> bool:
        """Say that it can be read anywhere."""
        return True

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Read up to ``size`` bytes, from what is kept where that suffices."""
        start = min(self._position, self._size)
        stop = self._size if size < 0 else min(start + size, self._size)
        self._position = stop
        kept = self._size - len(self._tail)
        if start >= stop:
            return b""
        if start >= kept:
            return self._tail[start - kept : stop - kept]
        return self._get(f"bytes={start}-{stop - 1}").content


class Recordings:
    """Pages and METADATA in a folder; what is missing is fetched once, whoever asks first."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; it need not exist."""
        self._folder = folder
        self._upstream = _Upstream()
        self._addresses: dict[str, str] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self.counts: Counter[str] = Counter()

    def count(self, **amounts: int) -> None:
        """Add to the counters."""
        with self._guard:
            self.counts.update(amounts)

    def take_counts(self) -> dict[str, int]:
        """Return the counters and start again from nothing."""
        with self._guard:
            counts = dict(sorted(self.counts.items()))
            self.counts.clear()
        return counts

    def page(self, project: str, manner: str) -> bytes | None:
        """Return a page as JSON: gzipped for ``real``, plain for ``bare``; None when absent."""
        wanted = self._folder / "pages" / f"{project}.{manner}"
        with self._alone(project):
            if not wanted.is_file() and not self._record_page(project):
                return None
        return wanted.read_bytes()

    def metadata(self, project: str, sha256: str) -> bytes | None:
        """Return the METADATA of the wheel with this hash; None when the index has none."""
        wanted = self._folder / "metadata" / sha256
        with self._alone(sha256):
            if not wanted.is_file():
                # The page that lists the wheel says where it is.
                if sha256 not in self._addresses:
                    self._learn_addresses(project)
                address = self._addresses.get(sha256)
                data = address and self._upstream.fetch_metadata(address)
                if not data:
                    return None
                _write(wanted, data)
                self.count(recorded=1)
        return wanted.read_bytes()

    def _alone(self, key: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(key, threading.Lock())

    def _learn_addresses(self, project: str) -> None:
        kept = self._folder / "pages" / f"{project}.addresses"
        if kept.is_file():
            self._addresses.update(json.loads(kept.read_bytes()))

    def _record_page(self, project: str) -> bool:
        data = self._upstream.fetch_page(project)
        if data is None:
            return False
        page = json.loads(data)
        addresses = {}
        bare = []
        for file in page["files"]:
            sha256 = file["hashes"].get("sha256")
            if sha256 is None:
                continue
            addresses[sha256] = urljoin(f"{self._upstream.address}{project}/", file["url"])
            kept = {key: value for key, value in file.items() if key not in _METADATA_KEYS}
            name = quote(file["filename"])
            url = f"../../files/{file.get('size', 0)}/{sha256}/{name}"
            bare.append({**kept, "url": url})
        real = [
            {**file, "core-metadata": True} if file["filename"].endswith(".whl") else file
            for file in bare
        ]
        pages = self._folder / "pages"
        _write(pages / f"{project}.addresses", json.dumps(addresses).encode())
        _write(pages / f"{project}.bare", _as_page(page, bare))
        _write(pages / f"{project}.real", gzip.compress(_as_page(page, real), mtime=0))
        self.count(recorded=1)
        return True


def _as_page(page: dict[str, object], files: list[dict[str, object]]) -> bytes:
    return json.dumps({**page, "files": files}, separators=(",", ":")).encode()


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
