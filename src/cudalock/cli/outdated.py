"""``cudalock outdated``: newer releases of what is locked, and what keeps the lock from them."""

import json
import sys
import textwrap
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cudalock.cli.check_online import asking
from cudalock.cli.open_locks import find_lock
from cudalock.cli.terminal import Terminal, printable
from cudalock.verify.outdated import NewerRelease, find_newer

__all__ = ["run_outdated"]


def run_outdated(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Print newer releases: 0 every index was read, 3 one of them could not be."""
    lock = find_lock(args.lock, Path(args.project or "."))
    with terminal.status("asking the indices"), asking(args, environ) as ask:
        found = find_newer(lock, client=ask[0], definitions=ask[1], executor=ask[2])
    newer = [one for one in found if one.newest is not None]
    unread = [one for one in found if one.error is not None]
    status = "unknown" if unread else "outdated" if newer else "current"
    if args.format == "json":
        form = {
            "schema": "cudalock/outdated/1",
            "status": status,
            "packages": [_form(one) for one in (*newer, *unread)],
        }
        sys.stdout.write(json.dumps(form, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{printable(line)}\n" for line in _text(newer)))
    for one in unread:
        terminal.warn(f"whether {one.name} has a newer release could not be told: {one.error}")
    return 3 if unread else 0


def _form(one: NewerRelease) -> dict[str, object]:
    return {
        "name": one.name,
        "version": one.version,
        "newest": one.newest,
        "kept_by": list(one.kept_by),
        "error": one.error,
    }


def _text(newer: Sequence[NewerRelease]) -> Iterator[str]:
    if not newer:
        yield "No newer release was found."
    widths = [
        max((len(text) for text in column), default=0)
        for column in ([one.name for one in newer], [one.version for one in newer])
    ]
    for one in newer:
        yield f"{one.name.ljust(widths[0])}  {one.version.ljust(widths[1])}  -> {one.newest}"
        for why in one.kept_by:
            yield from textwrap.wrap(
                why, 80, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False
            )
