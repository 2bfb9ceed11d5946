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
    from cudalock.api import IndexOptions, Session, detect_target, inspect, resolve
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
    from cudalock.lock import Lock, read_lock, write_lock
    from cudalock.resolver.conflict import Conflict, NoSolutionError
    from cudalock.resolver.resolution import Resolution
    from cudalock.resolver.source import MemorySource, Source
    from cudalock.wheel.report import WheelReport

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
    "MemorySource",
    "NoSolutionError",
    "Resolution",
    "ResolutionError",
    "ResolutionStoppedError",
    "Session",
    "Source",
    "Target",
    "UsageError",
    "WheelError",
    "WheelReport",
    "detect_target",
    "inspect",
    "parse_driver_version",
    "read_lock",
    "resolve",
    "write_lock",
]

_HOMES = {
    "cudalock.api": ("IndexOptions", "Session", "detect_target", "inspect", "resolve"),
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
    "cudalock.lock": ("Lock", "read_lock", "write_lock"),
    "cudalock.resolver.conflict": ("Conflict", "NoSolutionError"),
    "cudalock.resolver.resolution": ("Resolution",),
    "cudalock.resolver.source": ("MemorySource", "Source"),
    "cudalock.wheel.report": ("WheelReport",),
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
