"""A default index on loopback: JSON pages and tiny real wheels, with faults to switch on."""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from builders import make_wheel
from loopback import Asked, Loopback, Reply, serve, serve_file

__all__ = ["Site", "default_index", "stock_demo"]

_JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}


@dataclass
class Site:
    """``faults`` maps a project to what its page answers instead; ``uploaded`` is when
    all came, ``times`` when some did, by file name."""

    folder: Path
    url: str = ""
    files: dict[str, list[Path]] = field(default_factory=dict)
    faults: dict[str, Reply] = field(default_factory=dict)
    bad_hashes: set[str] = field(default_factory=set)
    server: Loopback | None = None
    uploaded: str | None = None
    times: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        name: str,
        version: str,
        *,
        tag: str = "py3-none-any",
        requires: Sequence[str] = (),
        requires_python: str | None = None,
        extras: Sequence[str] = (),
        files: Mapping[str, bytes] | None = None,
    ) -> Path:
        path = make_wheel(
            self.folder,
            name,
            version,
            tag=tag,
            requires=requires,
            requires_python=requires_python,
            extras=extras,
            files=files,
        )
        self.files.setdefault(name, []).append(path)
        return path

    @property
    def asked(self) -> list[str]:
        assert self.server is not None
        return self.server.paths()

    def answer(self, asked: Asked) -> Reply:
        kind, _, name = asked.path.strip("/").partition("/")
        if kind == "simple":
            return self.faults.get(name) or self._page(name)
        path = self.folder / name.replace("%2B", "+")
        return serve_file(path.read_bytes(), asked) if path.is_file() else Reply(404)

    def _page(self, name: str) -> Reply:
        paths = self.files.get(name)
        if paths is None:
            return Reply(404)
        files = []
        for path in paths:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if path.name in self.bad_hashes:
                digest = digest[:-1]
            uploaded = self.times.get(path.name, self.uploaded)
            time = {} if uploaded is None else {"upload-time": uploaded}
            files.append(
                {
                    **time,
                    "filename": path.name,
                    "url": f"/files/{path.name.replace('+', '%2B')}",
                    "hashes": {"sha256": digest},
                    "size": path.stat().st_size,
                    "yanked": False,
                }
            )
        page = {"meta": {"api-version": "1.1"}, "name": name, "files": files}
        return Reply(200, json.dumps(page).encode(), _JSON)


@contextmanager
def default_index(folder: Path) -> Iterator[Site]:
    folder.mkdir(parents=True, exist_ok=True)
    site = Site(folder=folder)
    with serve(site.answer) as server:
        site.server = server
        site.url = f"{server.url.rstrip('/')}/simple"
        yield site


def stock_demo(site: Site) -> None:
    """Put on the index what the demonstration needs of it."""
    world = tomllib.loads(
        (Path(__file__).parent / "worlds" / "default_index.toml").read_text(encoding="utf-8")
    )
    for name, versions in world["versions"].items():
        for version in versions:
            requires = (
                ["cuda-bindings~=13.0.3"] if (name, version) == ("cuda-python", "13.0.3") else []
            )
            site.add(name, version, requires=requires)
    for version, extras in world["toolkit"].items():
        requires = [f'{pin} ; extra == "{extra}"' for extra, pin in extras.items()]
        site.add("cuda-toolkit", version, requires=requires, extras=list(extras))
