"""Device code: what the libraries of a wheel hold for GPUs, and which of them serve one.

An *image* is one piece of it: machine code for an architecture (a cubin), or PTX that a driver
compiles. What runs where is known to `cudalock.cuda`. Libraries are judged one by one and never by
the union over a wheel: `sm_120` code in one of them says nothing of the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cudalock.cuda import (
    Architecture,
    ComputeCapability,
    CudaVersion,
    LocalLabel,
    PtxIsa,
    cubin_runs,
    parse_architecture,
    parse_ptx_isa,
    ptx_accepts,
    ptx_compiles,
)
from cudalock.errors import UsageError

__all__ = [
    "DeviceCode",
    "Image",
    "Library",
    "Service",
    "format_images",
    "label_code",
    "parse_image",
    "service",
]

Service = Literal["native", "ptx", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class Image:
    """One piece of device code; ``isa`` is the PTX ISA it was written in, None for machine code.

    PTX whose ISA nobody told has None too: whether a driver compiles it is then not known.
    """

    architecture: Architecture
    isa: PtxIsa | None = None

    def __str__(self) -> str:
        return f"{self.architecture}@{self.isa}" if self.isa is not None else str(self.architecture)


def _key(image: Image) -> tuple[bool, Architecture, tuple[int, int]]:
    """Sort machine code before PTX, then by architecture, then by ISA, the unknown one first."""
    isa = (0, 0) if image.isa is None else (image.isa.major, image.isa.minor)
    return image.architecture.kind == "compute", image.architecture, isa


def parse_image(text: str) -> Image:
    """Read ``sm_120a``, ``compute_90@8.7`` or ``compute_90``; raises `UsageError` for anything else."""
    name, at, isa = text.partition("@")
    architecture = parse_architecture(name)
    if at and architecture.kind != "compute":
        raise UsageError(f"expected a PTX ISA after PTX only, found `{text[:60]}`")
    return Image(architecture, parse_ptx_isa(isa) if at else None)


def format_images(images: Iterable[Image]) -> str:
    """Format images as a person lists them: ``sm_80, sm_90a and compute_90``; no ISA, each once."""
    names = list(dict.fromkeys(str(image.architecture) for image in sorted(images, key=_key)))
    if len(names) < 2:
        return "".join(names) or "nothing"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def service(
    images: Iterable[Image],
    capability: ComputeCapability,
    *,
    built_with: CudaVersion | None,
    driver_cuda: CudaVersion | None,
) -> Service:
    """Tell how images serve a device: by machine code, by PTX, not at all, or that it is not known.

    ``built_with`` is the release they were compiled with, ``driver_cuda`` the newest CUDA of the
    driver; None is unknown, and leaves PTX that the device accepts ``unknown``.
    """
    answer: Service = "none"
    for image in images:
        if cubin_runs(image.architecture, capability, built_with=built_with):
            return "native"
        if not ptx_accepts(image.architecture, capability):
            continue
        if driver_cuda is None or image.isa is None:
            answer = "unknown" if answer == "none" else answer
        elif ptx_compiles(image.architecture, image.isa, capability, driver_cuda):
            answer = "ptx"
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One library with device code; ``name`` is ``*`` for a wheel that is spoken of as a whole."""

    name: str
    images: tuple[Image, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """Every library of a wheel that holds device code, and where that is known from.

    ``as_data`` is set where the wheel only carries it, for others to load when it fits;
    ``maybe_ptx`` where nobody told whether there is PTX for the same architectures beside it.
    """

    libraries: tuple[Library, ...]
    source: str
    as_data: bool = False
    maybe_ptx: bool = False

    @property
    def images(self) -> tuple[Image, ...]:
        """Every distinct image, ascending: what to list, and nothing to judge by."""
        every = {image for library in self.libraries for image in library.images}
        return tuple(sorted(every, key=_key))

    def services(
        self,
        capability: ComputeCapability,
        *,
        built_with: CudaVersion | None,
        driver_cuda: CudaVersion | None,
    ) -> tuple[tuple[Library, Service], ...]:
        """Return each library with how it serves a device, in the order of the wheel."""
        return tuple(
            (library, self._service(library, capability, built_with, driver_cuda))
            for library in self.libraries
        )

    def uncertain(
        self,
        capability: ComputeCapability,
        *,
        built_with: CudaVersion | None,
        driver_cuda: CudaVersion | None,
    ) -> bool:
        """Whether no library is known to serve a device, and one might by PTX."""
        found = self.services(capability, built_with=built_with, driver_cuda=driver_cuda)
        served = {service for _, service in found}
        return "unknown" in served and not served & {"native", "ptx"}

    def _service(
        self,
        library: Library,
        capability: ComputeCapability,
        built_with: CudaVersion | None,
        driver_cuda: CudaVersion | None,
    ) -> Service:
        images = library.images
        if self.maybe_ptx:
            # A build has PTX for nothing else than what it is built for.
            images += tuple(
                Image(Architecture(a.number, a.suffix, "compute"))
                for a in (image.architecture for image in library.images)
            )
        return service(images, capability, built_with=built_with, driver_cuda=driver_cuda)


def label_code(label: LocalLabel) -> DeviceCode | None:
    """Return what the architectures in a local label claim of its wheel, if it names any."""
    if not label.sm:
        return None
    images = tuple(Image(architecture) for architecture in label.sm)
    return DeviceCode(
        libraries=(Library(name="*", images=images),),
        source=f"label +{label.text}",
        maybe_ptx=True,
    )
