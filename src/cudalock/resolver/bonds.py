"""What binds wheels to each other by knowledge and by their labels, whatever the machine.

A family shares one version; an extension goes with the minor release of the partner that it was
built with, and with the C++ ABI of that build. Knowledge outranks a label. All of it follows from a
project's name and version, so it holds of a wheel that was never read; only the ABI of some builds of
the partner takes its CUDA release.
"""

from packaging.requirements import Requirement
from packaging.version import Version

from cudalock.cuda import CudaVersion
from cudalock.resolver.demands import Demand
from cudalock.resolver.facts import Fact, FactKind
from cudalock.wheel.evidence import label_of
from cudalock.wheel.knowledge import Knowledge

__all__ = ["abi_demands", "knowledge_demands", "label_requirement", "labelled_release"]


def knowledge_demands(project: str, version: Version, knowledge: Knowledge) -> list[Demand]:
    """Return the demands that follow from a project's name and version alone."""
    found: list[Demand] = []
    family = knowledge.family(project)
    if family is not None:
        fact = Fact(
            kind=FactKind.FAMILY,
            subject=project,
            object=f"<{family.name}>",
            detail=f"shares one version with the other parts of {family.name}",
            source=family.source,
        )
        found.append(
            Demand(package=f"<{family.name}>", values=frozenset({version.public}), fact=fact)
        )
    pairing = _pairing(project, version, knowledge)
    if pairing is not None:
        found.append(pairing)
    found.extend(_label_abi(version, project, knowledge))
    if project in knowledge.partners or project == knowledge.labelled_partner:
        package = f"<lib{project}>"
        # A pre-release is before the minor it leads to: no release built for the minor fits it.
        minor = f"{version.major}.{version.minor}"
        value = version.public if version.is_prerelease else minor
        before = f"is {version.public}, which is before {version.base_version}"
        fact = Fact(
            kind=FactKind.RELEASE,
            subject=project,
            object=package,
            detail=before if version.is_prerelease else f"is of {project} {minor}",
            source="its version",
        )
        found.append(Demand(package=package, values=frozenset({value}), fact=fact))
    return found


def _pairing(project: str, version: Version, knowledge: Knowledge) -> Demand | None:
    """Bind an extension to the partner it was built with: by a pairing, else by its label."""
    pairing = knowledge.pairing(project, version)
    if pairing is not None:
        fact = Fact(
            kind=FactKind.PAIRING,
            subject=project,
            object=f"<lib{pairing.partner}>",
            detail=f"is built for {pairing.partner} {pairing.minor}",
            source=pairing.source,
        )
        return Demand(package=fact.object, values=frozenset({pairing.minor}), fact=fact)
    partner, release = labelled_release(project, version, knowledge)
    if release is None:
        return None
    if label_of(version.local).torch_or_newer:
        # Any later release will do, which no list of values says: `label_requirement` does.
        return None
    fact = Fact(
        kind=FactKind.PAIRING,
        subject=project,
        object=f"<lib{partner}>",
        detail=f"is built for {partner} {release}",
        source=f"label +{version.local}",
    )
    return Demand(package=fact.object, values=frozenset({release}), fact=fact)


def label_requirement(project: str, version: Version, knowledge: Knowledge) -> Requirement | None:
    """Return what a label that allows newer releases of the partner requires: ``torch>=2.10.0``.

    None for any other label, and where knowledge has a pairing, which counts.
    """
    label = label_of(version.local)
    partner, release = labelled_release(project, version, knowledge)
    if release is None or not label.torch_or_newer or knowledge.pairing(project, version):
        return None
    oldest = release if label.torch_pre else ".".join(map(str, label.torch or ()))
    return Requirement(f"{partner}>={oldest}")


def labelled_release(
    project: str, version: Version, knowledge: Knowledge
) -> tuple[str, str | None]:
    """Return the partner and its minor (``2.9``), or pre-release, that a version's label names.

    None where no label does, where it names a major only, and for the partner itself.
    """
    partner = knowledge.labelled_partner or ""
    label = label_of(version.local)
    if not partner or project == partner or label.torch is None or len(label.torch) < 2:
        return partner, None
    if label.torch_pre is not None:
        # Releases have three numbers, and a label may drop the last: 2.13.dev1 is 2.13.0.dev1.
        release = ".".join(str(number) for number in (*label.torch, 0)[:3])
        return partner, Version(f"{release}{label.torch_pre}").public
    return partner, f"{label.torch[0]}.{label.torch[1]}"


def _label_abi(version: Version, project: str, knowledge: Knowledge) -> list[Demand]:
    """Bind an extension to the C++ ABI that its label names."""
    partner, new = knowledge.labelled_partner, label_of(version.local).cxx11abi
    if partner is None or new is None or project == partner:
        return []
    return [_abi_demand(project, partner, new=new, source=f"label +{version.local}")]


def abi_demands(
    project: str, version: Version, cuda: CudaVersion | None, knowledge: Knowledge
) -> list[Demand]:
    """Say which C++ ABI a build of the partner has, where that is known."""
    known = None
    if project == knowledge.labelled_partner:
        known = knowledge.cxx_abi(project, version, cuda)
    if known is None:
        return []
    return [_abi_demand(project, project, new=known.new, source=known.source)]


def _abi_demand(project: str, partner: str, *, new: bool, source: str) -> Demand:
    package = f"<{partner} C++ ABI>"
    fact = Fact(
        kind=FactKind.DEMAND,
        subject=project,
        object=package,
        detail=f"is built with the {'new' if new else 'old'} C++ ABI of libstdc++",
        source=source,
    )
    return Demand(package=package, values=frozenset({"1" if new else "0"}), fact=fact)
