"""What a person may say about a target, as text, and the values it stands for.

The same options come as flags, as ``CUDALOCK_*`` variables and as keys of
``[tool.cudalock.targets.NAME]``; `precedence` decides between them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    DriverVersion,
    capability_of,
    parse_compute_capability,
    parse_cuda_version,
    parse_driver_version,
)
from cudalock.errors import UsageError
from cudalock.host.interpreter import PythonChoice, parse_python
from cudalock.host.platforms import Platform, parse_platform

__all__ = [
    "OPTION_KEYS",
    "CudaCompat",
    "NamedTarget",
    "ParsedOptions",
    "TargetOptions",
    "option_faults",
    "options_from_environment",
    "parse_options",
]

CudaCompat = Literal["strict", "minor", "forward"]

# The keys of a named target: the long flags without their dashes.
OPTION_KEYS = (
    "python",
    "platform",
    "driver",
    "driver-cuda",
    "cuda",
    "cuda-compat",
    "sm",
    "gpu",
)
_MOST_GPUS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """The options as they were written; ``None`` or empty is not given."""

    python: str | None = None
    platform: str | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    cuda: str | None = None
    cuda_compat: str | None = None
    sm: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    cpu: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTarget:
    """A target that a project file names; ``where`` is its key there."""

    name: str
    where: str
    options: TargetOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedOptions:
    """The values of one source of options; ``None`` is not given.

    ``gpu_keys`` says which of ``sm`` and ``gpu`` gave the capabilities, ``gpu_names`` which names.
    """

    python: PythonChoice | None = None
    platform: Platform | None = None
    driver: DriverVersion | None = None
    driver_cuda: CudaVersion | None = None
    cuda: CudaVersion | None = None
    cuda_any: bool = False
    cuda_compat: CudaCompat | None = None
    capabilities: tuple[ComputeCapability, ...] | None = None
    gpu_keys: tuple[str, ...] = ()
    gpu_names: tuple[str, ...] = ()
    cpu: bool = False


def options_from_environment(environ: Mapping[str, str]) -> TargetOptions:
    """Read ``CUDALOCK_PYTHON``, ``CUDALOCK_SM`` and so on; an empty value is not given.

    ``CUDALOCK_SM`` and ``CUDALOCK_GPU`` may hold several, with commas between.

    Raises:
        UsageError: ``CUDALOCK_CPU`` is neither yes nor no.

    """

    def one(name: str) -> str | None:
        return environ.get(f"CUDALOCK_{name}", "").strip() or None

    def several(name: str) -> tuple[str, ...]:
        parts = (one(name) or "").split(",")
        return tuple(part.strip() for part in parts if part.strip())

    cpu = (one("CPU") or "0").lower()
    if cpu not in {"0", "1", "false", "true", "no", "yes"}:
        raise UsageError(f"expected 1 or 0, found `{cpu[:80]}`", where="CUDALOCK_CPU", flag="--cpu")
    return TargetOptions(
        python=one("PYTHON"),
        platform=one("PLATFORM"),
        driver=one("DRIVER"),
        driver_cuda=one("DRIVER_CUDA"),
        cuda=one("CUDA"),
        cuda_compat=one("CUDA_COMPAT"),
        sm=several("SM"),
        gpu=several("GPU"),
        cpu=cpu in {"1", "true", "yes"},
    )


def parse_options(options: TargetOptions, *, place: Callable[[str], str]) -> ParsedOptions:
    """Read the values of ``options``; ``place`` turns a key such as ``driver-cuda`` into a place.

    Raises:
        UsageError: the first option that cannot be read, or that contradicts another of them.

    """
    for key, error in _faults(options):
        raise UsageError(error.message, where=place(key), flag=f"--{key}") from error
    capabilities = {parse_compute_capability(text) for text in options.sm}
    capabilities.update(capability_of(name) for name in options.gpu)
    cuda_any = options.cuda is not None and options.cuda.lower() == "any"
    return ParsedOptions(
        python=None if options.python is None else parse_python(options.python),
        platform=None if options.platform is None else parse_platform(options.platform),
        driver=None if options.driver is None else parse_driver_version(options.driver),
        driver_cuda=None
        if options.driver_cuda is None
        else parse_cuda_version(options.driver_cuda),
        cuda=None if options.cuda is None or cuda_any else parse_cuda_version(options.cuda),
        cuda_any=cuda_any,
        cuda_compat=None if options.cuda_compat is None else _compat(options.cuda_compat),
        capabilities=tuple(sorted(capabilities)) if options.sm or options.gpu else None,
        gpu_keys=tuple(key for key in ("sm", "gpu") if getattr(options, key)),
        gpu_names=options.gpu,
        cpu=options.cpu,
    )


def option_faults(options: TargetOptions) -> tuple[tuple[str, str], ...]:
    """List what cannot be read in ``options``: keys such as ``driver-cuda``, and why."""
    return tuple((key, error.message) for key, error in _faults(options))


def _faults(options: TargetOptions) -> Iterator[tuple[str, UsageError]]:
    parsers: tuple[tuple[str, tuple[str, ...], Callable[[str], object]], ...] = (
        ("python", _given(options.python), parse_python),
        ("platform", _given(options.platform), parse_platform),
        ("driver", _given(options.driver), parse_driver_version),
        ("driver-cuda", _given(options.driver_cuda), parse_cuda_version),
        ("cuda", _given(options.cuda), _cuda_or_any),
        ("cuda-compat", _given(options.cuda_compat), _compat),
        ("sm", options.sm, parse_compute_capability),
        ("gpu", options.gpu, capability_of),
    )
    for key, texts, parse in parsers:
        if len(texts) > _MOST_GPUS:
            yield key, UsageError(f"expected at most {_MOST_GPUS} values, found {len(texts)}")
            continue
        for text in texts:
            try:
                parse(text)
            except UsageError as error:
                yield key, error
    if options.cpu and options.cuda is not None:
        message = f"a CPU target has no CUDA release, found --cpu and `{options.cuda[:80]}`"
        yield "cuda", UsageError(message)


def _given(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


def _cuda_or_any(text: str) -> object:
    return None if text.lower() == "any" else parse_cuda_version(text)


def _compat(text: str) -> CudaCompat:
    match text.strip().lower():
        case "strict":
            return "strict"
        case "minor":
            return "minor"
        case "forward":
            return "forward"
        case _:
            raise UsageError(f"expected `strict`, `minor` or `forward`, found `{text[:80]}`")
