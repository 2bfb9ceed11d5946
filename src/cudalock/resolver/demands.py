"""CUDA inside the solver: what a wheel demands of the machine and of the wheels beside it.

The target pins virtual packages (``<driver>``, ``<cuda-runtime>``, ``<cuda>``, ``<gpu 12.0>``);
wheels demand values of them. A demand that a pin contradicts makes the wheel unusable on this
target and is a *violation*; a demand on a package nothing pins (``<cuda-toolkit>``,
``<libtorch>``-like partners, families) binds wheels to each other and is left to the search.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    coverage,
    driver_cuda,
    floor_driver,
    toolkit_driver,
)
from cudalock.host import Target, compat_package
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.request import VerifySm
from cudalock.wheel.evidence import Variant
from cudalock.wheel.knowledge import Knowledge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.wheel.gpu_service import GpuService

__all__ = [
    "Demand",
    "Pins",
    "Violation",
    "gpu_violations",
    "make_pins",
    "toolkit_demand",
    "variant_violations",
]

DRIVER = "<driver>"
RUNTIME = "<cuda-runtime>"
RELEASE = "<cuda>"
TOOLKIT = "<cuda-toolkit>"
STRICT = "--verify-sm strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A wheel accepts only these ``values`` of a virtual package; ``fact`` says why."""

    package: str
    values: frozenset[str]
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A demand that the target contradicts: both facts together rule the wheel out."""

    package: str
    fact: Fact
    pin: Fact


@dataclass(frozen=True, kw_only=True)
class Pins:
    """What the target pins, each with the fact that says so, and what wheels are judged by beside it."""

    target: Target
    facts: dict[str, Fact]
    knowledge: Knowledge = field(default_factory=Knowledge)
    verify_sm: VerifySm = "auto"
    asked: frozenset[str] = frozenset()

    @property
    def machine(self) -> str:
        """What builds are told apart by: the machine of Linux, or ``win_amd64``."""
        return self.target.machine if self.target.is_linux else self.target.platform

    @property
    def driver_cuda(self) -> CudaVersion | None:
        """The newest CUDA of the driver, or what it runs at least; None is unknown.

        A driver that is not known runs at least what the target may be built for, under ``strict``.
        """
        runs, target = self.target.runs_cuda, self.target
        return target.cuda if runs is None and not target.any_minor else runs


def make_pins(
    target: Target,
    knowledge: Knowledge | None = None,
    verify_sm: VerifySm = "auto",
    asked: frozenset[str] = frozenset(),
) -> Pins:
    """Return the virtual packages a target pins; ``asked`` are the projects that the user names."""
    facts: dict[str, Fact] = {}

    def pin(package: str, detail: str, *fields: str, kind: FactKind = FactKind.TARGET) -> None:
        source = next((o for f in fields if (o := target.origin(f)) is not None), "the target")
        facts[package] = Fact(kind=kind, subject=package, object="", detail=detail, source=source)

    if target.cpu:
        pin(RUNTIME, "the target has no CUDA", "cpu")
    elif target.cuda is not None:
        pin(RUNTIME, f"the target takes CUDA {target.cuda.major}", "cuda", "driver_cuda", "driver")
        detail = f"the set may be built for CUDA {target.cuda} or older"
        pin(RELEASE, detail, "cuda", "driver_cuda", "driver", kind=FactKind.POLICY)
    if target.driver is not None:
        package = "" if target.compat is None else f" with {compat_package(target.compat)}"
        pin(DRIVER, f"the target has driver {target.driver}{package}", "driver")
    elif target.driver_cuda is not None:
        pin(DRIVER, f"the target's driver runs CUDA {target.driver_cuda}", "driver_cuda")
    for capability in target.capabilities:
        detail = f"the target has compute capability {capability}"
        pin(f"<gpu {capability}>", detail, "capabilities", "sm", "gpu")
    return Pins(
        target=target,
        facts=facts,
        knowledge=knowledge or Knowledge(),
        verify_sm=verify_sm,
        asked=asked,
    )


def variant_violations(project: str, variant: Variant, pins: Pins) -> list[Violation]:
    """Return what the target contradicts in a wheel's variant; nothing for an unknown one."""
    unserved = _unserved(project, variant, pins)
    if variant.state != "known" or variant.runtime is None:
        return unserved
    target, found = pins.target, []
    evidence = variant.decisive
    seen = evidence.text if evidence is not None else "known"
    if evidence is not None and evidence.kind == "needed":
        seen = f"{evidence.text} in {evidence.source}"
    built = f"CUDA {variant.cuda or variant.runtime}"

    def violate(package: str, detail: str) -> None:
        fact = Fact(
            kind=FactKind.DEMAND, subject=project, object=package, detail=detail, source=seen
        )
        found.append(Violation(package=package, fact=fact, pin=pins.facts[package]))

    if target.cpu:
        violate(RUNTIME, f"is built for {built}")
        return found
    if target.cuda is not None:
        if variant.runtime != target.cuda.major:
            word = f"is built for CUDA {variant.runtime}"
            if evidence is not None and evidence.kind == "needed":
                built = f"is built for {built} and " if variant.cuda is not None else ""
                word = f"{built}loads CUDA runtime {variant.runtime}"
            violate(RUNTIME, word)
        elif not target.any_minor and variant.cuda is not None and variant.cuda > target.cuda:
            violate(RELEASE, f"is built for {built}, newer than CUDA {target.cuda}")
    needed = _driver_needed(variant, target)
    if needed is not None:
        violate(DRIVER, needed)
    return found + unserved


def _unserved(project: str, variant: Variant, pins: Pins) -> list[Violation]:
    """Return the GPUs that a wheel holds nothing for; under ``strict``, that a library of it does not.

    Else libraries that serve a GPU beside some that do not are told of and not refused; so is a wheel
    that only carries device code as data, and one of kernels for particular GPUs that only another
    wheel requires. Where the release it was built with proves the same, that is the reason.
    """
    target = pins.target
    if target.cpu:
        return []
    found = []
    for capability in target.capabilities:
        package = f"<gpu {capability}>"
        service = _service(project, variant, capability, pins)
        detail = source = ""
        pin = pins.facts[package]
        strict = pins.verify_sm == "strict"
        passed_over = service is not None and (
            service.as_data or (service.specific and project not in pins.asked)
        )
        if service is not None and service.nothing and (strict or not passed_over):
            pin = _every_library(capability) if passed_over else pin
            detail = f"holds {service.holds}, nothing for {capability.sm}"
        elif service is not None and service.unserved and strict:
            names = ", ".join(f"{each.name} ({each.holds})" for each in service.unserved)
            detail = f"holds nothing for {capability.sm} in {names}"
            pin = _every_library(capability)
        elif service is not None and not service.nothing:
            continue
        if detail and service is not None:
            source = service.source
        as_data = service is not None and service.as_data
        if not as_data and variant.cuda is not None and _absent(variant.cuda, capability):
            detail = f"is built for CUDA {variant.cuda}, which has no {capability.sm}"
            source = variant.decisive.text if variant.decisive is not None else "known"
        if detail:
            fact = Fact(
                kind=FactKind.DEMAND, subject=project, object=package, detail=detail, source=source
            )
            found.append(Violation(package=package, fact=fact, pin=pin))
    return found


def _service(
    project: str, variant: Variant, capability: ComputeCapability, pins: Pins
) -> "GpuService | None":
    if variant.device_code is None and variant.facts is None:
        return None
    # Most wheels hold none, and who reads a lock has none at all.
    from cudalock.wheel.gpu_service import gpu_service  # noqa: PLC0415 - see above

    return gpu_service(
        variant,
        capability,
        driver_cuda=pins.driver_cuda,
        knowledge=pins.knowledge,
        project=project,
    )


def _every_library(capability: ComputeCapability) -> Fact:
    return Fact(
        kind=FactKind.POLICY,
        subject=f"<gpu {capability}>",
        object="",
        detail=f"every library must hold code for {capability}",
        source=STRICT,
    )


def _absent(cuda: CudaVersion, capability: ComputeCapability) -> bool:
    return coverage(cuda, capability) == "absent"


def _driver_needed(variant: Variant, target: Target) -> str | None:
    """Say which driver the variant needs, when the target's known one is older."""
    runtime = variant.runtime or 0
    system = target.driver_system
    floor = floor_driver(runtime, system=system)
    needs = f", which needs driver {floor}" if floor is not None else ""
    if target.driver is None or target.compat is not None:
        # With forward compatibility the branch was found fit, and the package tells what runs.
        runs = target.runs_cuda
        if runs is not None and runtime > runs.major:
            return f"is CUDA {runtime}{needs}"
        if runs is None or target.any_minor or variant.cuda is None:
            return None
        return f"is built for CUDA {variant.cuda}" if variant.cuda > runs else None
    if floor is not None and target.driver < floor:
        return f"is CUDA {runtime}{needs}"
    # The branch decides, not the number alone: a late 570 driver is newer than the first 575 one
    # and still runs CUDA 12.8 only.
    if not target.any_minor and variant.cuda is not None:
        runs = driver_cuda(target.driver).cuda
        if runs < variant.cuda:
            row = toolkit_driver(variant.cuda, system=system)
            needs = f", whose toolkit needs driver {row}" if row is not None else ""
            return f"is built for CUDA {variant.cuda}{needs}"
    return None


def gpu_violations(project: str, pins: Pins) -> list[Violation]:
    """Return what rules out *every* CUDA wheel of a project on this target, listed or not.

    A wheel built for a release the target takes cannot serve a capability that no target of that
    major reaches down to, so not even a wheel nobody listed would help.
    """
    target, found = pins.target, []
    if target.cuda is None or target.cpu:
        return []
    oldest = CudaVersion(major=target.cuda.major, minor=0)
    for capability in target.capabilities:
        if all(_absent(release, capability) for release in (oldest, target.cuda)):
            package = f"<gpu {capability}>"
            fact = Fact(
                kind=FactKind.DEMAND,
                subject=project,
                object=package,
                detail=f"is built for CUDA {target.cuda.major}, which has no {capability.sm}",
                source=f"ptxas of CUDA {oldest}",
            )
            found.append(Violation(package=package, fact=fact, pin=pins.facts[package]))
    return found


def toolkit_demand(
    project: str, releases: Iterable[CudaVersion], source: str, pins: Pins
) -> Demand | Violation | None:
    """Bind a toolkit part to the releases it belongs to; under ``minor`` that is left open."""
    target = pins.target
    found = sorted(set(releases))
    if not found or target.cuda is None or target.any_minor:
        return None
    named = " and ".join(str(release) for release in found)
    usable = [r for r in found if r.major == target.cuda.major and r <= target.cuda]
    if not usable:
        fact = Fact(
            kind=FactKind.DEMAND,
            subject=project,
            object=RELEASE,
            detail=f"is a part of CUDA {named}",
            source=source,
        )
        return Violation(package=RELEASE, fact=fact, pin=pins.facts[RELEASE])
    fact = Fact(
        kind=FactKind.DEMAND,
        subject=project,
        object=TOOLKIT,
        detail=f"is a part of CUDA {named}",
        source=source,
    )
    return Demand(package=TOOLKIT, values=frozenset(str(r) for r in usable), fact=fact)
