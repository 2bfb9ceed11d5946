"""Writes `indices/evidence/`: facts of the wheels that `evidence_wheels.toml` names, read from the default index.

Run at the top of the repository, which takes some minutes and reads some gigabytes; nothing is kept of
the wheels themselves::

    python -m scripts.ship_evidence --date 2026-12-01 [--only REQUIREMENT] [--default-index URL]

Facts that are there already and are of the same reader are left alone, exports too; so a run that was
interrupted goes on where it was.
"""

import argparse
import json
import sys
import tomllib
from pathlib import Path

from scripts.default_index import find_default_index

from cudalock.api import find_wheel
from cudalock.cuda import newest_minor
from cudalock.host import Target
from cudalock.index.client import Client, open_client
from cudalock.index.fact_files import Exports, format_exports, format_facts
from cudalock.session import IndexOptions, Session
from cudalock.wheel.contents import WheelContents, inspect_wheel
from cudalock.wheel.contents_form import READER_VERSION
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.torch_exports import exports_of
from cudalock.wheel.wheel_facts import DEPTHS, Tier, WheelFacts, symbol_digest

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "indices" / "evidence"
_TARGET = Target(
    python="3.12",
    platform="manylinux_2_34_x86_64",
    cuda=newest_minor(13),
    cuda_compat="minor",
)


def main() -> None:
    """Read what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--date", required=True, help="the day to write into the facts")
    parser.add_argument("--only", help="one requirement of the list")
    parser.add_argument("--default-index", help="address of the default index (uv's own setting)")
    args = parser.parse_args()
    table = tomllib.loads((ROOT / "scripts" / "evidence_wheels.toml").read_text("utf-8"))
    EVIDENCE.mkdir(exist_ok=True)
    options = IndexOptions(
        default_index=args.default_index or find_default_index(), only_default=True
    )
    wanted = table["exports"]
    tables = _Tables(project=wanted["project"], libraries=frozenset(wanted["libraries"]))
    told = EVIDENCE / "exports.bin"
    with open_client() as client, Session(options, client=client) as session:
        for tier, requirements in table["tiers"].items():
            for requirement in requirements:
                if args.only not in (None, requirement):
                    continue
                file = find_wheel(session, requirement, _TARGET)
                exporting = file.wheel.project == wanted["project"] and not told.exists()
                release = str(file.wheel.version)
                whole = exporting and release in wanted["whole"]
                if whole or not _is_there(file):
                    contents = _read(client, file, tier)
                    facts = WheelFacts(filename=file.filename, contents=contents, date=args.date)
                    path = EVIDENCE / f"{file.filename}.json"
                    path.write_text(format_facts(file.filename, file.sha256[0], facts), "utf-8")
                    _say(file, tier, contents)
                    if whole:
                        tables.add(file, contents, partial=False)
                if exporting and release in wanted["partial"]:
                    source = client.open_file(file.url, size=file.size)
                    some = inspect_wheel(source, depth="full", only=tables.libraries)
                    _say(file, "exports", some)
                    tables.add(file, some, partial=True)
    if tables.releases and not told.exists():
        told.write_bytes(tables.format())


class _Tables:
    """What releases of a project export, library by library."""

    def __init__(self, *, project: str, libraries: frozenset[str]) -> None:
        self._project = project
        self.libraries = libraries
        self.releases: dict[str, tuple[ListedFile, WheelContents, bool]] = {}

    def add(self, file: ListedFile, contents: WheelContents, *, partial: bool) -> None:
        if not exports_of(contents).exact:
            raise SystemExit(f"{file.filename}: the table of its symbols is not exact")
        self.releases[str(file.wheel.version)] = (file, contents, partial)

    def format(self) -> bytes:
        """Return the file. A partial release lacks only what another has in a library that was read."""
        every = frozenset[str]().union(*(exports_of(c).names for _, c, _ in self.releases.values()))
        read = {
            name
            for _, contents, _ in self.releases.values()
            for library in contents.libraries
            if library.torch is not None and library.path.rpartition("/")[2] in self.libraries
            for name in library.torch.exported
        }
        found = {}
        for release, (file, contents, partial) in self.releases.items():
            names = exports_of(contents).names
            if partial:
                names |= every - read
            found[release] = Exports(
                source=file.filename,
                digests=frozenset(map(symbol_digest, names)),
                partial=partial,
            )
        return format_exports(self._project, found)


def _say(file: ListedFile, what: str, contents: WheelContents) -> None:
    print(f"{file.filename}: {what}, {contents.bytes_read / 1e6:.1f} MB read", file=sys.stderr)


def _is_there(file: ListedFile) -> bool:
    path = EVIDENCE / f"{file.filename}.json"
    try:
        form = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return form["reader"] == READER_VERSION and form["sha256"] in file.sha256


def _read(client: Client, file: ListedFile, tier: Tier) -> WheelContents:
    return inspect_wheel(client.open_file(file.url, size=file.size), depth=DEPTHS[tier])


if __name__ == "__main__":
    main()
