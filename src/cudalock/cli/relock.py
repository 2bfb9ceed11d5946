"""Making a lock again: what the one that is there prefers, and what became of it.

`--locked` and `--frozen` have uv's meaning: with `--locked` the lock is made and must come out as it is,
with `--frozen` it is taken as it is and nothing is asked.
"""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cudalock.cli.terminal import Terminal
from cudalock.errors import LockMismatchError, UsageError
from cudalock.lock import (
    Lock,
    TomlValue,
    compare_locks,
    format_difference,
    format_lock,
    read_lock,
    write_lock,
)

__all__ = ["check_flags", "describe_frozen", "finish_lock", "read_previous"]

_MOST_LINES = 20


def check_flags(args: Namespace) -> None:
    """Refuse flags that contradict each other, with a `UsageError`."""
    given = [f"--{name}" for name in ("locked", "frozen") if getattr(args, name)]
    if args.upgrade:
        given.append("--upgrade")
    if len(given) > 1:
        raise UsageError(f"expected one of them, found {' and '.join(given)}", flag=given[0])
    if args.output == "-" and (args.locked or args.frozen):
        raise UsageError("expected a lock file, found `-o -`", flag=given[0])


def read_previous(path: Path) -> Lock | None:
    """Return the lock that is there, or None; raises what `read_lock` raises of a broken one."""
    return read_lock(path) if path.exists() else None


def finish_lock(
    args: Namespace, path: Path, lock: Lock, previous: Lock | None, terminal: Terminal
) -> str | None:
    """Write a lock, or hold it against the one that is there; return the path, None if not written.

    Raises `LockMismatchError` under ``--locked`` when it would change.
    """
    if previous is not None:
        lock = _as_before(previous, lock)
    changes = (
        [] if previous is None else format_difference(compare_locks(previous, lock)).splitlines()
    )
    if args.locked:
        _hold(path, lock, previous, changes)
        terminal.say(f"{path} is as it would be made again.")
        return None
    if args.dry_run:
        if previous is not None:
            word = "would not change" if not changes else "would change:"
            terminal.say(f"{path} {word}")
        _say_changes(terminal, changes)
        return None
    if write_lock(path, lock):
        _say_changes(terminal, changes)
    elif previous is not None:
        terminal.say(f"{path} is unchanged.")
    return str(path)


def _as_before(previous: Lock, lock: Lock) -> Lock:
    """Return the lock that was there if nothing but what a search came across tells them apart.

    What is held back is known of wheels that were looked at, and who has a pin need not look at newer ones.
    """
    same = replace(lock, tool=_without_notes(lock.tool))
    before = replace(previous, tool=_without_notes(previous.tool))
    return previous if format_lock(same) == format_lock(before) else lock


def _without_notes(tool: Mapping[str, TomlValue]) -> dict[str, TomlValue]:
    kept = {key: value for key, value in tool.items() if key not in ("warnings", "held-back")}
    codes = tool.get("warnings")
    if isinstance(codes, Sequence) and not isinstance(codes, str):
        kept["warnings"] = [code for code in codes if code != "held-back"]
    targets = tool.get("targets")
    if isinstance(targets, Mapping):
        kept["targets"] = {
            name: _without_notes(table) if isinstance(table, Mapping) else table
            for name, table in targets.items()
        }
    # Nothing left to warn of is the same as no warning.
    return {key: value for key, value in kept.items() if value != []}


def _hold(path: Path, lock: Lock, previous: Lock | None, changes: list[str]) -> None:
    if previous is None:
        raise LockMismatchError(
            "expected a lock, found none; leave --locked out to make it",
            where=str(path),
            flag="--locked",
        )
    if format_lock(previous) != format_lock(lock):
        # What is recorded beside the entries (target, requirements, warnings) counts, too.
        told = changes or ["what [tool.cudalock] records of the target or the requirements"]
        shown = told[:_MOST_LINES]
        more = [f"and {len(told) - len(shown)} more"] if len(told) > len(shown) else []
        raise LockMismatchError(
            "expected the lock to stay as it is, found that it would change "
            f"({path}):\n  " + "\n  ".join([*shown, *more]),
            flag="--locked",
        )


def _say_changes(terminal: Terminal, changes: list[str]) -> None:
    for line in changes[:_MOST_LINES]:
        terminal.say(f"  {line}")
    if len(changes) > _MOST_LINES:
        terminal.say(f"  and {len(changes) - _MOST_LINES} more changes")


def describe_frozen(path: Path, terminal: Terminal) -> None:
    """Read a lock under ``--frozen`` and say what it is; raises `UsageError` where there is none."""
    lock = read_lock(path)
    terminal.say(f"{path} is taken as it is: {len(lock.packages)} entries. Nothing was asked.")
