"""``cudalock diff``: what changed between two locks, CUDA and GPUs first."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from cudalock.cli.annotations import markdown_table
from cudalock.cli.open_locks import find_lock
from cudalock.cli.terminal import printable
from cudalock.lock.compare import LockDifference, compare_locks
from cudalock.lock.cuda_changes import CudaChange, cuda_changes

__all__ = ["run_diff"]

# An entry: its name, its version before and after, and which other parts differ.
_Row = tuple[str, str | None, str | None, tuple[str, ...]]


def run_diff(args: Namespace) -> int:
    """Print what changed from one lock to another; 0 also where something did."""
    old, new = find_lock(args.old, Path()), find_lock(args.new, Path())
    cuda, difference = cuda_changes(old, new), compare_locks(old, new)
    rows = sorted(_rows(difference))
    if args.format == "json":
        sys.stdout.write(json.dumps(_form(cuda, difference, rows), indent=2) + "\n")
    elif args.format == "markdown":
        sys.stdout.write(_markdown(args, cuda, difference, rows))
    else:
        lines = _text(cuda, difference, rows)
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
    return 0


def _rows(difference: LockDifference) -> Iterator[_Row]:
    for package in difference.added:
        yield package.name, None, package.version, ()
    for package in difference.removed:
        yield package.name, package.version, None, ()
    for change in difference.changed:
        parts = tuple(part for part in change.parts if part != "version")
        yield change.new.name, change.old.version, change.new.version, parts


def _text(
    cuda: Sequence[CudaChange], difference: LockDifference, rows: Sequence[_Row]
) -> Iterator[str]:
    if not cuda and not difference:
        yield "The locks say the same."
    for one in cuda:
        yield f"! {one.what}: {one.old or 'none'} -> {one.new or 'none'}"
    for setting in difference.settings:
        yield f"! {setting.key}: {setting.old} -> {setting.new}"
    for name, old, new, parts in rows:
        if old is None:
            yield f"+ {name} {new}"
        elif new is None:
            yield f"- {name} {old}"
        elif old != new:
            yield f"~ {name} {old} -> {new}"
        else:
            yield f"~ {name} {new}: {', '.join(parts)}"


def _markdown(
    args: Namespace,
    cuda: Sequence[CudaChange],
    difference: LockDifference,
    rows: Sequence[_Row],
) -> str:
    old, new = Path(args.old).name, Path(args.new).name
    title = f"### {old}" if old == new else f"### {old} -> {new}"
    if not cuda and not difference:
        return f"{title}\n\nNothing changed.\n"
    parts = [title]
    changes = [(one.what, one.old or "-", one.new or "-") for one in cuda]
    changes += [(one.key, one.old, one.new) for one in difference.settings]
    if changes:
        parts.append(markdown_table(("CUDA and machine", "before", "after"), changes))
    moved = [(name, a or "-", b or "-") for name, a, b, _ in rows if a != b]
    if moved:
        parts.append(markdown_table(("package", "before", "after"), moved))
    same = [(name, a or "", ", ".join(what)) for name, a, b, what in rows if a == b]
    if same:
        parts.append(markdown_table(("package", "version", "what changed"), same))
    return "\n\n".join(parts) + "\n"


def _form(
    cuda: Sequence[CudaChange], difference: LockDifference, rows: Sequence[_Row]
) -> dict[str, object]:
    return {
        "schema": "cudalock/diff/1",
        "same": not cuda and not difference,
        "cuda": [{"what": one.what, "old": one.old, "new": one.new} for one in cuda],
        "settings": [
            {"key": one.key, "old": one.old, "new": one.new} for one in difference.settings
        ],
        "packages": [
            {"name": name, "old": old, "new": new, "parts": list(parts)}
            for name, old, new, parts in rows
        ],
    }
