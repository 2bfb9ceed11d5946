"""``cudalock check``: whether locks keep their promises, and whether machines can run them.

Without a flag nothing but files is read. What asks a machine, an environment or an index lives in
modules of its own, which are imported when they are asked for.
"""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

from cudalock.cli.check_report import LockReport, entry_lines, format_report, status_of
from cudalock.cli.open_locks import OpenLock, open_locks
from cudalock.cli.stamp import keep_answer
from cudalock.cli.terminal import Terminal
from cudalock.errors import UsageError
from cudalock.lock.model import Lock
from cudalock.verify.check import shipped_knowledge
from cudalock.verify.lock_check import InputState, check_lock, first_expiry
from cudalock.verify.problems import CheckResult, exit_code
from cudalock.verify.recorded import read_target
from cudalock.wheel.knowledge import Knowledge

__all__ = ["run_check"]


def run_check(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Check locks: 0 every promise holds, 1 one is broken, 2 no lock, 3 could not tell."""
    folder = Path(args.project or ".")
    if args.fleet is not None:
        from cudalock.cli.fleet import run_fleet  # noqa: PLC0415 - asked for by a flag only

        return run_fleet(args, terminal)
    locks = open_locks(args.locks, folder)
    knowledge = shipped_knowledge()
    today = datetime.now(UTC).date()
    sources: list[tuple[str, bytes]] = []
    reports = []
    for each in locks:
        results: dict[str, CheckResult] = {}
        if each.lock is not None:
            inputs = _inputs(each.lock, each.path.parent, environ, sources)
            results["lock"] = check_lock(each.lock, knowledge=knowledge, today=today, inputs=inputs)
            results |= _beside(args, environ, folder, each.lock, knowledge)
        reports.append(
            LockReport(
                path=each.path.as_posix(),
                results=results,
                invalid=each.faults,
                lines=entry_lines(each.data.decode("utf-8", "replace")),
            )
        )
    printed = format_report(reports, style=args.format, quiet=args.quiet)
    sys.stdout.write(printed)
    status = status_of(reports)
    found = any(True for report in reports for _ in report.findings())
    if status == "ok" and not found and all(path for path, _ in sources):
        files = [(str(each.path), each.data) for each in locks] + sources
        keep_answer(args.words, environ, printed=printed, files=files, until=_until(locks))
    return exit_code(status)


def _inputs(
    lock: Lock,
    folder: Path,
    environ: Mapping[str, str],
    sources: list[tuple[str, bytes]],
) -> InputState | None:
    """Read the inputs of a lock again; those that stand in one pyproject.toml are noted.

    A source without a path says that there were others, whose bytes nobody kept.
    """
    from cudalock.cli.recorded_inputs import (  # noqa: PLC0415 - a foreign lock has none
        input_files,
        read_digest,
        read_named_target,
    )

    target = read_target(lock)
    inputs = lock.tool.get("inputs")
    if target is None:
        return None
    if not isinstance(inputs, Mapping) or not inputs.keys() - {"digest"}:
        return InputState(unread="the lock does not say where they are written")
    try:
        for path in input_files(inputs, folder):
            plain = path.name == "pyproject.toml"
            sources.append((str(path), path.read_bytes()) if plain else ("", b""))
        digest, project = read_digest(inputs, target, folder=folder, environ=environ)
        return InputState(digest=digest, target=read_named_target(project, target, lock))
    except UsageError as error:
        return InputState(unread=str(error))
    except OSError as error:
        return InputState(unread=f"{error.filename}: {error.strerror}")


def _beside(
    args: Namespace,
    environ: Mapping[str, str],
    folder: Path,
    lock: Lock,
    knowledge: Knowledge,
) -> dict[str, CheckResult]:
    """Return what was asked beside the lock itself, by its name."""
    found: dict[str, CheckResult] = {}
    if args.here or args.target is not None:
        from cudalock.cli import check_machine  # noqa: PLC0415 - asked for by a flag only

        if args.here:
            found["here"] = check_machine.judge_here(lock, environ, knowledge)
        if args.target is not None:
            found[args.target] = check_machine.judge_target(lock, folder, args.target, knowledge)
    if args.env is not None:
        from cudalock.cli.environments import read_environment  # noqa: PLC0415 - as above
        from cudalock.verify.installed import compare_installed  # noqa: PLC0415 - as above

        found["env"] = compare_installed(lock, read_environment(args.env), name=args.env)
    if args.online:
        from cudalock.cli.check_online import ask_indices  # noqa: PLC0415 - as above

        found["online"] = ask_indices(lock, args, environ)
    return found


def _until(locks: Sequence[OpenLock]) -> int:
    """Return the time from which on an answer may be another: the first nightly nears its end."""
    days = [first_expiry(each.lock) for each in locks if each.lock is not None]
    first = min((day for day in days if day is not None), default=date(9999, 1, 1))
    return int(datetime.combine(first, time(), tzinfo=UTC).timestamp())
