"""Whether an installed environment holds what a lock says, by the names and versions it records.

An environment is a list of what is installed; how it was found is for those who ask. Only names and
versions are compared: the bytes of an installed wheel are the installer's promise.
"""

from collections.abc import Iterator, Mapping

from packaging.version import InvalidVersion, Version

from cudalock.lock.model import Lock
from cudalock.verify.problems import CheckResult, Problem
from cudalock.verify.recorded import read_target
from cudalock.verify.selection import select

__all__ = ["compare_installed"]

# What an installer brings along and no lock asks for.
_INSTALLERS = frozenset({"pip", "setuptools", "wheel", "uv"})


def compare_installed(lock: Lock, installed: Mapping[str, str], *, name: str) -> CheckResult:
    """Compare an environment's distributions, normalised names to versions, with a lock.

    What is installed beside the lock is a warning; what is missing or of another version is broken.
    """
    target = read_target(lock)
    if target is None:
        problem = Problem(
            code="not-recorded",
            severity="unknown",
            message="which of its entries are for this environment is not known: "
            "[tool.cudalock.target] does not say",
        )
        return CheckResult(problems=(problem,), name=name)
    selection = select(lock, target)
    problems: list[Problem] = []
    for project in sorted(selection.entries):
        entry = selection.entries[project]
        found = installed.get(project)
        if found is None:
            message = f"expected {entry}, found that it is not installed"
            problems.append(
                Problem(code="not-installed", severity="broken", message=message, package=project)
            )
        elif not _same(found, entry.version):
            message = f"expected {entry}, found {found} installed"
            problems.append(
                Problem(code="other-version", severity="broken", message=message, package=project)
            )
    problems += _beside(installed, frozenset(selection.entries))
    return CheckResult(problems=tuple(problems), packages=len(selection.entries), name=name)


def _same(found: str, wanted: Version) -> bool:
    try:
        return Version(found) == wanted
    except InvalidVersion:
        return False


def _beside(installed: Mapping[str, str], locked: frozenset[str]) -> Iterator[Problem]:
    beside = sorted(installed.keys() - locked - _INSTALLERS)
    if beside:
        shown = ", ".join(beside[:5]) + (f" and {len(beside) - 5} more" if len(beside) > 5 else "")
        message = f"installed beside the lock: {shown}"
        yield Problem(code="beside", severity="warning", message=message)
