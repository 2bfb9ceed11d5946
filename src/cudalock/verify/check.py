"""`cudalock.check`: one lock, checked against its promises or against a machine."""

from datetime import date
from pathlib import Path

from cudalock.index.knowledge_files import load_knowledge
from cudalock.index.locate import find_indices
from cudalock.lock.model import Lock
from cudalock.verify.lock_check import InputState, check_lock
from cudalock.verify.machine import Machine, judge_machine
from cudalock.verify.problems import CheckResult
from cudalock.wheel.knowledge import Knowledge

__all__ = ["check", "shipped_knowledge"]


def shipped_knowledge() -> Knowledge:
    """Read the knowledge that comes with cudalock; about 30 ms."""
    return load_knowledge(find_indices() / "knowledge")


def check(
    lock: Lock | Path,
    *,
    today: date,
    machine: Machine | None = None,
    inputs: InputState | None = None,
    knowledge: Knowledge | None = None,
) -> CheckResult:
    """Say whether a lock keeps its promises, without the network.

    Without a ``machine`` it is checked for the target it was made for: closed, of one CUDA and one
    build of each partner, fitting, its nightlies not near their end on ``today``. With one, whether
    that machine can run it. ``inputs`` is what the files it was made of say today. ``knowledge`` is
    what comes with cudalock unless given; give it when you check many.

    A lock given by its path is read: `InvalidLockError` for one that breaks PEP 751.
    """
    found = _read(lock) if isinstance(lock, Path) else lock
    known = shipped_knowledge() if knowledge is None else knowledge
    if machine is not None:
        return judge_machine(found, machine, knowledge=known)
    return check_lock(found, knowledge=known, today=today, inputs=inputs)


def _read(path: Path) -> Lock:
    from cudalock.lock.files import read_lock  # noqa: PLC0415 - brings what writes locks along

    return read_lock(path)
