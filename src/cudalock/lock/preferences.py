"""What an existing lock makes preferred when it is made again.

A lock is a preference and no constraint: a release that still may be in the set stays, whatever is
newer. The very wheel stays where the lock was made for the same target; for another CUDA release only
the releases do, since the builds are others.
"""

from collections.abc import Collection, Mapping

from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.errors import UsageError
from cudalock.host.target import Target
from cudalock.lock.model import Lock
from cudalock.lock.several import lock_of_target, target_extras
from cudalock.resolver.request import Preference

__all__ = ["ALL", "preferences_of"]

ALL = "*"
"""Among the names to upgrade: every one of them."""


def preferences_of(
    lock: Lock, target: Target, *, upgrade: Collection[str] = ()
) -> dict[str, Preference]:
    """Return the preferences that a lock gives for a target, by project, but for those to ``upgrade``.

    Raises `UsageError` for a name to upgrade that the lock does not have.
    """
    if ALL in upgrade:
        return {}
    names: set[str] = {canonicalize_name(name) for name in upgrade}
    unknown = sorted(names - {package.name for package in lock.packages})
    if unknown:
        raise UsageError(
            f"expected a project of the lock, found `{unknown[0][:80]}`", flag="--upgrade"
        )
    own, same = _own_lock(lock, target)
    found: dict[str, Preference] = {}
    for package in own.packages:
        if package.name in names:
            continue
        public = Version(package.version).public
        wheel = package.wheels[0].name if same and len(package.wheels) == 1 else None
        if (
            found.setdefault(package.name, Preference(public=public, filename=wheel)).public
            != public
        ):
            # Several releases that nothing recorded tells apart: none of them is the one.
            names.add(package.name)
    return {name: preference for name, preference in found.items() if name not in names}


def _own_lock(lock: Lock, target: Target) -> tuple[Lock, bool]:
    """Return the part of a lock that is for a target, and whether it was made for that CUDA."""
    known = target_extras(lock)
    if target.name is not None and target.name in known:
        own = lock_of_target(lock, target)
    elif len(known) == 1:
        own = lock
    else:
        return lock, False
    described = own.tool.get("target")
    cuda = described.get("cuda") if isinstance(described, Mapping) else None
    return own, cuda == (None if target.cuda is None else str(target.cuda))
