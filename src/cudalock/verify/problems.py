"""What was found in a lock: problems with a stable code, a severity and a place.

``broken`` is proved: a promise does not hold. ``unknown`` could not be told, which is neither. A
``warning`` breaks nothing today. The answer for a lock is the worst of them, and a proof outranks a
doubt.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["CheckResult", "Problem", "Severity", "exit_code", "worst"]

Severity = Literal["broken", "unknown", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that was found.

    ``code`` is stable and in kebab case; ``message`` says what was expected, what was found and by
    which evidence; ``package`` is the project it is about, ``hint`` what to do.
    """

    code: str
    severity: Severity
    message: str
    package: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What was found in one lock, for one target or machine; ``name`` is that one's, if it has one.

    ``packages`` is how many entries of the lock the target selects.
    """

    problems: tuple[Problem, ...] = ()
    packages: int = 0
    name: str | None = None

    @property
    def status(self) -> Literal["ok", "broken", "unknown"]:
        """Whether every promise holds, one is broken, or that could not be told."""
        found = {problem.severity for problem in self.problems}
        if "broken" in found:
            return "broken"
        return "unknown" if "unknown" in found else "ok"

    @property
    def ok(self) -> bool:
        """Whether every promise holds."""
        return self.status == "ok"


_EXIT_CODES = {"ok": 0, "broken": 1, "unknown": 3}


def exit_code(status: str) -> int:
    """Return the exit code of a status; a lock that is no lock (``invalid``) is a wrong question."""
    return _EXIT_CODES.get(status, 2)


def worst(statuses: Iterable[str]) -> str:
    """Return the status of several: what is no lock first, then a proof, then a doubt."""
    found = set(statuses)
    return next((s for s in ("invalid", "broken", "unknown") if s in found), "ok")
