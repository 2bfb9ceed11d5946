"""cudalock: locks Python wheels built for CUDA so that they run on the target.

The library::

    import cudalock

    target = cudalock.Target(python="3.12", platform="manylinux_2_28_x86_64", ...)
    resolution = cudalock.resolve(["torch"], target=target, indices=cudalock.IndexOptions(...))

Nothing here prints, reads the environment or keeps state. Names are imported when they are first
used, so that importing the package costs next to nothing.
"""

from cudalock.lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.api import IndexOptions, Session, detect_target, inspect, resolve, this_python
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
    from cudalock.verify.check import check
    from cudalock.verify.lock_check import InputState
    from cudalock.verify.machine import Machine
    from cudalock.verify.problems import CheckResult, Problem
    from cudalock.wheel.report import WheelReport

__all__ = [
    "CheckResult",
    "ComputeCapability",
    "Conflict",
    "CudaVersion",
    "CudalockError",
    "DriverVersion",
    "HostError",
    "IndexAccessError",
    "IndexOptions",
    "InputState",
    "InvalidLockError",
    "Lock",
    "LockError",
    "LockMismatchError",
    "LockedPackage",
    "LockedWheel",
    "Machine",
    "MemorySource",
    "NoSolutionError",
    "Problem",
    "Resolution",
    "ResolutionError",
    "ResolutionStoppedError",
    "SelectedWheel",
    "Session",
    "Source",
    "Target",
    "UsageError",
    "WheelError",
    "WheelReport",
    "check",
    "detect_target",
    "inspect",
    "parse_driver_version",
    "read_lock",
    "resolve",
    "select",
    "this_python",
    "write_lock",
]

__getattr__ = lazy_names(
    __name__,
    {
        "api": (
            "IndexOptions",
            "Session",
            "detect_target",
            "inspect",
            "resolve",
            "this_python",
        ),
        "cuda": (
            "ComputeCapability",
            "CudaVersion",
            "DriverVersion",
            "parse_driver_version",
        ),
        "errors": (
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
        "host": ("Target",),
        "lock": ("Lock", "LockedPackage", "LockedWheel", "read_lock", "write_lock"),
        "lock.selection": ("SelectedWheel", "select"),
        "resolver.conflict": ("Conflict", "NoSolutionError"),
        "resolver.resolution": ("Resolution",),
        "resolver.source": ("MemorySource", "Source"),
        "verify.check": ("check",),
        "verify.lock_check": ("InputState",),
        "verify.machine": ("Machine",),
        "verify.problems": ("CheckResult", "Problem"),
        "wheel.report": ("WheelReport",),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
