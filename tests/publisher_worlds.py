"""Publishers on loopback: a default index that has whatever recorded wheels require, and pages in
our own hand, served where a definition says they are."""

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from builders import make_wheel
from cudalock.wheel.filename import parse_wheel_file
from default_index_site import Site, stock_demo
from loopback import Asked, Loopback, Reply, serve, serve_file

__all__ = ["INDICES", "PublisherSite", "moved_indices", "publisher_site", "required_index"]

_JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
INDICES = Path(__file__).resolve().parent.parent / "indices"


@dataclass
class _RequiredSite(Site):
    """Lists of a project every version that a requirement of a recorded wheel mentions."""

    versions: dict[str, set[str]] = field(default_factory=dict)
    extras: dict[str, set[str]] = field(default_factory=dict)
    # Projects of which there are source distributions only, which tell the releases.
    sources: dict[str, list[str]] = field(default_factory=dict)

    def _page(self, name: str) -> Reply:
        project = canonicalize_name(name.strip("/"))
        if project in self.sources:
            files = [
                {"filename": file, "url": f"/files/{file}", "hashes": {"sha256": "a" * 64}}
                for file in self.sources[project]
            ]
            page = {"meta": {"api-version": "1.1"}, "name": project, "files": files}
            return Reply(200, json.dumps(page).encode(), _JSON)
        there = {path.name.split("-")[1] for path in self.files.get(project, ())}
        for version in sorted(self.versions.pop(project, set()) - there):
            self.add(project, version, extras=sorted(self.extras[project]))
        return super()._page(project)


@contextmanager
def required_index(folder: Path) -> Iterator[Site]:
    """Serve a default index that has what recorded wheels require, as wheels without requirements."""
    site = _RequiredSite(folder=folder)
    folder.mkdir(parents=True, exist_ok=True)
    stock_demo(site)
    versions: dict[str, set[str]] = defaultdict(set)
    extras: dict[str, set[str]] = defaultdict(set)
    for path in sorted(INDICES.glob("recorded/*/*.json")):
        for record in json.loads(path.read_bytes()).get("metadata", []):
            for text in record["requires_dist"]:
                requirement = Requirement(text)
                project = canonicalize_name(requirement.name)
                said = {s.version.removesuffix(".*") for s in requirement.specifier}
                versions[project] |= {v.partition("+")[0] for v in said} or {"1.0"}
                extras[project] |= requirement.extras
    versions["vllm"].add("0.19.1")
    site.versions, site.extras = dict(versions), extras
    site.sources["flash-attn"] = ["flash_attn-2.8.3.tar.gz", "flash_attn-2.7.4.post1.tar.gz"]
    with serve(site.answer) as server:
        site.server = server
        site.url = f"{server.url}/simple"
        yield site


@dataclass
class PublisherSite:
    """A publisher's pages by path; any wheel asked for is made on the spot, by its name.

    ``requires`` gives Requires-Dist by project. A page that is not there answers ``absent``.
    """

    folder: Path
    pages: Mapping[str, bytes]
    requires: Mapping[str, Sequence[str]] = field(default_factory=dict)
    absent: int = 404
    server: Loopback | None = None

    @property
    def asked(self) -> list[str]:
        """Every path asked for, in order."""
        assert self.server is not None
        return self.server.paths()

    @property
    def url(self) -> str:
        """The root of the site."""
        assert self.server is not None
        return self.server.url

    def answer(self, asked: Asked) -> Reply:
        """Answer one request."""
        path = asked.path.rstrip("/")
        if path in self.pages:
            # A link to the publisher's other hosts leads here as well.
            body = self.pages[path].replace(b"https://github.com/", f"{self.url}/".encode())
            return Reply(200, body, {"Content-Type": "text/html"})
        if path.endswith(".whl"):
            wheel = parse_wheel_file(unquote(path.rpartition("/")[2]))
            name, version, tag = wheel.filename.removesuffix(".whl").split("-", 2)
            requires = self.requires.get(wheel.project, ())
            made = make_wheel(self.folder, name, version, tag=tag, requires=requires)
            return serve_file(made.read_bytes(), asked)
        return Reply(self.absent)


@contextmanager
def publisher_site(
    folder: Path, pages: Mapping[str, bytes], requires: Mapping[str, Sequence[str]] | None = None
) -> Iterator[PublisherSite]:
    """Serve pages by path (without a slash at the end)."""
    folder.mkdir(parents=True, exist_ok=True)
    site = PublisherSite(folder=folder, pages=pages, requires=requires or {})
    with serve(site.answer) as server:
        site.server = server
        yield site


def moved_indices(target: Path, name: str, host: str, url: str) -> Path:
    """Copy the definitions and knowledge to ``target``, with one publisher's host replaced."""
    shutil.copytree(INDICES, target, ignore=shutil.ignore_patterns("recorded"))
    (target / "recorded").symlink_to(INDICES / "recorded")
    path = target / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    assert f"https://{host}" in text
    path.write_text(text.replace(f"https://{host}", url), encoding="utf-8")
    return target
