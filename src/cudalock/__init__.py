"""cudalock: locks Python wheels built for CUDA so that they run on the target.

The library::

    import cudalock

    target = cudalock.Target(python="3.12", platform="manylinux_2_28_x86_64", ...)
    resolution = cudalock.resolve(["torch"], target=target, indices=cudalock.IndexOptions(...))

Nothing here prints, reads the environment or keeps state. Names are imported when they are first
used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalock.api import IndexOptions, Session, detect_target, resolve, this_python
    from cudalock.cuda import (
        ComputeCapability,
        CudaVersion,
        DriverVersion,
        parse_driver_version,
    )
    from cudalock.errors import (
        CudalockError,
        HostError,
        IndexAccessError,
        InvalidLockError,
        LockError,
        LockMismatchError,
        ResolutionError,
        ResolutionStoppedError,
        UsageError,
        WheelError,
    )
    from cudalock.host import Target
    from cudalock.lock import Lock, LockedPackage, LockedWheel, read_lock, write_lock
    from cudalock.lock.selection import SelectedWheel, select
    from cudalock.resolver.conflict import Conflict, NoSolutionError
    from cudalock.resolver.resolution import Resolution
    from cudalock.resolver.source import MemorySource, Source

__all__ = [
    "ComputeCapability",
    "Conflict",
    "CudaVersion",
    "CudalockError",
    "DriverVersion",
    "HostError",
    "IndexAccessError",
    "IndexOptions",
    "InvalidLockError",
    "Lock",
    "LockError",
    "LockMismatchError",
    "LockedPackage",
    "LockedWheel",
    "MemorySource",
    "NoSolutionError",
    "Resolution",
    "ResolutionError",
    "ResolutionStoppedError",
    "SelectedWheel",
    "Session",
    "Source",
    "Target",
    "UsageError",
    "WheelError",
    "detect_target",
    "parse_driver_version",
    "read_lock",
    "resolve",
    "select",
    "this_python",
    "write_lock",
]

_HOMES = {
    "cudalock.api": ("IndexOptions", "Session", "detect_target", "resolve", "this_python"),
    "cudalock.cuda": (
        "ComputeCapability",
        "CudaVersion",
        "DriverVersion",
        "parse_driver_version",
    ),
    "cudalock.errors": (
        "CudalockError",
        "HostError",
        "IndexAccessError",
        "InvalidLockError",
        "LockError",
        "LockMismatchError",
        "ResolutionError",
        "ResolutionStoppedError",
        "UsageError",
        "WheelError",
    ),
    "cudalock.host": ("Target",),
    "cudalock.lock": ("Lock", "LockedPackage", "LockedWheel", "read_lock", "write_lock"),
    "cudalock.lock.selection": ("SelectedWheel", "select"),
    "cudalock.resolver.conflict": ("Conflict", "NoSolutionError"),
    "cudalock.resolver.resolution": ("Resolution",),
    "cudalock.resolver.source": ("MemorySource", "Source"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
