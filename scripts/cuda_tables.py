"""Writes the CUDA tables of the package from recorded facts and our own additions.

    python scripts/cuda_tables.py --facts facts.toml           write src/cudalock/cuda/tables.toml
    python scripts/cuda_tables.py --facts facts.toml --check   say what differs; 1 if anything does

The facts are a file of what vendors publish and measurements gave, a table a source. What they
lack, and the source of every table, is ``cuda_additions.toml`` beside this script, which has the
form of the tables: its text is copied, and below the heading of a table that facts feed, the rows
of both stand in the order of their keys. Facts and additions may not contradict each other. A row
of the facts that states no exact value ("R615 branch") is told and left to the additions.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cudalock.cuda import parse_tables

__all__ = ["FED", "differences", "generate", "main", "unsourced"]

_ROOT: Final = Path(__file__).resolve().parent.parent
ADDITIONS: Final = Path(__file__).with_name("cuda_additions.toml")
TABLES: Final = _ROOT / "src/cudalock/cuda/tables.toml"

_HEADER: Final = "# Written by scripts/cuda_tables.py: change its sources, and not this file.\n"
_HEADING: Final = re.compile(r"\[([a-z0-9_.]+)\]")
_DRIVER: Final = re.compile(r"[0-9]{3,4}\.[0-9]{1,3}(?:\.[0-9]{1,3})?")
_RELEASE: Final = re.compile(r"[0-9]+\.[0-9]+(?:\.[0-9]+)?")

_Value = str | int
_Rows = dict[str, _Value]
# A row that is not taken: its key, and why.
_Left = list[str]


def generate(facts: Mapping[str, Any], additions: str) -> tuple[str, list[str]]:
    """Give the text of the tables, and what of the facts was not taken.

    Raises ``ValueError`` where facts and additions contradict each other, or a table that facts
    feed has no heading, and so no source, in the additions.
    """
    own = tomllib.loads(additions)
    rows: dict[str, _Rows] = {}
    left: _Left = []
    for name, read in FED.items():
        rows[name] = _merged(name, read(facts, left), _table(own, name))
    lines = [_HEADER.rstrip("\n")]
    table = ""
    for line in _body(additions):
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            table = heading[1]
            lines.append(line)
            lines += [_row(key, value) for key, value in rows.pop(table, {}).items()]
        elif table not in FED or not line or line.startswith("#"):
            lines.append(line)
    if rows:
        raise ValueError(f"expected the headings {', '.join(rows)} in the additions, found none")
    text = "\n".join(lines) + "\n"
    parse_tables(text, where="the generated tables")
    missing = unsourced(text)
    if missing:
        raise ValueError(f"expected a source for {', '.join(missing)}, found none")
    return text, left


def unsourced(text: str) -> list[str]:
    """Name the entries of tables that have no source: neither in their table nor in one around it."""

    def walk(path: str, table: Mapping[str, Any], *, sourced: bool) -> Iterator[str]:
        source = table.get("source", "")
        sourced = sourced or (isinstance(source, str) and len(source) > 10)
        for key, value in table.items():
            here = f"{path}.{key}" if path else key
            if isinstance(value, dict):
                yield from walk(here, value, sourced=sourced)
                if not value and not sourced:
                    yield here
            elif not sourced:
                yield here

    return list(walk("", tomllib.loads(text), sourced=False))


def differences(expected: str, found: str) -> list[str]:
    """Say entry by entry what the sources give and ``found`` does not have, or has otherwise."""
    wanted, there = (dict(_entries("", tomllib.loads(text))) for text in (expected, found))
    told = [
        f"{key}: the sources give {wanted.get(key, 'nothing')}, the tables {there.get(key, 'nothing')}"
        for key in dict.fromkeys((*wanted, *there))
        if wanted.get(key) != there.get(key)
    ]
    if not told and expected != found:
        told.append("the comments or the order of the tables")
    return told


def main(arguments: list[str] | None = None) -> int:
    """Write the tables or check them: 0 done or equal, 1 they differ, 2 the sources are at odds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--facts", type=Path, required=True, help="the recorded facts")
    parser.add_argument("--additions", type=Path, default=ADDITIONS)
    parser.add_argument("--tables", type=Path, default=TABLES)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    args = parser.parse_args(arguments)
    try:
        facts = tomllib.loads(args.facts.read_text(encoding="utf-8"))
        text, left = generate(facts, args.additions.read_text(encoding="utf-8"))
    except (OSError, KeyError, ValueError) as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for row in left:
        print(f"not taken: {row}", file=sys.stderr)
    if not args.check:
        args.tables.write_text(text, encoding="utf-8")
        return 0
    told = differences(text, args.tables.read_text(encoding="utf-8"))
    for line in told:
        print(line)
    return 1 if told else 0


def _body(additions: str) -> Iterator[str]:
    """Leave out the first block of comments, which speaks of the additions themselves."""
    _, _, body = additions.partition("\n\n")
    return iter(body.rstrip("\n").split("\n"))


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    for part in name.split("."):
        found = data.get(part, {})
        data = found if isinstance(found, dict) else {}
    return data


def _merged(name: str, facts: _Rows, own: Mapping[str, Any]) -> _Rows:
    for key in facts.keys() & own.keys():
        if facts[key] != own[key]:
            raise ValueError(f"{name}.{key}: the facts say {facts[key]}, the additions {own[key]}")
    rows: _Rows = {**own, **facts}
    return dict(sorted(rows.items(), key=lambda row: tuple(map(int, row[0].split(".")))))


def _row(key: str, value: _Value) -> str:
    left = key if key.isdecimal() else f'"{key}"'
    return f"{left} = {value}" if isinstance(value, int) else f'{left} = "{value}"'


def _entries(path: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from _entries(here, value)
        else:
            yield here, repr(value)


def _toolkit_driver(column: str) -> Callable[[Mapping[str, Any], _Left], _Rows]:
    def read(facts: Mapping[str, Any], left: _Left) -> _Rows:
        rows: _Rows = {}
        for row in facts["toolkit_driver"]["row"]:
            toolkit, driver = row["toolkit"], row[column]
            if _DRIVER.fullmatch(driver) and _RELEASE.fullmatch(toolkit):
                rows[toolkit if toolkit.count(".") == 2 else f"{toolkit}.0"] = driver
            elif not driver.startswith("N/A"):
                left.append(f"toolkit_driver {toolkit} {column}: `{driver}` is no driver version")
        return rows

    return read


def _floor(system: str) -> Callable[[Mapping[str, Any], _Left], _Rows]:
    def read(facts: Mapping[str, Any], left: _Left) -> _Rows:
        rows: _Rows = {}
        for row in facts["minor_version_compat"]["floor"]:
            if _DRIVER.fullmatch(row[system]):
                rows[str(row["major"])] = row[system]
            else:
                left.append(f"floor {row['major']} {system}: `{row[system]}` is no driver version")
        return rows

    return read


def _branches(facts: Mapping[str, Any], _: _Left) -> _Rows:
    return {row["branch"]: row["cuda"] for row in facts["driver_branch_cuda"]["branch"]}


def _forward(facts: Mapping[str, Any], _: _Left) -> _Rows:
    return {
        row["compat"]: " ".join(map(str, row["branches"]))
        for row in facts["forward_compat"]["base_branches"]
    }


def _ptx(facts: Mapping[str, Any], _: _Left) -> _Rows:
    return dict(facts["ptx_isa_min_cuda"]["map"])


def _targets(facts: Mapping[str, Any], _: _Left) -> _Rows:
    return {row["toolkit"]: " ".join(row["sm"]) for row in facts["ptxas_targets"]["toolkit"]}


def _families(facts: Mapping[str, Any], _: _Left) -> _Rows:
    return {
        name.removesuffix("f"): " ".join(members)
        for name, members in facts["families"]["f"].items()
    }


def _aliases(facts: Mapping[str, Any], left: _Left) -> _Rows:
    given: Mapping[str, str] = facts["families"]["alias"]
    rows: _Rows = {old: int(new) for old, new in given.items() if old.isdecimal()}
    for old, new in given.items():
        # `101a` is `110a` follows from `101` is `110`; anything else would be a rule of its own.
        if not old.isdecimal() and f"{rows.get(old[:-1], '')}{old[-1]}" != new:
            left.append(f"alias {old}: `{new}` does not follow from that of {old[:-1]}")
    return rows


# The tables that facts feed. All others are additions as a whole; of devices the facts hold
# examples in prose, which are no list of names.
FED: Final[Mapping[str, Callable[[Mapping[str, Any], _Left], _Rows]]] = {
    "toolkit_driver.linux": _toolkit_driver("linux_min"),
    "toolkit_driver.windows": _toolkit_driver("windows_min"),
    "floor.linux": _floor("linux"),
    "floor.windows": _floor("windows"),
    "branch.cuda": _branches,
    "forward.branches": _forward,
    "ptx.cuda": _ptx,
    "targets.sm": _targets,
    "family.members": _families,
    "alias.number": _aliases,
}

if __name__ == "__main__":
    sys.exit(main())
