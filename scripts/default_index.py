"""METADATA of wheels on the default index, each asked for once and kept in a folder.

The address comes from uv, as the person configured it, and is written nowhere. A wheel's METADATA
comes from its sidecar where the page offers one, else from one range of 64 KiB at its end, else
from further ranges where METADATA or the directory lies before that.
"""

import json
import ssl
import struct
import subprocess
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from urllib.parse import urljoin

__all__ = ["DefaultIndex", "find_default_index"]

_TAIL = 64 * 1024
_LIMIT = 8 * 1024 * 1024
_SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"


def find_default_index() -> str:
    """Return the default index that uv is set to."""
    run = subprocess.run(
        ["uv", "pip", "compile", "-", "--emit-index-url"],
        input="",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(maxsplit=1) for line in run.stdout.splitlines()]
    return next(line[1] for line in lines if line and line[0] == "--index-url")


class DefaultIndex:
    """Pages and METADATA of one index; ``requests`` counts what was not in the cache."""

    def __init__(self, url: str, cache: Path) -> None:
        self._url = url.rstrip("/") + "/"
        self._cache = cache
        self._tls = ssl.create_default_context()
        self.requests = 0

    def files(self, project: str) -> list[dict[str, object]]:
        """Return the wheels of a project as the index lists them; none for one it has not."""
        kept = self._cache / project / "page.json"
        if not kept.exists():
            body = self._get(urljoin(self._url, f"{project}/"), accept=_SIMPLE_JSON)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(body or b'{"files": []}')
        files = json.loads(kept.read_bytes())["files"]
        wheels = [file for file in files if file["filename"].endswith(".whl")]
        return sorted(wheels, key=lambda file: str(file["filename"]))

    def metadata(self, project: str, file: dict[str, object]) -> bytes:
        """Return the METADATA of one wheel that `files` returned."""
        kept = self._cache / project / f"{file['filename']}.metadata"
        if not kept.exists():
            url = urljoin(urljoin(self._url, f"{project}/"), str(file["url"]))
            data = self._get(f"{url}.metadata") if file.get("core-metadata") else None
            if data is None:
                data = self._read_range(url, int(str(file["size"])))
            kept.write_bytes(data)
        return kept.read_bytes()

    def _get(self, url: str, *, accept: str = "*/*", span: str | None = None) -> bytes | None:
        if not url.startswith(("https://", "http://127.0.0.1")):
            raise ValueError(f"expected https, found {url}")
        headers = {"Accept": accept}
        if span is not None:
            headers["Range"] = f"bytes={span}"
        self.requests += 1
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked above
        try:
            with urllib.request.urlopen(request, timeout=120, context=self._tls) as answer:  # noqa: S310
                body: bytes = answer.read(64 * _LIMIT)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise
        return body

    def _read_range(self, url: str, length: int) -> bytes:
        tail = self._get(url, span=f"-{_TAIL}") or b""
        end = tail.rfind(b"PK\x05\x06")
        if end < 0:
            raise ValueError(f"expected a wheel at {url}")
        size, offset = struct.unpack("<II", tail[end + 12 : end + 20])
        directory = tail[end - size : end] if size <= end else None
        if directory is None:
            directory = self._get(url, span=f"{offset}-{offset + size - 1}") or b""
        place, method, packed = _find_metadata(directory)
        # The local header repeats the name and has an extra field of its own length.
        start = length - len(tail)
        if place >= start:
            body = tail[place - start :]
        else:
            body = self._get(url, span=f"{place}-{place + packed + 1024}") or b""
        name, extra = struct.unpack("<HH", body[26:30])
        data = body[30 + name + extra : 30 + name + extra + packed]
        return zlib.decompress(data, -15) if method == 8 else data


def _find_metadata(directory: bytes) -> tuple[int, int, int]:
    """Return offset, compression method and packed size of METADATA in a central directory."""
    at = 0
    while directory[at : at + 4] == b"PK\x01\x02":
        (method,) = struct.unpack("<H", directory[at + 10 : at + 12])
        packed, _, name, extra, comment = struct.unpack("<IIHHH", directory[at + 20 : at + 34])
        (place,) = struct.unpack("<I", directory[at + 42 : at + 46])
        if directory[at + 46 : at + 46 + name].endswith(b".dist-info/METADATA"):
            return place, method, packed
        at += 46 + name + extra + comment
    raise ValueError("expected METADATA in the wheel's directory")
