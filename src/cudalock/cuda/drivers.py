"""Which driver goes with which CUDA.

Three different statements, kept apart (CUDA Compatibility; CUDA release notes, tables 2 and 3):

- a driver *supports* CUDA up to some release (``driver_cuda``), by its branch;
- a toolkit *was released with* a driver (``toolkit_driver``): from it on, everything of that
  release works, PTX and new driver calls too;
- a major *has a floor* (``floor_driver``): from it on, machine code of every minor runs.

Drivers are Linux ones unless ``system`` says ``windows``; under WSL the driver is Windows'.
"""

from dataclasses import dataclass

from cudalock.cuda.tables import System, Tables, shipped_tables
from cudalock.cuda.version import (
    CudaVersion,
    DriverVersion,
    PtxIsa,
    parse_cuda_version,
)
from cudalock.errors import UsageError

__all__ = [
    "DriverCuda",
    "default_ptx_isa",
    "driver_cuda",
    "floor_driver",
    "forward_branches",
    "forward_releases",
    "known_majors",
    "known_releases",
    "l4t_cuda",
    "newest_minor",
    "ptx_minimum_cuda",
    "toolkit_driver",
    "toolkit_driver_row",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCuda:
    """The newest CUDA a driver supports; not ``exact`` if its branch is not in the tables."""

    cuda: CudaVersion
    exact: bool


def driver_cuda(driver: DriverVersion, *, tables: Tables | None = None) -> DriverCuda:
    """Tell the newest CUDA that ``driver`` supports.

    A branch the tables do not know counts as the nearest older one, which supports no more than
    it does. Raises ``UsageError`` for a driver older than every known branch.
    """
    branches = (tables or shipped_tables()).branch
    older = [branch for branch in branches if branch <= driver.branch]
    if not older:
        raise UsageError(
            f"expected a driver of branch {min(branches)} (CUDA {branches[min(branches)]}) or newer,"
            f" found {driver}",
            flag="--driver",
        )
    nearest = max(older)
    return DriverCuda(cuda=branches[nearest], exact=nearest == driver.branch)


def l4t_cuda(major: int, minor: int, *, tables: Tables | None = None) -> CudaVersion | None:
    """Tell the CUDA of a Jetson by its L4T release: that of the nearest older one of its major.

    ``None`` where none is known.
    """
    known = (tables or shipped_tables()).l4t
    older = [release for release in known if release[0] == major and release[1] <= minor]
    return known[max(older)] if older else None


def forward_branches(cuda: CudaVersion, *, tables: Tables | None = None) -> frozenset[int]:
    """Tell the driver branches that the package ``cuda-compat`` of ``cuda`` is made for.

    A branch that is not among them is not known to work; empty where none is known.
    """
    return (tables or shipped_tables()).forward.get(cuda, frozenset())


def forward_releases(
    driver: DriverVersion, *, tables: Tables | None = None
) -> tuple[CudaVersion, ...]:
    """Tell the releases, ascending, that have a package ``cuda-compat`` for the driver's branch."""
    forward = (tables or shipped_tables()).forward
    return tuple(cuda for cuda, branches in forward.items() if driver.branch in branches)


def toolkit_driver(
    cuda: CudaVersion, *, system: System = "linux", tables: Tables | None = None
) -> DriverVersion | None:
    """Tell the driver from which on everything of the release ``cuda`` works.

    It is the lowest row of that release. Where NVIDIA's row is not published yet it is the oldest
    driver seen to report that CUDA, which may be newer than needed and is never too old. ``None``
    if neither is known.
    """
    tables = tables or shipped_tables()
    rows = [
        driver
        for (major, minor, _), driver in tables.toolkit_driver[system].items()
        if (major, minor) == (cuda.major, cuda.minor)
    ]
    return min(rows) if rows else tables.seen_driver[system].get(cuda)


def toolkit_driver_row(
    toolkit: str, *, system: System = "linux", tables: Tables | None = None
) -> DriverVersion | None:
    """Tell the driver of one toolkit: ``12.8.1``, or ``12.8`` for the lowest of that release.

    ``None`` if it has no row. Raises ``UsageError`` for anything but two or three numbers.
    """
    parts = toolkit.strip().split(".")
    cuda = parse_cuda_version(".".join(parts[:2]))
    if len(parts) == 2:
        return toolkit_driver(cuda, system=system, tables=tables)
    if len(parts) != 3 or not (parts[2].isascii() and parts[2].isdecimal() and len(parts[2]) < 4):
        raise UsageError(f"expected a toolkit as X.Y.Z (12.8.1), found `{toolkit[:60]}`")
    rows = (tables or shipped_tables()).toolkit_driver[system]
    return rows.get((cuda.major, cuda.minor, int(parts[2])))


def floor_driver(
    major: int, *, system: System = "linux", tables: Tables | None = None
) -> DriverVersion | None:
    """Tell the oldest driver that runs machine code of every toolkit of ``major``, if known."""
    return (tables or shipped_tables()).floor[system].get(major)


def known_majors(*, tables: Tables | None = None) -> tuple[int, ...]:
    """Return the CUDA majors whose floor is known, ascending."""
    return tuple(sorted((tables or shipped_tables()).floor["linux"]))


def newest_minor(major: int, *, tables: Tables | None = None) -> CudaVersion | None:
    """Tell the newest release of ``major`` that any table mentions, if one does."""
    tables = tables or shipped_tables()
    known = {*tables.branch.values(), *tables.targets, *tables.ptx.values()}
    return max((cuda for cuda in known if cuda.major == major), default=None)


def known_releases(major: int, *, tables: Tables | None = None) -> tuple[CudaVersion, ...]:
    """Return the releases of ``major`` whose toolkit any table mentions, ascending."""
    tables = tables or shipped_tables()
    rows = {row for drivers in tables.toolkit_driver.values() for row in drivers}
    released = {CudaVersion(major=first, minor=second) for first, second, _ in rows}
    return tuple(sorted(cuda for cuda in {*released, *tables.targets} if cuda.major == major))


def ptx_minimum_cuda(isa: PtxIsa, *, tables: Tables | None = None) -> CudaVersion | None:
    """Tell the CUDA a driver must support to compile PTX of ``isa``, if the table has it."""
    return (tables or shipped_tables()).ptx.get(isa)


def default_ptx_isa(cuda: CudaVersion, *, tables: Tables | None = None) -> PtxIsa | None:
    """Tell the ISA that the compiler of ``cuda`` writes: the newest not newer than itself.

    12.6 brought none and writes 8.5. ``None`` for a release newer than the table, whose ISA is
    not known, and for one older than it.
    """
    ptx = (tables or shipped_tables()).ptx
    if cuda > max(ptx.values()):
        return None
    return max((isa for isa, needed in ptx.items() if needed <= cuda), default=None)
