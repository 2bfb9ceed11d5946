"""``cudalock index list``: the publishers that are known, from their definitions; asks nobody."""

import json
import sys
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from cudalock.cli.terminal import printable
from cudalock.index.definitions import Definition, load_definitions
from cudalock.index.locate import find_indices

__all__ = ["run_index_list"]

_SCHEMA = "cudalock/index-list/1"
_WIDTH = 80


def run_index_list(args: Namespace) -> int:
    """List the publishers; loads no client."""
    folder = find_indices()
    definitions = load_definitions(folder)
    if args.format == "json":
        sys.stdout.write(json.dumps(_form(definitions, folder), indent=2) + "\n")
    else:
        sys.stdout.write(printable(_text(definitions, folder)))
    return 0


def _recorded(definition: Definition, folder: Path) -> bool:
    return (folder / "recorded" / definition.name / "publisher.json").is_file()


def _form(definitions: Sequence[Definition], folder: Path) -> dict[str, object]:
    """Return the JSON form of ``index list``."""
    return {
        "schema": _SCHEMA,
        "publishers": [
            {
                "name": d.name,
                "projects": sorted(d.projects),
                "nightly_projects": sorted(d.nightly_projects),
                "serves": sorted(d.serves),
                "stable": list(d.stable),
                "nightly": list(d.nightly),
                "nightly_days": d.nightly_days,
                "targets": d.targets,
                "recorded": _recorded(d, folder),
                "source": d.source,
            }
            for d in definitions
        ],
    }


def _text(definitions: Sequence[Definition], folder: Path) -> str:
    """Return a line a publisher, and its address and projects below it."""
    lines = []
    for d in definitions:
        marks = [
            word
            for word, there in (
                ("recorded", _recorded(d, folder)),
                (
                    "nightlies" + (f" for {d.nightly_days} days" if d.nightly_days else ""),
                    d.nightly,
                ),
                (f"for {d.targets} machines", d.targets),
                ("only when asked for by name", not d.projects and not d.nightly_projects),
            )
            if there
        ]
        lines.append(f"{d.name:<18}{', '.join(marks)}".rstrip())
        lines += _filled("  source of ", sorted(d.projects))
        lines += _filled("  nightlies of ", sorted(d.nightly_projects))
        lines += _filled("  builds ", sorted(d.serves))
        lines.append(f"  {d.templates[0]}" + (" ..." if len(d.templates) > 1 else ""))
    return "\n".join(lines) + "\n"


def _filled(lead: str, names: Sequence[str], most: int = 6) -> list[str]:
    if not names:
        return []
    text = ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")
    return textwrap.wrap(
        text, _WIDTH, initial_indent=lead, subsequent_indent="    ", break_on_hyphens=False
    )
