"""A real HTTP server on loopback that says exactly what a test wants, and remembers what was asked."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Asked", "Loopback", "Reply", "serve", "serve_file"]


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    """A response; ``length`` announces another length than the body has, None announces none."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = -1


@dataclass
class Loopback:
    url: str
    asked: list[Asked] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [one.path for one in self.asked]


Answer = Callable[[Asked], Reply | Iterable[bytes]]


@contextmanager
def serve(answer: Answer) -> Iterator[Loopback]:
    """Serve ``answer``: a `Reply`, or the raw bytes of a response after which the connection ends."""
    site = Loopback(url="")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self) -> None:
            asked = Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
            site.asked.append(asked)
            reply = answer(asked)
            if isinstance(reply, Reply):
                self._send(reply)
                return
            self.close_connection = True
            try:
                for chunk in reply:
                    self.wfile.write(chunk)
                    self.wfile.flush()
            except OSError:
                pass

        do_HEAD = do_GET  # noqa: N815 - http.server names it so

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.length is not None:
                self.send_header(
                    "Content-Length", str(len(reply.body) if reply.length < 0 else reply.length)
                )
            if reply.length is None or reply.length > len(reply.body):
                self.close_connection = True
                self.send_header("Connection", "close")
            self.end_headers()
            try:
                self.wfile.write(reply.body)
            except OSError:
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        # The default of 5 makes the sixth client of a moment wait for a second.
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def serve_file(content: bytes, asked: Asked, *, etag: str | None = None) -> Reply:
    """Answer as a sound file server does: all of it, or the one range that was asked for."""
    headers = {} if etag is None else {"ETag": etag}
    span = asked.headers.get("range", "").removeprefix("bytes=")
    if not span or asked.headers.get("if-range", etag) != etag:
        return Reply(200, content, headers)
    first, _, last = span.partition("-")
    start = int(first) if first else max(0, len(content) - int(last))
    end = min(int(last) + 1, len(content)) if first and last else len(content)
    if start >= len(content):
        return Reply(416, b"", {"Content-Range": f"bytes */{len(content)}"})
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
    return Reply(206, content[start:end], headers)
