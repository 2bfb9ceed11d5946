"""``cudalock resolve --target a --target b``: several targets, one lock or one each (``--split``)."""

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from cudalock.cli.inputs import Inputs
from cudalock.cli.json_form import format_json, locked_form
from cudalock.cli.recorded_inputs import describe_inputs
from cudalock.cli.relock import finish_lock, read_previous
from cudalock.cli.report import report_resolution
from cudalock.cli.terminal import Terminal
from cudalock.errors import UsageError
from cudalock.explain.report import format_fact
from cudalock.lock import Lock, format_lock
from cudalock.lock.preferences import preferences_of
from cudalock.lock.several import TargetLock, join_locks
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.facts import FactKind
from cudalock.resolver.resolution import Resolution
from cudalock.session import IndexOptions, Session
from cudalock.targets import PinDifference, TargetRequest, pin_differences, resolve_for

__all__ = ["Member", "lock_path", "resolve_several"]

SCHEMA = "cudalock/resolve-targets/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """A target with its set and its own lock; ``previous`` is the lock that its pins are in by now."""

    member: "Member"
    asked: TargetRequest
    resolution: Resolution
    made: TargetLock
    previous: Lock | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of the targets: its arguments, as if it were the only one, and what they ask for."""

    args: Namespace
    inputs: Inputs


def lock_path(args: Namespace, inputs: Inputs) -> Path:
    """Return where the lock of several targets belongs."""
    if args.split and args.output:
        raise UsageError(
            "expected --split or -o, found both: each target has a lock of its own name",
            flag="--split",
        )
    return Path(args.output) if args.output else inputs.folder / "pylock.toml"


def resolve_several(
    members: Sequence[Member],
    session: Session,
    *,
    options: IndexOptions,
    environ: Mapping[str, str],
    terminal: Terminal,
    refuse: Callable[[Member, NoSolutionError], int],
    solving: AbstractContextManager[object],
) -> int:
    """Solve each target, the default one first, and write what was asked for; return the exit code.

    ``refuse`` tells a proved "no" of one target, after which nothing is written. ``solving`` shows
    progress until something is to be said.
    """
    first = members[0]
    args = first.args
    path = lock_path(args, first.inputs)
    previous = _previous(members, path)
    solved: list[_Solved] = []
    with solving:
        for member in members:
            before = previous.get(_name(member))
            asked = _request(member, options, before)
            try:
                resolution = resolve_for(session, asked, [s.resolution for s in solved])
            except NoSolutionError as error:
                return refuse(member, error)
            download = args.hash_missing == "download"
            resolution = session.settle_hashes(resolution, asked.request, download=download)
            folder = member.inputs.folder if args.output == "-" else path.parent
            lock = session.lock(
                resolution,
                asked.request,
                download_hashes=download,
                folder=folder,
                inputs=describe_inputs(member.args, environ, folder),
            )
            made = TargetLock(target=resolution.target, lock=lock)
            solved.append(
                _Solved(
                    member=member, asked=asked, resolution=resolution, made=made, previous=before
                )
            )
        differences = pin_differences(
            session, [s.asked for s in solved], [s.resolution for s in solved]
        )
    written = _write(solved, path, terminal)
    if args.format == "json":
        sys.stdout.write(format_json(_form(solved, differences, written)))
    _say(solved, differences, written, terminal=terminal, requests=session.requests)
    return 0


def _previous(members: Sequence[Member], path: Path) -> dict[str, Lock | None]:
    """Return the lock that each target's pins are in by now, by target name."""
    args = members[0].args
    if args.output == "-":
        return {}
    if args.split:
        return {_name(m): read_previous(m.inputs.lock_path) for m in members}
    lock = read_previous(path)
    return {_name(member): lock for member in members}


def _name(member: Member) -> str:
    return member.inputs.target.name or ""


def _request(member: Member, options: IndexOptions, previous: Lock | None) -> TargetRequest:
    inputs = member.inputs
    request = inputs.request
    if previous is not None:
        preferences = preferences_of(previous, inputs.target, upgrade=member.args.upgrade)
        request = replace(request, preferences=preferences)
    return TargetRequest(
        target=inputs.target,
        request=request,
        options=replace(inputs.indices, default_index=options.default_index),
    )


def _write(solved: Sequence[_Solved], path: Path, terminal: Terminal) -> list[str | None]:
    """Write one lock, or one a target; return for each target where its pins are."""
    args = solved[0].member.args
    if args.split:
        return [
            finish_lock(args, s.member.inputs.lock_path, s.made.lock, s.previous, terminal)
            for s in solved
        ]
    lock = join_locks([s.made for s in solved])
    if args.output == "-" and not args.dry_run:
        if args.format != "json":
            sys.stdout.write(format_lock(lock))
        return ["-"] * len(solved)
    return [finish_lock(args, path, lock, solved[0].previous, terminal)] * len(solved)


def _say(
    solved: Sequence[_Solved],
    differences: Sequence[PinDifference],
    written: Sequence[str | None],
    *,
    terminal: Terminal,
    requests: int,
) -> None:
    for place, each in enumerate(solved):
        terminal.say()
        terminal.say(f"Target {each.made.name}:")
        # What was asked of the indices was asked for all of them.
        last = place == len(solved) - 1
        report_resolution(
            terminal,
            each.resolution,
            written=written[place],
            requests=requests if last else 0,
            extra=None if solved[0].member.args.split or not place else each.made.extra,
        )
    for difference in differences:
        if difference.tried:
            _say_difference(difference, terminal)
    for name in dict.fromkeys(d.target for d in differences):
        others = [d for d in differences if d.target == name and not d.tried]
        if others:
            told = ", ".join(f"{d.project} {d.other_version} and {d.version}" for d in others)
            terminal.note(f"what follows differs, too, for {others[0].other} and {name}: {told}")


def _say_difference(difference: PinDifference, terminal: Terminal) -> None:
    told = (
        f"{difference.project} is {difference.other_version} for {difference.other} and "
        f"{difference.version} for {difference.target}"
    )
    if difference.conflict is None:
        unknown = "; whether it must be could not be told" if difference.must is None else ""
        terminal.note(told + unknown)
        return
    own = (FactKind.CONSTRAINT, FactKind.REQUIREMENT)
    facts = [f for f in difference.conflict.facts if f.fact.kind not in own]
    because = " and ".join(format_fact(fact) for fact in facts[:3])
    terminal.note(f"{told}, and must be" + (f": {because}" if because else ""))


def _form(
    solved: Sequence[_Solved],
    differences: Sequence[PinDifference],
    written: Sequence[str | None],
) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "status": "locked",
        "default": solved[0].made.name,
        "targets": [
            locked_form(each.resolution, path, each.member.inputs.warnings)
            for each, path in zip(solved, written, strict=True)
        ],
        "differences": [
            {
                "project": d.project,
                "versions": {d.other: d.other_version, d.target: d.version},
                "must": d.must,
                "because": []
                if d.conflict is None
                else [format_fact(fact) for fact in d.conflict.facts],
            }
            for d in differences
        ],
    }
