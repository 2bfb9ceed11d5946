"""Every question of `cudalock check` that the lock itself answers, in one call.

Cost: about 0.5 ms a package, most of it requirements that are parsed. That no two wheels own one path
is not asked: a record holds no paths yet. It is one more function of a `Selection` beside these.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from cudalock.host.target import Target
from cudalock.lock.model import Lock
from cudalock.verify.builds import builds_of, contradictions, excluded
from cudalock.verify.closure import closure_problems, unneeded
from cudalock.verify.problems import CheckResult, Problem
from cudalock.verify.recorded import read_records, read_target
from cudalock.verify.selection import Selection, select
from cudalock.verify.together import bond_problems, cuda_problems
from cudalock.wheel.knowledge import Knowledge

__all__ = ["NEAR_EXPIRY", "InputState", "check_lock", "first_expiry"]

NEAR_EXPIRY = timedelta(days=7)
"""From how long before its day a nightly is near its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputState:
    """What the inputs of a lock say today: their digest, or why that could not be told."""

    digest: str | None = None
    unread: str | None = None
    target: Target | None = None


def check_lock(
    lock: Lock,
    *,
    knowledge: Knowledge,
    today: date,
    inputs: InputState | None = None,
) -> CheckResult:
    """Check a lock against its own promises, for the target it was made for.

    ``inputs`` is what the files it was made of say today; without it that is not asked. ``today`` is
    for nightlies. Raises nothing for any lock that `read_lock` returns.
    """
    target = read_target(lock)
    if target is None:
        return CheckResult(
            problems=(
                Problem(
                    code="not-recorded",
                    severity="unknown",
                    message="expected the target it was made for in [tool.cudalock.target], found "
                    f"none that can be read (the lock says it was made by {lock.created_by[:60]})",
                    hint="name the machine, `--here` or `--target NAME`, or lock with cudalock",
                ),
            ),
            packages=len(lock.packages),
        )
    selection = select(lock, target)
    builds = builds_of(selection, target, knowledge)
    problems = [
        *_input_problems(lock, target, inputs),
        *selection.problems,
        *closure_problems(lock, selection),
        *excluded(builds, target, knowledge),
        *contradictions(builds),
        *cuda_problems(builds, target),
        *bond_problems(builds, selection, knowledge),
        *_expiring(selection, today),
        *_unneeded(lock, selection),
    ]
    return CheckResult(problems=tuple(problems), packages=len(selection.entries), name=target.name)


def _input_problems(lock: Lock, target: Target, inputs: InputState | None) -> Iterator[Problem]:
    if inputs is None:
        return
    table = lock.tool.get("inputs")
    recorded = table.get("digest") if isinstance(table, Mapping) else None
    if inputs.unread is not None or not isinstance(recorded, str):
        why = inputs.unread or "the lock does not record what it was made of"
        yield Problem(
            code="inputs",
            severity="unknown",
            message=f"whether its inputs still match could not be told: {why}",
        )
        return
    if inputs.digest != recorded:
        yield Problem(
            code="inputs",
            severity="broken",
            message="expected the requirements it was made for, found that they changed since",
            hint="lock again with `cudalock resolve`",
        )
    if inputs.target is not None and inputs.target != target:
        told = ", ".join(_changed_fields(target, inputs.target))
        yield Problem(
            code="target",
            severity="broken",
            message=f"expected the target `{target.name}` as it was locked for, found that it "
            f"changed since: {told}",
            hint="lock again with `cudalock resolve`",
        )


_FIELDS = {
    "python": "python",
    "platform": "platform",
    "free_threaded": "free-threaded",
    "driver": "driver",
    "driver_cuda": "driver-cuda",
    "cuda": "cuda",
    "cuda_compat": "cuda-compat",
    "compat": "compat",
    "capabilities": "sm",
    "cpu": "cpu",
    "tegra": "tegra",
    "wsl": "wsl",
}


def _changed_fields(old: Target, new: Target) -> Iterator[str]:
    for field, key in _FIELDS.items():
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            yield f"{key} was {_shown(before)} and is {_shown(after)}"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "not given"
    return "not given" if value is None else str(value)


def first_expiry(lock: Lock) -> date | None:
    """Return the first day on which an answer about the lock's nightlies changes; None without any."""
    days = [
        record.expires - NEAR_EXPIRY
        for package in lock.packages
        for record in read_records(package).values()
        if record.expires is not None
    ]
    return min(days, default=None)


def _expiring(selection: Selection, today: date) -> Iterator[Problem]:
    for name in sorted(selection.entries):
        entry = selection.entries[name]
        day = entry.record.expires if entry.record is not None else None
        if day is None or today < day - NEAR_EXPIRY:
            continue
        if today < day:
            yield Problem(
                code="nightly",
                severity="warning",
                message=f"{entry} is a nightly that its publisher drops about {day}",
                package=name,
                hint="lock again, or mirror it, before that day",
            )
        else:
            yield Problem(
                code="nightly",
                severity="unknown",
                message=f"{entry} is a nightly that its publisher dropped about {day}",
                package=name,
                hint="`cudalock check --online` asks whether it is still there",
            )


def _unneeded(lock: Lock, selection: Selection) -> Iterator[Problem]:
    for entry in unneeded(lock, selection):
        yield Problem(
            code="unneeded",
            severity="warning",
            message=f"nothing that was asked for requires {entry}",
            package=entry.name,
        )
