"""Gives every project of a scenario another name, throughout: in it, and in the knowledge it uses.

A name becomes its letters moved by thirteen (``torch`` is ``gbepu``). What tells a CUDA release
stays: labels, folders, and the end of a name like ``-cu12``.
"""

import codecs
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudalock.wheel import parse_wheel_file
from scenario_worlds import SHIPPED, Scenario

__all__ = ["rename_projects"]

_KEPT = re.compile(r"cu(?:da)?\d+x?\Z")


def rename_projects(scenario: Scenario) -> Scenario:
    """Return the scenario with other names, in what is asked, what there is and what is expected."""
    names = sorted(set(_names(scenario.table)), key=lambda name: (-len(name), name))
    spelled = "|".join(re.escape(name).replace(r"\-", "[-_.]") for name in names)
    # Not after what makes it a part of a label or another name; `<libtorch>` is torch's.
    pattern = re.compile(rf"(?:(?<![\w.+-])|(?<=<lib))(?:{spelled})(?![A-Za-z0-9])", re.IGNORECASE)

    def rename(text: str) -> str:
        return pattern.sub(lambda found: _other_name(found[0]), text)

    table = {
        key: value if key in ("about", "source", "shipped") else _everywhere(value, rename)
        for key, value in scenario.table.items()
    }
    return Scenario(name=scenario.name, table=table, rename=rename)


def _other_name(name: str) -> str:
    parts = re.split(r"([-_.])", name)
    return "".join(p if _KEPT.match(p) else codecs.encode(p, "rot13") for p in parts)


def _everywhere(value: Any, rename: Callable[[str], str]) -> Any:  # noqa: ANN401 - TOML is anything
    match value:
        case str():
            return rename(value)
        case list():
            return [_everywhere(each, rename) for each in value]
        case dict():
            # In what is said of bytes, keys are words and not names.
            word = "libraries" in value or "path" in value
            return {
                key if word else rename(key): _everywhere(each, rename)
                for key, each in value.items()
            }
        case _:
            return value


def _names(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield every project that a scenario speaks of, and every one of the knowledge it uses."""
    yield from table.get("prereleases", [])
    yield from table.get("incomplete", [])
    texts = [*table["requirements"], *table.get("constraints", []), *table.get("overrides", [])]
    for wheel in table["wheels"]:
        yield parse_wheel_file(wheel["file"]).project
        texts += wheel.get("requires", [])
    for text in texts:
        yield canonicalize_name(Requirement(text).name)
    shipped = [(SHIPPED / f"{name}.toml").read_text("utf-8") for name in table.get("shipped", [])]
    for text in (*shipped, table.get("knowledge", "")):
        for entry in tomllib.loads(text).get("entry", []):
            project = entry["project"]
            yield from project if isinstance(project, list) else [project]
            if entry["kind"] in ("family", "train"):
                yield from entry["value"]
