"""Forward compatibility: which newer CUDA a machine runs with the package ``cuda-compat`` of it.

NVIDIA, CUDA Compatibility, "Forward Compatibility": the package brings the driver's user part of a
newer release, on Linux, for data-centre GPUs, and for kernel drivers of listed branches. Elsewhere
programs stop at once (CUDA error 804), so what is not known to be allowed is refused here, with the
condition that fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    DriverVersion,
    capability_of,
    class_of,
    forward_branches,
    forward_releases,
)
from cudalock.errors import UsageError

__all__ = ["Machine", "compat_package", "forward_release"]

_REFUSED = {
    "geforce": "is a GeForce or Titan, on which it does not start (CUDA error 804)",
    "workstation": "is sold for workstations too, where it is not guaranteed: NVIDIA allows it on"
    " select models only",
    "jetson": "is a Jetson, which has packages of its own that are not told here",
    None: "is not known to be one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What forward compatibility depends on; ``gpus`` are names, as given or detected."""

    linux: bool
    driver: DriverVersion | None
    driver_cuda: CudaVersion | None
    gpus: Sequence[str]
    capabilities: Sequence[ComputeCapability]


def compat_package(release: CudaVersion) -> str:
    """Name the package of a release: ``cuda-compat-13-0``."""
    return f"cuda-compat-{release.major}-{release.minor}"


def forward_release(machine: Machine, asked: CudaVersion | None) -> CudaVersion | None:
    """Tell the release whose package lets the machine run ``asked``.

    Without ``asked`` it is the newest that is listed for the driver's branch. ``None`` where the
    driver runs what is asked, or where nothing newer is listed, so no package is needed.

    Raises:
        UsageError: a condition of forward compatibility fails, or is not known to hold.

    """
    runs = machine.driver_cuda
    if asked is not None and runs is not None and asked <= runs:
        return None
    if machine.driver is None or runs is None:
        raise UsageError(
            "forward compatibility depends on the driver's branch, and the driver is not known;"
            " --driver says",
            flag="--driver",
        )
    if asked is None:
        newer = [release for release in forward_releases(machine.driver) if release > runs]
        if not newer:
            return None
        asked = newer[-1]
    if not machine.linux:
        raise UsageError("forward compatibility is for Linux, and not for Windows or WSL")
    _check_gpus(machine)
    branches = sorted(forward_branches(asked))
    if machine.driver.branch not in branches:
        listed = ", ".join(map(str, branches))
        known = f"is listed for drivers of branch {listed}" if branches else "is not known"
        raise UsageError(
            f"{compat_package(asked)}, which would run CUDA {asked}, {known}; found driver"
            f" {machine.driver}",
            flag="--driver",
        )
    return asked


def _check_gpus(machine: Machine) -> None:
    """Refuse the machine unless each of its GPUs is named, and its name that of the data centre."""
    if not machine.gpus:
        raise UsageError(
            "forward compatibility is for data-centre GPUs, and a compute capability does not tell"
            " them from others; --gpu h100 says which GPU it is",
            flag="--gpu",
        )
    for name in machine.gpus:
        sold = class_of(name)
        if sold != "data-centre":
            raise UsageError(
                f"forward compatibility is for data-centre GPUs, and `{name[:80]}` {_REFUSED[sold]}",
                flag="--gpu",
            )
    named = {capability_of(name) for name in machine.gpus}
    for capability in machine.capabilities:
        if capability not in named:
            raise UsageError(
                "forward compatibility is for data-centre GPUs, and which GPU has compute"
                f" capability {capability} is not known; --gpu says",
                flag="--gpu",
            )
