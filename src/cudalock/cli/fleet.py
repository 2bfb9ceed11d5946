"""``cudalock check --fleet FILE``: a table of machines against locks.

The file is TOML. Each ``[machines.NAME]`` has the keys of a named target (``python platform driver
driver-cuda sm gpu``, or ``cpu = true`` for a machine without a GPU) and may name the one ``lock`` that
it installs; ``locks`` at the top names the columns, every lock of the folder without it. Paths are
relative to the file. A machine that names its lock is answered by that one, any other by each.
"""

import json
import sys
import textwrap
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudalock.cli.annotations import Finding, format_github, format_markdown, format_sarif
from cudalock.cli.check_machine import target_machine
from cudalock.cli.open_locks import OpenLock, open_locks
from cudalock.cli.terminal import Terminal, printable
from cudalock.errors import UsageError
from cudalock.host import TargetOptions
from cudalock.project.pyproject import read_toml
from cudalock.verify.check import shipped_knowledge
from cudalock.verify.machine import judge_machine
from cudalock.verify.problems import CheckResult, exit_code, worst

__all__ = ["FleetMachine", "parse_fleet", "run_fleet"]

SCHEMA = "cudalock/fleet/1"
_TEXT_KEYS = ("python", "platform", "driver", "driver-cuda")
_LIST_KEYS = ("sm", "gpu")
_WORDS = {"ok": "yes", "broken": "no", "unknown": "?", "invalid": "no lock"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMachine:
    """One machine of a fleet file, and the lock that it installs where it names one."""

    name: str
    options: TargetOptions
    lock: str | None = None


def parse_fleet(text: str, *, where: str) -> tuple[tuple[FleetMachine, ...], tuple[str, ...]]:
    """Read a fleet file: its machines in order, and the locks it names. Raises `UsageError`."""
    table = read_toml(text, where=where)
    _known_keys(table, ("locks", "machines"), where)
    locks = _list(table, "locks", where)
    machines = table.get("machines")
    if not isinstance(machines, dict) or not machines:
        raise UsageError("expected [machines.NAME] tables, found none", where=where)
    found = []
    for name, value in machines.items():
        place = f"{where}: machines.{name}"
        if not isinstance(value, dict):
            raise UsageError("expected a table", where=place)
        _known_keys(value, (*_TEXT_KEYS, *_LIST_KEYS, "cpu", "lock"), place)
        texts = {key: _one(value, key, place) for key in (*_TEXT_KEYS, "lock")}
        cpu = value.get("cpu", False)
        if not isinstance(cpu, bool):
            raise UsageError("expected true or false", where=f"{place}.cpu")
        if not cpu and texts["driver"] is None and texts["driver-cuda"] is None:
            message = "expected `driver`, `driver-cuda` or `cpu = true`, found none of them"
            raise UsageError(message, where=place)
        options = TargetOptions(
            python=texts["python"],
            platform=texts["platform"],
            driver=texts["driver"],
            driver_cuda=texts["driver-cuda"],
            sm=_list(value, "sm", place),
            gpu=_list(value, "gpu", place),
            cpu=cpu,
        )
        found.append(FleetMachine(name=name, options=options, lock=texts["lock"]))
    return tuple(found), locks


def _known_keys(table: Mapping[str, object], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            message = f"expected one of {', '.join(known)}, found `{key[:80]}`"
            raise UsageError(message, where=where)


def _one(table: Mapping[str, object], key: str, where: str) -> str | None:
    value = table.get(key)
    if value is None or isinstance(value, str):
        return value
    raise UsageError("expected a text", where=f"{where}.{key}")


def _list(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise UsageError("expected a list of texts", where=f"{where}: {key}")


def run_fleet(args: Namespace, terminal: Terminal) -> int:
    """Print the table; the exit code is the worst answer of a machine."""
    path = Path(args.fleet)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read it: {error}", where=args.fleet) from error
    machines, named = parse_fleet(text, where=args.fleet)
    named = (*named, *(m.lock for m in machines if m.lock is not None and m.lock not in named))
    names = args.locks or [str(path.parent / name) for name in dict.fromkeys(named)]
    locks = open_locks(names, path.parent)
    knowledge = shipped_knowledge()
    rows: list[tuple[FleetMachine, dict[str, CheckResult]]] = []
    for machine in machines:
        row: dict[str, CheckResult] = {}
        for each in locks:
            if each.lock is not None and _installs(machine, each, path.parent):
                where = f"{args.fleet}: machines.{machine.name}"
                asked = target_machine(machine.options, machine.name, each.lock, where)
                row[each.path.name] = judge_machine(each.lock, asked, knowledge=knowledge)
        rows.append((machine, row))
    invalid = [each for each in locks if each.lock is None]
    for each in invalid:
        terminal.error(f"{each.path} is no lock: {each.faults[0]}")
    statuses = [*("invalid" for _ in invalid), *(_answer(row) for _, row in rows)]
    sys.stdout.write(_format(args.format, args.fleet, rows, [each.path.name for each in locks]))
    return exit_code(worst(statuses))


def _installs(machine: FleetMachine, lock: OpenLock, folder: Path) -> bool:
    return machine.lock is None or lock.path.resolve() == (folder / machine.lock).resolve()


def _answer(row: Mapping[str, CheckResult]) -> str:
    """Return the best answer of a machine: one lock that it can run is enough.

    A machine that names its lock has only that one.
    """
    found = {result.status for result in row.values()}
    return next((s for s in ("ok", "unknown", "broken") if s in found), "unknown")


_Rows = Sequence[tuple[FleetMachine, Mapping[str, CheckResult]]]


def _format(style: str, path: str, rows: _Rows, locks: Sequence[str]) -> str:
    if style == "json":
        return json.dumps(_form(rows), indent=2) + "\n"
    findings = [
        Finding(
            code=problem.code,
            level="unknown" if result.status == "unknown" else "error",
            message=f"{machine.name}, {lock}: {problem.message}",
            path=path,
        )
        for machine, row in rows
        if _answer(row) != "ok"
        for lock, result in row.items()
        for problem in result.problems
    ]
    if style == "github":
        return format_github(findings)
    if style == "sarif":
        return format_sarif(findings)
    if style == "markdown":
        return format_markdown(findings, title=f"{path}: {_summary(rows)}")
    return printable(_table(rows, locks))


def _summary(rows: _Rows) -> str:
    good = sum(_answer(row) == "ok" for _, row in rows)
    return f"{good} of {len(rows)} machines can run a lock"


def _table(rows: _Rows, locks: Sequence[str]) -> str:
    width = max(len("machine"), *(len(machine.name) for machine, _ in rows))
    heads = [name.removesuffix(".toml") for name in locks]
    lines = ["  ".join(["machine".ljust(width), *heads]).rstrip()]
    for machine, row in rows:
        cells = [
            (_WORDS[row[lock].status] if lock in row else "-").ljust(len(head))
            for lock, head in zip(locks, heads, strict=True)
        ]
        lines.append("  ".join([machine.name.ljust(width), *cells]).rstrip())
    reasons = [
        f"{machine.name}, {lock}: {result.problems[0].message}"
        for machine, row in rows
        for lock, result in row.items()
        if not result.ok
    ]
    for reason in reasons:
        lines += ["", *textwrap.wrap(reason, 80, subsequent_indent="  ", break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def _form(rows: _Rows) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "status": worst(_answer(row) for _, row in rows),
        "machines": [
            {
                "name": machine.name,
                "status": _answer(row),
                "locks": [
                    {
                        "path": lock,
                        "status": result.status,
                        "problems": [
                            {
                                "code": problem.code,
                                "severity": problem.severity,
                                "message": problem.message,
                                "package": problem.package,
                            }
                            for problem in result.problems
                        ],
                    }
                    for lock, result in row.items()
                ],
            }
            for machine, row in rows
        ],
    }
