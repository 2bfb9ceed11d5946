"""A wheel's bytes as a person or a program asks for them: library by library, and a verdict for a machine.

The values are those of `contents.py` and `coverage.py`; what is not known stays unknown, and "nothing
runs there" is said only of what was read whole.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.wheel.contents import WheelContents
from cudalock.wheel.coverage import DeviceCoverage, coverage_of, loose_coverage
from cudalock.wheel.images import BareCubin, Image
from cudalock.wheel.library import Library
from cudalock.wheel.wheel_facts import Tier

__all__ = ["DeviceReport", "LibraryReport", "WheelReport", "WheelVerdict", "report_on"]

WheelVerdict: TypeAlias = Literal["runs", "in-part", "nothing", "unknown", "no-device-code"]

_LOOSE = "files of device code"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryReport:
    """One library: what it holds (``sm_120a``, ``compute_120@9.0``) and needs (sonames).

    ``needed`` is None when it is not known; ``containers`` counts those of device code,
    ``torch_abi`` is ``none``, ``stable`` or ``cxx``, None when not read.
    """

    path: str
    architectures: tuple[str, ...]
    ptx: tuple[str, ...]
    needed: tuple[str, ...] | None
    containers: int
    torch_abi: str | None
    copy_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """What a wheel means for one GPU: each library with device code, and all together."""

    capability: ComputeCapability
    verdict: WheelVerdict
    coverage: tuple[tuple[str, DeviceCoverage], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelReport:
    """What was read of a wheel. ``complete`` says that nothing more could be learnt from it."""

    tier: Tier
    complete: bool
    bytes_read: int
    size: int
    architectures: tuple[str, ...]
    ptx: tuple[str, ...]
    needed: tuple[str, ...]
    libraries: tuple[LibraryReport, ...]
    loose: tuple[tuple[str, int], ...]
    devices: tuple[DeviceReport, ...]
    anomalies: tuple[str, ...]


def report_on(
    contents: WheelContents,
    *,
    tier: Tier,
    capabilities: tuple[ComputeCapability, ...] = (),
    driver_cuda: CudaVersion | None = None,
) -> WheelReport:
    """Describe what was read, and what it means for each GPU; ``driver_cuda`` decides on PTX."""
    libraries = tuple(_library(library) for library in contents.libraries)
    images = {
        str(image)
        for library in contents.libraries
        for image, _ in library.code.images
        if image.kind == "ptx"
    }
    machine_code = {image for library in contents.libraries for image in library.code.architectures}
    loose: dict[str, int] = {}
    for code in contents.loose:
        told = str(code.code) if code.code is not None else "not told"
        loose[told] = loose.get(told, 0) + code.count
    ordered = [str(architecture) for architecture in sorted(machine_code)]
    ordered += sorted(
        {str(c.code) for c in contents.loose if isinstance(c.code, BareCubin)} - set(ordered)
    )
    images |= {str(c.code) for c in contents.loose if isinstance(c.code, Image)}
    return WheelReport(
        tier=tier,
        complete=contents.complete,
        bytes_read=contents.bytes_read,
        size=contents.size,
        architectures=tuple(ordered),
        ptx=tuple(sorted(images)),
        needed=tuple(sorted({name for each in libraries for name in each.needed or ()})),
        libraries=libraries,
        loose=tuple(sorted(loose.items())),
        devices=tuple(_device(contents, each, driver_cuda) for each in capabilities),
        anomalies=contents.anomalies,
    )


def _library(library: Library) -> LibraryReport:
    code = library.code
    bare = sorted(str(cubin) for cubin, _ in code.bare_cubins) if not code.containers else []
    return LibraryReport(
        path=library.path,
        architectures=(*(str(architecture) for architecture in code.architectures), *bare),
        ptx=tuple(dict.fromkeys(str(image) for image in code.ptx)),
        needed=None if library.needed is None else tuple(sorted(library.needed)),
        containers=code.containers,
        torch_abi=None if library.torch is None else library.torch.style,
        copy_of=library.copy_of,
    )


def _device(
    contents: WheelContents, capability: ComputeCapability, driver_cuda: CudaVersion | None
) -> DeviceReport:
    found = [
        (library.path, coverage_of(library, capability, driver_cuda))
        for library in contents.libraries
        if library.copy_of is None
    ]
    if contents.loose:
        found.append((_LOOSE, loose_coverage(contents.loose, capability, driver_cuda)))
    return DeviceReport(
        capability=capability,
        verdict=_together([coverage for _, coverage in found]),
        coverage=tuple((path, c) for path, c in found if c.verdict != "no-device-code"),
    )


def _together(found: list[DeviceCoverage]) -> WheelVerdict:
    """Judge a wheel by its libraries: never by the union of what they hold."""
    verdicts = {coverage.verdict for coverage in found} - {"no-device-code"}
    if not verdicts:
        return "no-device-code"
    if verdicts == {"covered"}:
        return "runs"
    if verdicts == {"none"}:
        return "nothing"
    if verdicts <= {"covered", "partial", "none"}:
        return "in-part"
    return "in-part" if verdicts & {"covered", "partial", "present"} else "unknown"
