"""What should be said of the builds in a set: the GPUs they hold nothing for, and what compiles for them.

Each warning has a stable code. A set with such builds is locked: calls into what does not serve a
GPU fall back or fail on the machine, which only a person can weigh.
"""

from collections.abc import Iterator

from packaging.version import Version

from cudalock.cuda import CudaVersion, toolkit_targets
from cudalock.host import Target
from cudalock.resolver.bonds import labelled_release
from cudalock.resolver.demands import make_pins
from cudalock.resolver.resolution import ResolvedPackage, SetWarning
from cudalock.wheel.evidence import label_of
from cudalock.wheel.gpu_service import gpu_service
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import DEFAULT_INDEX

__all__ = ["build_warnings"]


def build_warnings(
    packages: tuple[ResolvedPackage, ...],
    *,
    target: Target,
    knowledge: Knowledge,
    toolkit: CudaVersion | None,
) -> Iterator[SetWarning]:
    """Yield what to say, package by package. ``toolkit`` is the release of the set's toolkit."""
    for package in packages:
        if not target.cpu:
            yield from _unserved(package, target, knowledge)
            yield from _compilers(package, target, knowledge, toolkit)
        yield from _label(package, knowledge)
        squatted = knowledge.squatted(package.project)
        if squatted is not None and package.file.index == DEFAULT_INDEX:
            yield SetWarning(
                code="squatted",
                message=f"{package.project} {package.version} comes from the default index: "
                f"{squatted.value} ({squatted.source})",
            )


def _unserved(
    package: ResolvedPackage, target: Target, knowledge: Knowledge
) -> Iterator[SetWarning]:
    driver = make_pins(target).driver_cuda
    for capability in target.capabilities:
        service = gpu_service(
            package.variant,
            capability,
            driver_cuda=driver,
            knowledge=knowledge,
            project=package.project,
        )
        if service is None or not service.unserved:
            continue
        name = f"{package.project} {package.version}"
        if service.as_data or service.nothing:
            words = f"{name} holds {service.holds} only, none of which runs on {capability.sm}"
        else:
            listed = ", ".join(f"{each.name} (holds {each.holds})" for each in service.unserved)
            words = f"{name} serves {capability.sm} in part: nothing for it in {listed}"
        yield SetWarning(
            code="gpu-in-part",
            message=f"{words} ({service.source})",
            facts=tuple(f"{each.name}: {each.holds}" for each in service.unserved),
        )


def _compilers(
    package: ResolvedPackage, target: Target, knowledge: Knowledge, toolkit: CudaVersion | None
) -> Iterator[SetWarning]:
    """Name what compiles on the machine with a compiler that does not know its GPU."""
    name = f"{package.project} {package.version}"
    release = toolkit or target.cuda
    floor = knowledge.jit_floor(package.project, package.version)
    needing = () if floor is None else sorted(floor.capabilities.intersection(target.capabilities))
    if floor is not None and needing and release is not None and release < floor.toolkit:
        yield SetWarning(
            code="compiler-too-old",
            message=f"{name} compiles for {needing[0].sm} only with CUDA {floor.toolkit} or newer, "
            f"and the set's toolkit is {release} ({floor.source}); "
            f"`--cuda {floor.toolkit}` would allow one that does{_compiled(package, knowledge)}",
        )
    bundled = knowledge.bundled_compiler(package.project, package.version)
    known = None if bundled is None else toolkit_targets(bundled.cuda)
    for capability in target.capabilities if bundled is not None and known is not None else ():
        if bundled is not None and capability.number not in {each.number for each in known or ()}:
            yield SetWarning(
                code="compiler-too-old",
                message=f"{name} compiles with a ptxas of CUDA {bundled.cuda}, which has no "
                f"{capability.sm}a: {bundled.remedy} ({bundled.source})",
            )


def _compiled(package: ResolvedPackage, knowledge: Knowledge) -> str:
    """Name the parts of a project's family that bring its kernels compiled."""
    compiled = {each.project for each in knowledge.architectures if not each.code.as_data}
    names = [each for each in knowledge.siblings(package.project) if each in compiled]
    return f", and {' and '.join(names)} may bring its kernels compiled" if names else ""


def _label(package: ResolvedPackage, knowledge: Knowledge) -> Iterator[SetWarning]:
    """Say what of a label was not read, and where it contradicts a pairing, which counts."""
    label = label_of(package.version.local)
    name = f"{package.project} {package.version}"
    if label.unread:
        yield SetWarning(
            code="unread-label",
            message=f"{name}: `{' '.join(label.unread)}` in its label was not understood, and nothing "
            "was concluded from it",
            facts=label.unread,
        )
    pairing = knowledge.pairing(package.project, package.version)
    partner, release = labelled_release(package.project, package.version, knowledge)
    if pairing is None or pairing.partner != partner or release is None:
        return
    newer = label.torch_or_newer and Version(pairing.minor) >= Version(release)
    if release != pairing.minor and not newer:
        yield SetWarning(
            code="evidence-disagrees",
            message=f"{name}: its label says {partner} {release}, and it was built for {partner} "
            f"{pairing.minor} ({pairing.source})",
        )
