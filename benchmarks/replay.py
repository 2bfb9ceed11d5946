"""A package index on loopback that answers from pages and METADATA recorded once.

Two tools are compared fairly when both ask an index that answers the same way every time, counts
what it is asked, and takes as long to answer as a real one. Addresses are
``/MANNER/LATENCY/simple/PROJECT/``: latency is in milliseconds a request, and the manner is

- ``real``: core-metadata keys (for every wheel, though a mirror may leave them out), ETag,
  ``max-age=600``, gzip, 304, immutable sidecars;
- ``bare``: none of these, and no sidecars; METADATA is read from the wheel by ranges.

What is not recorded yet is fetched from the default index, kept under ``benchmarks/recordings``
(ignored by git) and counted as ``recorded``: a run that caused it must be repeated. Whole wheels
are neither kept nor served. A range is answered from a stand-in of the real size, which holds zeros
and METADATA; a real zip directory is longer, so ranges cost less here.
"""

import argparse
import gzip
import json
import os
import re
import socket
import struct
import sys
import threading
import time
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from benchmarks.store import PAGE_TYPE, RECORDINGS, Recordings, UpstreamError

_PAGE = re.compile(r"/(real|bare)/(\d+)/simple/([a-z0-9-]+)/")
_FILE = re.compile(r"/(real|bare)/(\d+)/files/(\d+)/([0-9a-f]{64})/([^/]+?)(\.metadata)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _StandIn:
    """A wheel of the real size: ``head``, zeros, ``tail``."""

    size: int
    head: bytes
    tail: bytes

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` up to ``stop``."""
        kept = self.size - len(self.tail)
        head = self.head[start:stop]
        zeros = bytes(max(0, min(stop, kept) - max(start, len(self.head))))
        return head + zeros + self.tail[max(0, start - kept) : max(0, stop - kept)]


def _make_stand_in(filename: str, size: int, metadata: bytes) -> _StandIn:
    """Write both ends of a zip file by hand (APPNOTE 4.3): one member of zeros, then METADATA."""
    name, version = filename.split("-")[:2]
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflate.compress(metadata) + deflate.flush()
    member = f"{name}-{version}.dist-info/METADATA".encode()
    header = _header(member, 8, zlib.crc32(metadata), len(packed), len(metadata))
    local = b"PK\3\4" + header + member + packed
    filler = f"{name}/zeros".encode()
    # What is left of the real size, when both members have their entries in the directory.
    zeros = size - 30 - len(filler) - len(local) - 46 - len(filler) - 46 - len(member) - 22
    head = entries = b""
    if zeros >= 0:
        # Nobody reads the zeros, so nobody checks their sum.
        blank = _header(filler, 0, 0, zeros, zeros)
        head = b"PK\3\4" + blank + filler
        entries = _entry(blank, filler, 0)
    start = len(head) + max(0, zeros)
    entries += _entry(header, member, start)
    members = 2 if head else 1
    end = struct.pack(
        "<4sHHHHIIH",
        b"PK\5\6", 0, 0, members, members, len(entries), start + len(local), 0,
    )  # fmt: skip
    tail = local + entries + end
    return _StandIn(size=start + len(tail), head=head, tail=tail)


def _header(member: bytes, method: int, crc: int, packed: int, size: int) -> bytes:
    """Write what a local header and a directory entry share; the date is 1 January 1980."""
    return struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, crc, packed, size, len(member), 0)


def _entry(header: bytes, member: bytes, start: int) -> bytes:
    made_by = struct.pack("<H", 20)
    return b"PK\1\2" + made_by + header + struct.pack("<HHHII", 0, 0, 0, 0, start) + member


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client; HTTP/1.1, kept open."""

    protocol_version = "HTTP/1.1"
    # Headers and body leave together: otherwise Nagle and delayed ACK add 40 ms an answer.
    disable_nagle_algorithm = True
    wbufsize = -1
    recordings: ClassVar[Recordings]

    def do_GET(self) -> None:
        """Answer a page, a sidecar, a range, or the counters."""
        if self.path == "/-/counts":
            self._answer(200, json.dumps(self.recordings.take_counts()).encode())
            return
        try:
            if page := _PAGE.fullmatch(self.path):
                time.sleep(int(page[2]) / 1000)
                self._answer_page(page[1], page[3])
            elif file := _FILE.fullmatch(self.path):
                time.sleep(int(file[2]) / 1000)
                self._answer_file(file)
            else:
                self._absent()
        except UpstreamError as error:
            # The run is worth nothing now; the client says why.
            self._answer(502, str(error).encode())

    def do_HEAD(self) -> None:
        """Answer the size of a wheel."""
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing: the counters tell what was asked."""

    def _answer_page(self, manner: str, project: str) -> None:
        self.recordings.count(pages=1)
        body = self.recordings.page(project, manner)
        if body is None:
            self._absent()
        elif manner == "bare":
            self._answer(200, body, {"Content-Type": PAGE_TYPE})
        else:
            etag = f'"{zlib.crc32(body):08x}-{len(body)}"'
            headers = {
                "Content-Type": PAGE_TYPE,
                "ETag": etag,
                "Cache-Control": "max-age=600, public",
            }
            if self.headers.get("If-None-Match") == etag:
                self.recordings.count(unchanged=1)
                self._answer(304, b"", headers)
            elif "gzip" in self.headers.get("Accept-Encoding", ""):
                self._answer(200, body, {**headers, "Content-Encoding": "gzip"})
            else:
                self._answer(200, gzip.decompress(body), headers)

    def _answer_file(self, file: re.Match[str]) -> None:
        manner, _, size, sha256, name, sidecar = file.groups()
        filename = unquote(name)
        kind = "heads" if self.command == "HEAD" else "metadata" if sidecar else "ranges"
        self.recordings.count(**{kind: 1})
        project = re.sub(r"[-_.]+", "-", filename.partition("-")[0]).lower()
        if sidecar and manner == "bare":
            self._absent()
            return
        metadata = self.recordings.metadata(project, sha256)
        if metadata is None:
            self._absent()
        elif sidecar:
            immutable = {"Cache-Control": "max-age=365000000, immutable, public"}
            self._answer(200, metadata, {**immutable, "ETag": f'"{sha256}"'})
        else:
            self._answer_range(_make_stand_in(filename, int(size), metadata))

    def _answer_range(self, wheel: _StandIn) -> None:
        if self.command == "HEAD":
            self._answer(200, b"", {"Accept-Ranges": "bytes"}, length=wheel.size)
            return
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None or not (asked[1] or asked[2]):
            # A whole wheel; no tool needs one to resolve.
            self.recordings.count(refused=1)
            self._answer(403, b"")
            return
        if asked[1]:
            start = int(asked[1])
            stop = min(int(asked[2]) + 1 if asked[2] else wheel.size, wheel.size)
        else:
            start, stop = max(0, wheel.size - int(asked[2])), wheel.size
        if start >= stop:
            self._answer(416, b"", {"Content-Range": f"bytes */{wheel.size}"})
            return
        headers = {
            "Accept-Ranges": "bytes",
            "Content-Range": f"bytes {start}-{stop - 1}/{wheel.size}",
        }
        self._answer(206, wheel.read(start, stop), headers)

    def _absent(self) -> None:
        self.recordings.count(absent=1)
        self._answer(404, b"")

    def _answer(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        *,
        length: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            if self.path != "/-/counts":
                self.recordings.count(bytes=len(body))


class _Server(ThreadingHTTPServer):
    """A thread a connection; uv opens up to fifty at once."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Tell of an error, unless the client merely hung up, as some do when they are done."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serve on a free loopback port, print the port, and go on until standard input ends."""
    parser = argparse.ArgumentParser(description="Serve recorded pages on loopback.")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS)
    _Handler.recordings = Recordings(parser.parse_args().recordings)
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        # Ends with the program that started it, however that one ends.
        while os.read(0, 4096):
            pass
        server.shutdown()


if __name__ == "__main__":
    main()
