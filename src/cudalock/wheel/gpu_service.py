"""What a wheel means for one GPU, library by library: by its bytes where they were read, else by claims.

A claim (knowledge, a label, a variant's properties) is of a build; the bytes are of this wheel, and
outrank it. A library read in part proves nothing missing, so a claim still counts for it. Libraries of
CUDA itself that a wheel brings along (a profiler's, an image codec's) are not what it is used for, and are
left out. Builds of one library for several GPUs are one: any of them may be loaded. Of builds for several
CUDA majors those of the set's are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.wheel.byte_evidence import builds_for, builds_of_libraries, split_soname
from cudalock.wheel.contents import LooseCode
from cudalock.wheel.coverage import DeviceCoverage, coverage_of, loose_coverage
from cudalock.wheel.evidence import Variant
from cudalock.wheel.images import BareCubin, Image
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.library import Library
from cudalock.wheel.wheel_facts import WheelFacts

__all__ = ["GpuService", "LibraryService", "Served", "gpu_service"]

# `part`: some of its containers serve. `unknown`: nothing was proved.
Served = Literal["yes", "part", "none", "unknown"]
_BEST: dict[Served, int] = {"yes": 3, "part": 2, "unknown": 1, "none": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryService:
    """What one library means for a GPU: what it has (``sm_90a``), in how many containers or files."""

    name: str
    served: Served
    pieces: tuple[str, ...]
    units: int = 0
    serving: int = 0

    @property
    def holds(self) -> str:
        """What it has, as a person lists it."""
        return _listed(self.pieces)

    @property
    def counted(self) -> str:
        """``35 of 35``; nothing where they were not counted."""
        return f"{self.serving} of {self.units}" if self.units else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuService:
    """What a wheel means for a GPU: its libraries with device code, and ``source``, where that is known from.

    ``read``: it comes from the wheel's bytes, and is no claim. ``as_data``: the wheel only carries
    device code, for others to load when it fits, or is known to be passed over where it does not.
    """

    libraries: tuple[LibraryService, ...]
    source: str
    as_data: bool
    read: bool

    @property
    def holds(self) -> str:
        """What all of them have: what to list, and nothing to judge by."""
        return _listed({piece for each in self.libraries for piece in each.pieces})

    @property
    def specific(self) -> bool:
        """Whether all that was read is code for particular GPUs (``sm_90a``, ``sm_100f``) and no other.

        Such kernels are written for these, so who requires them everywhere chooses among them there.
        """
        pieces = [piece for each in self.libraries for piece in each.pieces]
        return self.read and bool(pieces) and all(piece[-1] in "af" for piece in pieces)

    @property
    def unserved(self) -> tuple[LibraryService, ...]:
        """The libraries of which nothing runs on the GPU."""
        return tuple(each for each in self.libraries if each.served == "none")

    @property
    def nothing(self) -> bool:
        """Whether there is device code, and none of it runs on the GPU."""
        return bool(self.libraries) and len(self.unserved) == len(self.libraries)

    @property
    def serves(self) -> bool:
        """Whether something in it is known to run on the GPU."""
        return any(each.served in ("yes", "part") for each in self.libraries)

    @property
    def undecided(self) -> tuple[LibraryService, ...]:
        """The libraries of which nobody can tell."""
        return tuple(each for each in self.libraries if each.served == "unknown")


def gpu_service(
    variant: Variant,
    capability: ComputeCapability,
    *,
    driver_cuda: CudaVersion | None,
    knowledge: Knowledge,
    project: str,
) -> GpuService | None:
    """Return what a wheel means for a GPU; None where nothing is known of any device code in it."""
    if project in knowledge.cuda_libraries:
        # CUDA's own libraries hold what their toolkit gives them, and choose among it themselves.
        return None
    facts = variant.facts
    read = None
    if facts is not None:
        device = _Device(capability, driver_cuda, variant.cuda, variant.runtime)
        read = _by_bytes(facts, device, knowledge, project)
        if facts.contents.complete:
            return _marked(read, knowledge, project)
    return _marked(_weighed(read, _by_claim(variant, capability, driver_cuda)), knowledge, project)


def _weighed(read: GpuService | None, claimed: GpuService | None) -> GpuService | None:
    """Return what was read in part, and for what it leaves open what is claimed."""
    if read is None or claimed is None:
        return claimed if read is None else read
    if not read.undecided or (claimed.nothing and read.serves):
        return read
    decided = tuple(each for each in read.libraries if each.served != "unknown")
    if not decided:
        return claimed
    names = {each.name.rpartition("/")[2].partition(".")[0] for each in decided}
    claims = tuple(each for each in claimed.libraries if each.name not in names)
    source = f"{read.source}, the rest by {claimed.source}"
    return replace(claimed, libraries=(*decided, *claims), source=source)


def _marked(service: GpuService | None, knowledge: Knowledge, project: str) -> GpuService | None:
    """Say of kernels that are passed over on other GPUs that they are carried as data.

    What compiles on the machine needs none of what it carries.
    """
    if service is not None and knowledge.mark("compiles", project) is not None:
        return service if service.serves else None
    if service is None or knowledge.mark("optional-kernels", project) is None:
        return service
    return replace(service, as_data=True)


def _by_claim(
    variant: Variant, capability: ComputeCapability, driver_cuda: CudaVersion | None
) -> GpuService | None:
    code = variant.device_code
    if code is None or not code.libraries:
        return None
    served: dict[str, Served] = {"native": "yes", "ptx": "yes", "none": "none"}
    return GpuService(
        libraries=tuple(
            LibraryService(
                name=library.name,
                served=served.get(service, "unknown"),
                pieces=tuple(dict.fromkeys(str(image.architecture) for image in library.images)),
            )
            for library, service in code.services(
                capability, built_with=variant.cuda, driver_cuda=driver_cuda
            )
        ),
        source=code.source,
        as_data=code.as_data,
        read=False,
    )


@dataclass(frozen=True, slots=True)
class _Device:
    """A GPU with its driver, the release that a wheel was built with, and the major it loads."""

    capability: ComputeCapability
    driver_cuda: CudaVersion | None
    built_with: CudaVersion | None
    runtime: int | None

    def judge(self, library: Library) -> DeviceCoverage:
        return coverage_of(library, self.capability, self.driver_cuda, built_with=self.built_with)

    def judge_files(self, codes: Iterable[LooseCode]) -> DeviceCoverage:
        return loose_coverage(codes, self.capability, self.driver_cuda, built_with=self.built_with)


def _by_bytes(
    facts: WheelFacts, device: _Device, knowledge: Knowledge, project: str
) -> GpuService | None:
    contents = facts.contents
    found = []
    for group in builds_of_libraries(contents):
        if all(_is_brought_along(library, knowledge, project) for library in group):
            continue
        builds = builds_for(group, device.runtime, knowledge)
        services = [s for library in builds if (s := _service(library, device)) is not None]
        if services:
            found.append(max(services, key=lambda each: _BEST[each.served]))
    as_data = not found and bool(contents.loose)
    if as_data:
        coverage = device.judge_files(contents.loose)
        pieces = {code.code for code in contents.loose if code.code is not None}
        found.append(_told("its files of device code", coverage, pieces))
    if not found:
        return None
    return GpuService(
        libraries=tuple(found),
        source=f"read from {facts.filename}",
        as_data=as_data,
        read=True,
    )


def _is_brought_along(library: Library, knowledge: Knowledge, project: str) -> bool:
    stem, _ = split_soname(library.soname or library.path.rpartition("/")[2])
    entry = knowledge.shared_library(stem)
    return entry is not None and project not in entry.providers


def _service(library: Library, device: _Device) -> LibraryService | None:
    """Return what a library means for a GPU; None for one without device code, or of another kind."""
    if library.kind not in ("elf", "fatbin"):
        return None
    coverage = device.judge(library)
    if coverage.verdict == "no-device-code":
        return None
    if library.seen != "whole" and not coverage.units:
        # Whether it has any was not seen.
        return LibraryService(name=library.path, served="unknown", pieces=())
    pieces: set[Image | BareCubin] = {image for image, _ in library.code.images}
    return _told(library.path, coverage, pieces or {cubin for cubin, _ in library.code.bare_cubins})


def _told(
    name: str, coverage: DeviceCoverage, pieces: Iterable[Image | BareCubin]
) -> LibraryService:
    served: dict[str, Served] = {
        "covered": "yes",
        "present": "yes",
        "partial": "part",
        "none": "none",
    }
    return LibraryService(
        name=name,
        served=served.get(coverage.verdict, "unknown"),
        pieces=tuple(str(piece).partition("@")[0] for piece in pieces),
        units=coverage.units,
        serving=coverage.served,
    )


def _listed(pieces: Iterable[str]) -> str:
    texts = sorted(set(pieces), key=_by_number)
    if len(texts) < 2:
        return "".join(texts) or "nothing"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _by_number(text: str) -> tuple[bool, int, str]:
    digits = "".join(character for character in text if character.isdigit())
    return text.startswith("compute"), int(digits or 0), text
