"""What a library's device code means for one device, container by container.

A container holds the same code for several architectures, so one piece of it must serve; a library
serves whole when each of its containers does. It is never judged by the union over a wheel, and
nothing is called missing unless the library was read whole and without a doubt. A container is a
translation unit, not a kernel: this is evidence of what may fail, not of what is called.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cudalock.cuda import ComputeCapability, CudaVersion, PtxIsa, ptx_minimum_cuda
from cudalock.wheel.contents import LooseCode
from cudalock.wheel.fatbin import DeviceCode
from cudalock.wheel.images import Image
from cudalock.wheel.library import Library
from cudalock.wheel.serving import Answer, Piece, serves

__all__ = [
    "CompilerTrace",
    "DeviceCoverage",
    "Verdict",
    "coverage_of",
    "loose_coverage",
    "trace_compiler",
]

Verdict: TypeAlias = Literal["covered", "partial", "present", "none", "unknown", "no-device-code"]

# Below this every compiler of CUDA 12 and older writes cubins 1.7, every one of CUDA 13 writes 1.8.
_VERSION_TELLS_BELOW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCoverage:
    """How many of ``units`` (containers, or files) serve a device, by machine code or else by PTX.

    - ``covered``: all do; ``partial``: some do, and the others are proved not to;
    - ``present``: some do, and the others are not known;
    - ``none``: proved that none does; ``unknown``: none is known to, and it is not proved;
    - ``no-device-code``: there is none, which is not the same: code may be compiled on the machine.
    """

    verdict: Verdict
    units: int
    by_cubin: int
    by_ptx: int
    reason: str = ""

    @property
    def served(self) -> int:
        """How many units serve the device."""
        return self.by_cubin + self.by_ptx


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerTrace:
    """What the device code itself tells of the compiler that made it: observations, no proof.

    ``major_from``/``major_to``: the bounds of the CUDA major that most cubins below sm_100 point to.
    ``ptx_cuda``: the CUDA that brought the newest PTX ISA in it: the compiler is that one, or a later
    one that brought no ISA of its own.
    """

    old_cubins: int
    new_cubins: int
    newest_isa: PtxIsa | None = None
    ptx_cuda: CudaVersion | None = None

    @property
    def major_to(self) -> int | None:
        """12 when most cubins below sm_100 have the format of CUDA 12 and older."""
        return 12 if self.old_cubins > self.new_cubins else None

    @property
    def major_from(self) -> int | None:
        """13 when most cubins below sm_100 have the format that came with CUDA 13."""
        return 13 if self.new_cubins > self.old_cubins else None


def trace_compiler(code: DeviceCode) -> CompilerTrace:
    """Read the format of cubins and the ISA of PTX as traces of the toolkit."""
    votes: Counter[tuple[int, int]] = Counter()
    for image, count in code.images:
        if image.kind == "cubin" and image.architecture.number < _VERSION_TELLS_BELOW:
            votes[image.version] += count
    newest = max((image.isa for image, _ in code.images if image.isa is not None), default=None)
    return CompilerTrace(
        old_cubins=votes[1, 7],
        new_cubins=votes[1, 8],
        newest_isa=newest,
        ptx_cuda=None if newest is None else ptx_minimum_cuda(newest),
    )


def coverage_of(
    library: Library,
    capability: ComputeCapability,
    driver_cuda: CudaVersion | None,
    *,
    built_with: CudaVersion | None = None,
) -> DeviceCoverage:
    """Tell what the device code of one library means for one device.

    Tegra devices are told by their capability. Cubins in no container count only where there are no
    containers, and then as one unit: they are one code for several devices, or instruments of a
    profiler. ``built_with`` is the toolkit, where something else tells it; PTX of 13.2 or newer does.
    """
    code = library.code
    if built_with is None:
        built_with = trace_compiler(code).ptx_cuda
    tally = _Tally(capability, driver_cuda, built_with)
    for images, count in code.sets:
        tally.add(images, count)
    if not code.sets and code.bare_cubins:
        tally.add((cubin for cubin, _ in code.bare_cubins), 1)
    return tally.close(_doubt(library))


def loose_coverage(
    codes: Iterable[LooseCode],
    capability: ComputeCapability,
    driver_cuda: CudaVersion | None,
    *,
    built_with: CudaVersion | None = None,
) -> DeviceCoverage:
    """Tell how many files of device code serve a device, each of them one unit."""
    tally = _Tally(capability, driver_cuda, built_with)
    doubt = ""
    for loose in codes:
        tally.add(() if loose.code is None else (loose.code,), loose.count)
        if loose.anomaly:
            doubt = f"{loose.path}: {loose.anomaly}"
        elif not loose.read:
            doubt = doubt or f"{loose.path} and others were not read"
    return tally.close(doubt)


class _Tally:
    """Counts units by what they mean for a device."""

    def __init__(
        self,
        capability: ComputeCapability,
        driver_cuda: CudaVersion | None,
        built_with: CudaVersion | None,
    ) -> None:
        self._capability = capability
        self._driver_cuda = driver_cuda
        self._built_with = built_with
        self._units = self._by_cubin = self._by_ptx = self._unknown = 0

    def add(self, pieces: Iterable[Piece], count: int) -> None:
        """Count units that hold these pieces, of which one must serve; without any they are unknown."""
        self._units += count
        answers = [(piece, self._answer(piece)) for piece in pieces]
        serving = [piece for piece, answer in answers if answer == "yes"]
        if any(not isinstance(piece, Image) or piece.kind == "cubin" for piece in serving):
            self._by_cubin += count
        elif serving:
            self._by_ptx += count
        elif not answers or any(answer == "unknown" for _, answer in answers):
            self._unknown += count

    def _answer(self, piece: Piece) -> Answer:
        return serves(
            piece, self._capability, driver_cuda=self._driver_cuda, built_with=self._built_with
        )

    def close(self, doubt: str) -> DeviceCoverage:
        """Conclude; a doubt is why what was not seen may be there."""
        served = self._by_cubin + self._by_ptx
        reason = doubt
        if not doubt and self._unknown:
            reason = f"{self._unknown} of {self._units} that cannot be judged"
        verdict: Verdict
        if reason:
            verdict = "present" if served else "unknown"
        elif not self._units:
            verdict = "no-device-code"
        elif served == self._units:
            verdict = "covered"
        else:
            verdict = "partial" if served else "none"
        return DeviceCoverage(
            verdict=verdict,
            units=self._units,
            by_cubin=self._by_cubin,
            by_ptx=self._by_ptx,
            reason=reason,
        )


def _doubt(library: Library) -> str:
    """Why more device code may be in a library than was seen."""
    match library.seen:
        case "whole":
            pass
        case "nothing":
            return "not read"
        case _:
            return "read in part"
    if not library.whole:
        return f"a library of a kind that is not read: {library.kind}"
    return next(iter((*library.code.anomalies, *library.anomalies)), "")
