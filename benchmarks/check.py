"""Times `cudalock check` against `uv lock --check`, pair by pair, on one set of 200 packages.

Both ask whether a lock still matches its inputs, as whole processes, offline, with warm caches, in
turns. The set is made up: 200 projects in layers, ten of them built for CUDA 13.0, served by an index
on loopback for as long as the locks are made. `full` is a check without a stamp, `stamp` one whose
stamp says that nothing changed. What is compared is the median of the pairs' ratios.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_BIN = Path(sys.executable).parent
_COUNT = 200
_CUDA = 10
_TAG = "cp312-cp312-manylinux_2_28_x86_64"
# As installers write it today.
_SCRIPT = "import sys\nfrom cudalock.cli.main import main\nsys.exit(main())\n"


def _version(number: int) -> str:
    return f"1.{number}.0" + ("+cu130" if number < _CUDA else "")


def _requires(number: int) -> list[str]:
    """Give a project up to six requirements on projects after it, as real ones have."""
    later = [number * 2 + 1, number * 2 + 2, number * 3 + 1, number + 7, number + 40, number + 90]
    return [
        f"project-{other:03}>=1.0,!=1.{other}.9" for other in sorted(set(later)) if other < _COUNT
    ]


def _filename(number: int) -> str:
    tag = _TAG if number < _CUDA else "py3-none-any"
    return f"project_{number:03}-{_version(number)}-{tag}.whl"


def _metadata(number: int) -> bytes:
    lines = ["Metadata-Version: 2.1", f"Name: project-{number:03}", f"Version: {_version(number)}"]
    lines += ["Requires-Python: >=3.10"]
    lines += [f"Requires-Dist: {text}" for text in _requires(number)]
    return "\n".join([*lines, "", ""]).encode()


class _Index(BaseHTTPRequestHandler):
    """Answers project pages (PEP 691) and metadata sidecars (PEP 658); there are no wheels."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer one request."""
        parts = self.path.strip("/").split("/")
        number = int(parts[1].rpartition("-")[2]) if parts[1].startswith("project-") else -1
        if not 0 <= number < _COUNT:
            self._answer(404, b"", "text/plain")
        elif parts[0] == "simple":
            name = _filename(number)
            address = f"/files/project-{number:03}/{name.replace('+', '%2B')}"
            digest = hashlib.sha256(_metadata(number)).hexdigest()
            file = {
                "filename": name,
                "url": address,
                "hashes": {"sha256": hashlib.sha256(name.encode()).hexdigest()},
                "requires-python": ">=3.10",
                "size": 1000,
                "core-metadata": {"sha256": digest},
                "upload-time": "2026-01-01T00:00:00Z",
            }
            page = {"meta": {"api-version": "1.1"}, "name": parts[1], "files": [file]}
            self._answer(200, json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json")
        else:
            self._answer(200, _metadata(number), "application/octet-stream")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=86400")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


@contextmanager
def _serving() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            server.shutdown()
            thread.join()


def _project(folder: Path, index: str) -> None:
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "set"\nversion = "1"\nrequires-python = ">=3.11"\n'
        'dependencies = ["project-000", "project-001", "project-002"]\n\n'
        "[tool.uv]\nenvironments = [\"sys_platform == 'linux'\"]\n\n"
        f'[[tool.uv.index]]\nname = "bench"\nurl = "{index}"\ndefault = true\n\n'
        '[tool.cudalock.targets.linux]\npython = "3.12"\nplatform = "linux-x86_64"\n'
        'driver = "590.48.01"\ncuda = "13.0"\nsm = ["12.0"]\n',
        encoding="utf-8",
    )


def _run(command: list[str], folder: Path, environ: dict[str, str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=False)
    taken = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(
            f"{command}: {done.returncode}\n{done.stderr.decode()}{done.stdout.decode()}"
        )
    return taken * 1000


def main() -> None:
    """Lock the set with both tools, then time their checks in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=21)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory(prefix="cudalock-bench-") as place:
        folder = Path(place) / "project"
        folder.mkdir()
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "UV_", "CUDALOCK"))
        }
        environ = {
            **kept,
            "CUDALOCK_CACHE_DIR": f"{place}/cudalock",
            "UV_CACHE_DIR": f"{place}/uv",
            "UV_PYTHON_DOWNLOADS": "never",
            # An installed program has its bytecode beside it.
            "PYTHONPYCACHEPREFIX": f"{place}/bytecode",
        }
        launcher = Path(place) / "start.py"
        launcher.write_text(_SCRIPT, encoding="utf-8")
        ours = [sys.executable, str(launcher)]
        with _serving() as index:
            _project(folder, index)
            _run([*ours, "resolve", "--default-index", index, "-q"], folder, environ)
            uv = [str(_BIN / "uv"), "lock", "--python", sys.executable]
            _run(uv, folder, environ)
        locked = (folder / "pylock.linux.toml").read_text(encoding="utf-8").count("[[packages]]")
        check = [*ours, "check"]
        uv += ["--check", "--offline"]
        stamps = Path(place) / "cudalock" / "cudalock-check"
        times: dict[str, list[float]] = {"python": [], "full": [], "stamp": [], "uv": []}
        _run(check, folder, environ)
        for _ in range(pairs):
            times["python"].append(_run([sys.executable, "-c", ""], folder, environ))
            shutil.rmtree(stamps, ignore_errors=True)
            times["full"].append(_run(check, folder, environ))
            times["stamp"].append(_run(check, folder, environ))
            times["uv"].append(_run(uv, folder, environ))
    print(f"{locked} packages, {pairs} pairs, milliseconds for the whole process")
    for what, found in times.items():
        ratio = statistics.median(one / two for one, two in zip(found, times["uv"], strict=True))
        middle, least = statistics.median(found), min(found)
        print(f"{what:<8} median {middle:7.1f}  least {least:7.1f}  of uv's {ratio:5.2f}")


if __name__ == "__main__":
    main()
