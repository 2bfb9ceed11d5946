"""Which wheels of a lock a target installs (PEP 751, "Installation"), for whoever installs them.

The standard's own steps, with the target's values in place of the running interpreter's. Whether the target's
driver and GPUs run those wheels is another question, which `fitness` answers.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from cudalock.errors import LockMismatchError, UsageError
from cudalock.host.target import Target, marker_environment
from cudalock.lock.model import Lock, LockedPackage, LockedWheel
from cudalock.lock.several import best_wheel

__all__ = ["SelectedWheel", "select"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedWheel:
    """A wheel to install, and the entry of the lock that it stands in."""

    package: LockedPackage
    wheel: LockedWheel


def select(
    lock: Lock,
    target: Target,
    *,
    extras: AbstractSet[str] = frozenset(),
    groups: AbstractSet[str] | None = None,
) -> tuple[SelectedWheel, ...]:
    """Return the wheels that ``target`` installs of a lock, in the order of the lock.

    ``extras`` and ``groups`` are what the person asks for; ``groups`` are the lock's default ones if not
    given. Raises `UsageError` for a name that the lock does not declare, and `LockMismatchError` with all
    that does not fit: another Python or environment, no wheel for the target, two entries of one project.
    Linear in the entries; nothing is read or asked.
    """
    _check_declared(extras, lock.extras, "an extra")
    declared = {*lock.dependency_groups, *lock.default_groups}
    _check_declared(groups or frozenset(), declared, "a group")
    environment: dict[str, str | AbstractSet[str]] = {
        **marker_environment(target),
        "extras": extras,
        "dependency_groups": frozenset(lock.default_groups) if groups is None else groups,
    }
    faults = list(_misfits(lock, target))
    chosen: dict[str, SelectedWheel] = {}
    # What is for another Python altogether need not be told of each wheel.
    for package in () if faults else lock.packages:
        if package.marker is not None and not Marker(package.marker).evaluate(
            environment, context="lock_file"
        ):
            continue
        wheel = best_wheel(package.wheels, target)
        if package.name in chosen:
            faults.append(f"expected one entry of {package.name}, found several")
        elif wheel is None:
            found = ", ".join(wheel.name for wheel in package.wheels[:3])
            faults.append(f"expected a wheel of {package.name} for {_here(target)}, found {found}")
        else:
            chosen[package.name] = SelectedWheel(package=package, wheel=wheel)
    if faults:
        raise LockMismatchError("\n".join(faults))
    return tuple(chosen.values())


def _check_declared(asked: Iterable[str], declared: Iterable[str], what: str) -> None:
    unknown = sorted(set(asked) - set(declared))
    if unknown:
        known = ", ".join(f"`{name}`" for name in sorted(declared)) or "none"
        raise UsageError(f"expected {what} of the lock ({known}), found `{unknown[0][:80]}`")


def _misfits(lock: Lock, target: Target) -> Iterator[str]:
    """Say whether the lock as a whole is for another Python or environment."""
    environment = marker_environment(target)
    wanted, python = lock.requires_python, environment["python_full_version"]
    if wanted is not None and not SpecifierSet(wanted).contains(python, prereleases=True):
        yield f"expected Python {wanted}, found {_here(target)}"
    elif lock.environments and not any(Marker(m).evaluate(environment) for m in lock.environments):
        yield f"expected an environment of `{' or '.join(lock.environments)}`, found {_here(target)}"


def _here(target: Target) -> str:
    return f"Python {target.python} on {target.platform}"
