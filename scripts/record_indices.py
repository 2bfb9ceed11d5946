"""Writes `indices/recorded/`: pages of the CUDA indices, from a folder of gathered facts.

Run at the top of the repository::

    python -m scripts.record_indices --facts FOLDER --cache FOLDER [--default-index URL]

``FOLDER`` of facts holds one JSON file an index. What a wheel declares is chosen by `stand_ins`,
which asks the default index for METADATA; ``--cache`` keeps the answers outside the repository, so
that a second run asks for nothing. The format is read by `cudalock.index.recorded`. The same facts
give the same bytes.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scripts.default_index import DefaultIndex, find_default_index
from scripts.stand_ins import Fact, Record, StandIns

from cudalock.index.definitions import Definition, load_definitions
from cudalock.index.knowledge_files import load_knowledge

ROOT = Path(__file__).resolve().parent.parent

# What the repository behind flashinfer.ai/whl holds: one folder of pages a CUDA release. The
# folders of 2024 and 2025 (cu118 .. cu126) have pages only below torchX.Y/, for older projects.
_SMS = "sm80 sm89 sm90a sm100a sm103a"
_FLASHINFER = {
    "": "flashinfer-cubin flashinfer-python",
    "cu118": "",
    "cu121": "",
    "cu124": "",
    "cu126": "",
    "cu128": "jit",
    "cu129": f"jit {_SMS} sm120f",
    "cu130": f"jit {_SMS} sm110a sm120f sm121a",
    "cu134": f"jit {_SMS} sm107a sm110a sm120f sm121a",
    "nightly": "flashinfer-cubin flashinfer-python",
    "nightly/cu126": "",
    "nightly/cu128": "jit",
    "nightly/cu129": f"jit {_SMS} sm120f",
    "nightly/cu130": f"jit {_SMS} sm110a sm120f sm121a",
    "nightly/cu134": f"jit {_SMS} sm107a sm110a sm120f sm121a",
}
# The day a repository was read at the commit the facts name, where the whole page is known.
_READ_ON = {"sgl-project/whl": "2026-07-01"}


@dataclass(frozen=True, kw_only=True)
class Folder:
    """One folder of a publisher: its address, and the facts file that records it, if any.

    ``projects`` is every project it has a page for, None where that is not known.
    """

    url: str
    name: str | None
    facts: str | None = None
    nightly: bool = False
    projects: tuple[str, ...] | None = None


def _pytorch(facts: Path) -> tuple[list[Folder], list[Record]]:
    base = "https://download.pytorch.org/whl"
    root = _read(facts / "pytorch-root.json")
    # The root pages list the wheels of every folder, so they list the folders.
    names = {path.split("/")[2] for path in _paths(root) if path.count("/") == 3}
    names |= {path.stem.removeprefix("pytorch-") for path in facts.glob("pytorch-cu*.json")}
    nightly = {p.stem.removeprefix("pytorch-nightly-") for p in facts.glob("pytorch-nightly-*")}
    recorded = {"cu126", "cu128", "cu129", "cu130"}
    folders = [
        Folder(
            url=f"{base}/{name}",
            name=name,
            facts=f"pytorch-{name}.json" if name in recorded else None,
        )
        for name in sorted(names)
    ]
    folders += [
        Folder(
            url=f"{base}/nightly/{name}",
            name=name,
            facts=f"pytorch-nightly-{name}.json" if name in ("cu130", "cu134") else None,
            nightly=True,
        )
        for name in sorted(nightly)
    ]
    source = "saved copies of the root pages, nvidia-cosmos/cosmos-dependencies at e289b1be"
    parents: list[Record] = [
        {"url": base, "complete": True, "source": f"{source}; lock files since"},
        {"url": f"{base}/nightly", "complete": False, "source": "lock files"},
    ]
    return folders, parents


def _sglang(facts: Path) -> tuple[list[Folder], list[Record]]:
    base = "https://docs.sglang.ai/whl"
    folders = []
    for path in sorted(facts.glob("sglang-*.json")):
        name = path.stem.removeprefix("sglang-").replace("-", "/")
        projects = tuple(sorted(_read(path)["projects"]))
        nightly = name.startswith(("nightly", "pr"))
        folders.append(
            Folder(
                url=f"{base}/{name}",
                name=name.rpartition("/")[2],
                facts=path.name,
                nightly=nightly,
                projects=projects,
            )
        )
    parents: list[Record] = [
        {"url": base, "complete": True, "source": "sgl-project/whl at 2504c0a (2026-07-01)"}
    ]
    return folders, parents


def _flashinfer(facts: Path) -> tuple[list[Folder], list[Record]]:
    base = "https://flashinfer.ai/whl"
    folders = []
    for name, short in _FLASHINFER.items():
        file = f"flashinfer-{name.replace('/', '-') or 'root'}.json"
        cuda = name.rpartition("/")[2]
        folders.append(
            Folder(
                url=f"{base}/{name}".rstrip("/"),
                name=cuda if cuda.startswith("cu") else None,
                facts=file if (facts / file).exists() else None,
                nightly=name.startswith("nightly"),
                projects=tuple(sorted(_flashinfer_name(word) for word in short.split())),
            )
        )
    source = "pages of flashinfer-ai/whl at 0bdc76f9 and before"
    parents: list[Record] = [
        {"url": base, "complete": True, "source": source},
        {"url": f"{base}/nightly", "complete": True, "source": source},
    ]
    return folders, parents


def _flashinfer_name(word: str) -> str:
    if word.startswith("flashinfer"):
        return word
    return "flashinfer-jit-cache" if word == "jit" else f"flashinfer-jit-cache-{word}"


def _vllm(facts: Path) -> tuple[list[Folder], list[Record]]:
    folders = [
        Folder(
            url=f"https://wheels.vllm.ai/{version}/{cuda}",
            name=cuda,
            facts=path.name,
            projects=("vllm",),
        )
        for path in sorted(facts.glob("vllm-*.json"))
        for _, version, cuda in [path.stem.split("-")]
    ]
    return folders, []


_PUBLISHERS = {"flashinfer": _flashinfer, "pytorch": _pytorch, "sglang": _sglang, "vllm": _vllm}


def _read(path: Path) -> dict[str, dict[str, dict[str, list[Fact]]]]:
    loaded: dict[str, dict[str, dict[str, list[Fact]]]] = json.loads(path.read_bytes())
    return loaded


def _paths(index: dict[str, dict[str, dict[str, list[Fact]]]]) -> Iterable[str]:
    for page in index["projects"].values():
        for file in page["files"]:
            yield urlsplit(str(file["url"])).path


def _sources(collected: Iterable[dict[str, str | None]], project: str) -> tuple[list[str], bool]:
    """Return where a page's files were found, and whether the whole page was read there."""
    found, complete = [], False
    for item in collected:
        repository, path, commit = item["repo"], item["path"] or "", item["commit"]
        if path.endswith(".html") and f"/{project}/" not in f"/{path}":
            continue
        if repository is None or commit is None:
            found.append(f"{item['kind']} (no public repository)")
            continue
        day = _READ_ON.get(repository)
        complete = complete or (day is not None and path.endswith(f"/{project}/index.html"))
        found.append(f"{repository} {path} at {commit[:12]}" + (f" ({day})" if day else ""))
    return sorted(set(found)), complete


def _record_page(
    project: str, facts: list[Fact], stand_ins: StandIns, metadata: list[Record]
) -> list[Record]:
    """Return the files of one page, one a URL, in the order of the facts."""
    stand_ins.read_page(project, facts)
    by_url: dict[str, list[Fact]] = {}
    for fact in facts:
        url = str(fact["url"])
        # What lies on the default index is left to it; its address is nobody's business here.
        if url.startswith("https://"):
            by_url.setdefault(url, []).append(fact)
    files = []
    for url, listed in by_url.items():
        fact = listed[0]
        if unquote(url.rpartition("/")[2]) != fact["filename"]:
            raise ValueError(f"expected {fact['filename']} at {url}")
        hashes = list(dict.fromkeys(str(item["sha256"]) for item in listed if item["sha256"]))
        file: Record = {"url": url}
        if hashes:
            file["sha256"] = hashes
        for key in ("size", "requires_python", "upload_time"):
            if fact.get(key) is not None:
                file[key] = fact[key]
        if fact.get("core_metadata"):
            file["core_metadata"] = str(fact["core_metadata"]).removeprefix("sha256=")
        record = stand_ins.choose(fact, hashes)
        if record is not None:
            if record not in metadata:
                metadata.append(record)
            file["metadata"] = metadata.index(record)
        files.append(file)
    return files


def _format(document: Record) -> str:
    """Return JSON with one line a file and a metadata record, so that a change shows as one."""
    lines = []
    for key, value in document.items():
        if key == "pages" and isinstance(value, list):
            pages = []
            for page in value:
                head = json.dumps({k: v for k, v in page.items() if k != "files"})[:-1]
                body = ",\n".join(f"   {_line(file)}" for file in page["files"])
                pages.append(f'  {head}, "files": [\n{body}\n  ]}}')
            lines.append('"pages": [\n' + ",\n".join(pages) + "\n]")
        elif isinstance(value, list):
            lines.append(f"{json.dumps(key)}: [\n" + ",\n".join(map(_line, value)) + "\n]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def record_publisher(
    definition: Definition, facts: Path, target: Path, stand_ins: StandIns
) -> None:
    """Write the recording of one publisher: `publisher.json` and a file a recorded folder."""
    folders, parents = _PUBLISHERS[definition.name](facts)
    named = definition.projects | definition.nightly_projects
    target.mkdir(parents=True, exist_ok=True)
    listed: list[Record] = []
    for folder in folders:
        wanted = named if folder.nightly else definition.projects
        entry: Record = {"url": folder.url, "folder": folder.name, "nightly": folder.nightly}
        if folder.projects is not None:
            entry["projects"] = sorted(wanted.intersection(folder.projects))
        if folder.facts is not None:
            index = _read(facts / folder.facts)
            metadata: list[Record] = []
            pages: list[Record] = []
            for project in sorted(wanted.intersection(index["projects"])):
                sources, complete = _sources(index["collected_from"], project)  # type: ignore[arg-type] # the one list in the file
                files = _record_page(
                    project, index["projects"][project]["files"], stand_ins, metadata
                )
                if files:
                    page: Record = {"project": project, "complete": complete, "sources": sources}
                    pages.append({**page, "files": files})
            if pages:
                name = urlsplit(folder.url).path.strip("/").removeprefix("whl/")
                entry["file"] = f"{name.replace('/', '-') if name != 'whl' else 'root'}.json"
                document: Record = {"schema": 1, "url": folder.url}
                document |= {"metadata": metadata, "pages": pages}
                (target / str(entry["file"])).write_text(_format(document), encoding="utf-8")
        listed.append(entry)
    document = {"schema": 1, "definition": definition.name, "parents": parents, "folders": listed}
    (target / "publisher.json").write_text(_format(document), encoding="utf-8")


def main() -> None:
    """Record every publisher that has facts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--facts", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--default-index")
    parser.add_argument("--output", type=Path, default=ROOT / "indices" / "recorded")
    options = parser.parse_args()
    index = DefaultIndex(options.default_index or find_default_index(), options.cache)
    stand_ins = StandIns(knowledge=load_knowledge(ROOT / "indices" / "knowledge"), index=index)
    for definition in load_definitions(ROOT / "indices"):
        target = options.output / definition.name
        for old in target.glob("*.json"):
            old.unlink()
        record_publisher(definition, options.facts, target, stand_ins)
        size = sum(path.stat().st_size for path in target.glob("*.json"))
        print(f"{definition.name}: {size} bytes, {index.requests} requests so far")


if __name__ == "__main__":
    main()
