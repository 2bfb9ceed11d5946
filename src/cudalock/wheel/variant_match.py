"""Which wheel variants suit a machine, and which of those comes first.

Namespaces that are understood: ``nvidia``, as nvidia-variant-provider (commit ffea5d3) defines it,
and the baselines of ``x86_64`` and ``aarch64``, which every machine of the kind has. Whatever else a
variant asks for cannot be told from a target and is *unknown*: neither "suits" nor "does not".

Two things differ from that provider on purpose: every GPU of the target must be served, not the
highest alone, and PTX serves by NVIDIA's rules, not only devices of its own major. PEP 825 leaves
both to "a subsequent PEP".

A page may list very many wheels of one label, so what is found of a label is remembered.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from cudalock.cuda import Architecture, ComputeCapability, CudaVersion, default_ptx_isa
from cudalock.wheel.device_code import DeviceCode, Image, Library, format_images, service
from cudalock.wheel.variants import VariantProperties, VariantsMetadata

__all__ = [
    "VariantMachine",
    "VariantMismatch",
    "judge_variant",
    "variant_bound",
    "variant_code",
    "variant_order",
]

_NVIDIA = "nvidia"
_LOWER = "cuda_version_lower_bound"
_UPPER = "cuda_version_upper_bound"
_SM = "sm_arch"
# The order in which the provider lists its features, which is their priority.
_FEATURES = (_LOWER, _UPPER, _SM)
# What every machine of a kind has: x86-64-v1 of the psABI, Armv8-A.
_BASELINES = {("x86_64", "level"): "v1", ("aarch64", "version"): "8a"}
_BOUND = re.compile(r"([1-9][0-9]?)(?:\.(0|[1-9][0-9]?))?\Z", re.ASCII)
_ARCHITECTURE = re.compile(r"([2-9][0-9]|[1-9][0-9]{2})([af]?)_(real|virtual)\Z", re.ASCII)
_LAST = (1 << 30, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantMachine:
    """What variants are matched against.

    ``runs`` is the newest CUDA of the driver, None where no driver is known: then a lower bound is
    something the lock will ask of the driver. No ``capabilities`` is unknown GPUs. ``machine`` is
    ``x86_64`` or ``aarch64``.
    """

    machine: str
    cpu: bool = False
    runs: CudaVersion | None = None
    capabilities: tuple[ComputeCapability, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantMismatch:
    """One feature that does not suit the machine, or of which that cannot be told.

    ``about`` is the part of the target that it is about. ``detail`` completes "the variant …".
    """

    kind: Literal["unfit", "unknown"]
    about: Literal["driver", "gpu", "machine"]
    detail: str


@lru_cache(maxsize=4096)
def judge_variant(
    label: str, variants: VariantsMetadata, machine: VariantMachine
) -> tuple[VariantMismatch, ...]:
    """Return every feature that keeps a variant from the machine; none when it suits.

    PEP 825: "at least one value for every feature listed in its properties MUST be compatible". PTX
    of which nobody can tell whether a driver compiles it counts as suiting: what holds it is used
    as a last resort.
    """
    properties = variants.properties(label) or {}
    found: list[VariantMismatch] = []
    for namespace, features in sorted(properties.items()):
        for feature, values in sorted(features.items()):
            mismatch = _judge_feature(namespace, feature, values, properties, machine)
            if mismatch is not None:
                found.append(mismatch)
    return tuple(found)


def _judge_feature(
    namespace: str,
    feature: str,
    values: tuple[str, ...],
    properties: VariantProperties,
    machine: VariantMachine,
) -> VariantMismatch | None:
    if namespace == _NVIDIA:
        if machine.cpu:
            return VariantMismatch(kind="unfit", about="machine", detail="is for NVIDIA GPUs")
        match feature:
            case "cuda_version_lower_bound":
                return _judge_lower(values, machine)
            case "cuda_version_upper_bound":
                return _judge_upper(values, machine)
            case "sm_arch":
                return _judge_gpus(values, properties, machine)
    words = f"{namespace} :: {feature} :: {' or '.join(values)}"
    if namespace in ("x86_64", "aarch64"):
        if namespace != machine.machine:
            detail = f"is for {namespace}"
            return VariantMismatch(kind="unfit", about="machine", detail=detail)
        if _BASELINES.get((namespace, feature)) in values:
            return None
    return VariantMismatch(kind="unknown", about="machine", detail=f"asks for {words}")


def _judge_lower(values: tuple[str, ...], machine: VariantMachine) -> VariantMismatch | None:
    bounds, unread = _bounds(values)
    if machine.runs is None and bounds:
        return None
    if any(machine.runs is not None and machine.runs >= bound for bound in bounds):
        return None
    if unread:
        detail = f"asks for CUDA `{unread[0]}`, which was not understood"
        return VariantMismatch(kind="unknown", about="driver", detail=detail)
    detail = f"asks for a driver of CUDA {min(bounds)} or newer"
    return VariantMismatch(kind="unfit", about="driver", detail=detail)


def _judge_upper(values: tuple[str, ...], machine: VariantMachine) -> VariantMismatch | None:
    bounds, unread = _bounds(values)
    if any(machine.runs is not None and machine.runs < bound for bound in bounds):
        return None
    kind: Literal["unfit", "unknown"] = "unknown" if unread or machine.runs is None else "unfit"
    detail = f"asks for a driver of CUDA before {' or '.join(values)}"
    return VariantMismatch(kind=kind, about="driver", detail=detail)


def _judge_gpus(
    values: tuple[str, ...], properties: VariantProperties, machine: VariantMachine
) -> VariantMismatch | None:
    images, unread = _images(values, properties)
    if not machine.capabilities:
        detail = f"is for {' or '.join(values)}, and the GPUs of the target are not known"
        return VariantMismatch(kind="unknown", about="gpu", detail=detail)
    for capability in machine.capabilities:
        if _serves(images, capability, machine) != "none":
            continue
        if unread:
            detail = f"is for `{unread[0]}`, which was not understood"
            return VariantMismatch(kind="unknown", about="gpu", detail=detail)
        detail = f"holds {format_images(images)}, nothing for {capability.sm}"
        return VariantMismatch(kind="unfit", about="gpu", detail=detail)
    return None


def _serves(images: Iterable[Image], capability: ComputeCapability, machine: VariantMachine) -> str:
    return service(images, capability, built_with=None, driver_cuda=machine.runs)


def _bounds(values: Iterable[str]) -> tuple[list[CudaVersion], list[str]]:
    """Read CUDA releases; a bare major is its first one. What cannot be read is returned too."""
    found: list[CudaVersion] = []
    unread: list[str] = []
    for value in values:
        if match := _BOUND.match(value):
            found.append(CudaVersion(int(match[1]), int(match[2] or 0)))
        else:
            unread.append(value)
    return found, unread


@lru_cache(maxsize=4096)
def variant_bound(label: str, variants: VariantsMetadata) -> tuple[int, CudaVersion | None] | None:
    """Return the oldest CUDA that suits a variant, as (major, release if it names a minor).

    None for one that names no CUDA, or one that cannot be read whole.
    """
    return _bound(variants.properties(label) or {})


def _bound(properties: VariantProperties) -> tuple[int, CudaVersion | None] | None:
    values = properties.get(_NVIDIA, {}).get(_LOWER, ())
    bounds, unread = _bounds(values)
    if not bounds or unread:
        return None
    lowest = min(bounds)
    named = any("." in value for value in values if _bounds((value,))[0] == [lowest])
    return lowest.major, lowest if named else None


def _images(
    values: Iterable[str], properties: VariantProperties
) -> tuple[tuple[Image, ...], list[str]]:
    """Read architectures as CMake spells them: ``120_real`` is machine code, ``90_virtual`` PTX."""
    bound = _bound(properties)
    # Drivers from this release on run it, its publisher says; so its PTX is not newer than that.
    isa = default_ptx_isa(bound[1]) if bound is not None and bound[1] is not None else None
    found: list[Image] = []
    unread: list[str] = []
    for value in values:
        match = _ARCHITECTURE.match(value)
        if match is None:
            unread.append(value)
            continue
        suffix: Literal["", "a", "f"] = "a" if match[2] == "a" else "f" if match[2] else ""
        if match[3] == "real":
            found.append(Image(Architecture(int(match[1]), suffix)))
        else:
            found.append(Image(Architecture(int(match[1]), suffix, "compute"), isa))
    return tuple(found), unread


@lru_cache(maxsize=4096)
def variant_code(label: str, variants: VariantsMetadata) -> DeviceCode | None:
    """Return what a variant declares to hold for GPUs; None when it declares nothing readable."""
    properties = variants.properties(label) or {}
    images, unread = _images(properties.get(_NVIDIA, {}).get(_SM, ()), properties)
    if not images or unread:
        return None
    return DeviceCode(
        libraries=(Library(name="*", images=images),),
        source=f"variant {label} ({variants.source})",
    )


@lru_cache(maxsize=4096)
def variant_order(
    label: str, variants: VariantsMetadata, machine: VariantMachine
) -> tuple[tuple[tuple[int, ...], ...], str]:
    """Return a sort key among the variants of one version that suit; smaller comes first.

    PEP 825, "Variant ordering": each feature by its namespace, its own place and the best of its
    values; a variant with more features before one that has only the first of them; then by label.
    """
    properties = variants.properties(label) or {}
    keys = sorted(_feature_keys(properties, variants.namespaces, machine))
    return (*keys, (len(variants.namespaces), *_LAST)), label


def _feature_keys(
    properties: VariantProperties, namespaces: tuple[str, ...], machine: VariantMachine
) -> Iterator[tuple[int, ...]]:
    for namespace, features in properties.items():
        place = namespaces.index(namespace)
        order = [f for f in _FEATURES if namespace == _NVIDIA and f in features]
        order += sorted(features.keys() - set(order))
        for feature in order:
            known = feature in _FEATURES
            position = _FEATURES.index(feature) if known else order.index(feature)
            yield (place, position, *_best(feature, features[feature], properties, machine))


def _best_image(
    images: Iterable[Image], capability: ComputeCapability, machine: VariantMachine
) -> tuple[int, int]:
    places = [
        (int(image.architecture.kind == "compute"), -image.architecture.number)
        for image in images
        if _serves((image,), capability, machine) != "none"
    ]
    return min(places, default=(2, 0))


def _best(
    feature: str, values: tuple[str, ...], properties: VariantProperties, machine: VariantMachine
) -> tuple[int, int]:
    """Return the place of the best value that suits; newest first, machine code before PTX."""
    if feature == _SM:
        images, _ = _images(values, properties)
        served = [_best_image(images, capability, machine) for capability in machine.capabilities]
        # Of several GPUs the one that is served worst.
        return max(served, default=(2, 0))
    bounds, _ = _bounds(values)
    runs = machine.runs
    if feature == _LOWER:
        bounds = [bound for bound in bounds if runs is None or bound <= runs]
    elif feature == _UPPER:
        bounds = [bound for bound in bounds if runs is None or bound > runs]
    else:
        return 0, 0
    if not bounds:
        return 2, 0
    best = max(bounds)
    # A bare major comes after every release of it.
    bare = str(best.major) in values and str(best) not in values
    return 0, -2 * best.number + (1 if bare else 0)
