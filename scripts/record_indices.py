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
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scripts.default_index import DefaultIndex, find_default_index
from scripts.publishers import PUBLISHERS, Folder, read_facts
from scripts.stand_ins import Fact, Record, StandIns

from cudalock.index.definitions import Definition, load_definitions
from cudalock.index.knowledge_files import load_knowledge

ROOT = Path(__file__).resolve().parent.parent

# The day a repository was read at the commit the facts name, where the whole page is known.
_READ_ON = {"sgl-project/whl": "2026-07-01"}
_LOCK = re.compile(r": (\S+ \S+) @ ([0-9a-f]{40})\Z")


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


def _own_sources(facts: Iterable[Fact]) -> list[str]:
    """Return the lock files that the facts themselves name."""
    found = (_LOCK.search(str(fact.get("requires_dist_from") or "")) for fact in facts)
    return sorted({f"{match[1]} at {match[2][:12]}" for match in found if match is not None})


def _wanted(definition: Definition, folder: Folder) -> frozenset[str]:
    """Return the projects to record: those the index is the source of there, and serves beside."""
    if folder.nightly:
        return definition.projects | definition.nightly_projects
    return definition.projects | definition.serves


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
    folders, parents = PUBLISHERS[definition.name](facts)
    target.mkdir(parents=True, exist_ok=True)
    listed: list[Record] = []
    for folder in folders:
        wanted = _wanted(definition, folder)
        entry: Record = {"url": folder.url, "folder": folder.name, "nightly": folder.nightly}
        if folder.projects is not None:
            entry["projects"] = sorted(folder.projects)
        if folder.facts is not None:
            index = read_facts(facts / folder.facts)
            metadata: list[Record] = []
            pages: list[Record] = []
            for project in sorted(wanted.intersection(index["projects"])):
                sources, complete = _sources(index["collected_from"], project)  # type: ignore[arg-type] # the one list in the file
                listed_files = index["projects"][project]["files"]
                kept = [fact for fact in listed_files if folder.keeps(fact)]
                complete = complete and len(kept) == len(listed_files)
                if folder.prefix:
                    sources = _own_sources(kept) or sources
                files = _record_page(project, kept, stand_ins, metadata)
                if files:
                    page: Record = {"project": project, "complete": complete, "sources": sources}
                    pages.append({**page, "files": files})
            if pages:
                path = urlsplit(folder.url).path.strip("/").removeprefix("whl/")
                name = "root" if path in ("", "whl") else re.sub(r"[^A-Za-z0-9._]+", "-", path)
                entry["file"] = f"{name}.json"
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
        if definition.name not in PUBLISHERS:
            print(f"{definition.name}: no facts")
            continue
        target = options.output / definition.name
        for old in target.glob("*.json"):
            old.unlink()
        record_publisher(definition, options.facts, target, stand_ins)
        size = sum(path.stat().st_size for path in target.glob("*.json"))
        print(f"{definition.name}: {size} bytes, {index.requests} requests so far")


if __name__ == "__main__":
    main()
