"""What a wheel is built for, by all that is known of it.

An *observation* is one thing seen and where; a *variant* is the conclusion from all of them.
Strongest first: what its libraries need (`byte_evidence.py`), Requires-Dist on a runtime library, what a wheel variant asks for, the local version label, the index path, the
suffix of the project's name. The last two are weak: they are shown, and never decide, except for
projects that knowledge lists as bound to one CUDA runtime by their very name. Observations that
disagree are kept and shown as disagreement; the strongest one decides.

``unknown`` and ``none`` are different answers: a native wheel that nothing speaks of is unknown, a
wheel of pure Python that nothing speaks of is built for no CUDA at all.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudalock.cuda import CudaVersion, LocalLabel, parse_local_label
from cudalock.errors import WheelError
from cudalock.wheel.device_code import DeviceCode, format_images, label_code
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.names import format_quoted
from cudalock.wheel.variant_match import variant_bound, variant_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.wheel.wheel_facts import WheelFacts

__all__ = [
    "Observation",
    "Variant",
    "add_device_code",
    "conclude",
    "label_of",
    "marker_holds",
    "may_hold_code",
    "observe_file",
    "observe_metadata",
    "observe_part",
]

_NAME_SUFFIX = re.compile(r"-cu(?:da)?([1-9][0-9])(\d)?x?\Z")
Strength = Literal["needed", "requires-dist", "knowledge", "variant", "label", "path", "name"]
_ORDER: tuple[Strength, ...] = get_args(Strength)
_WEAK: frozenset[Strength] = frozenset({"path", "name"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One thing seen: ``major`` (and ``cuda`` when the minor is known too) and where.

    ``text`` is what was seen, ``source`` the place or the publication it rests on. ``major`` is
    None for what says nothing of the CUDA release: device code, and what could not be read.
    """

    kind: Strength
    text: str
    source: str
    major: int | None = None
    cuda: CudaVersion | None = None

    @property
    def decides(self) -> bool:
        """Whether it may decide which CUDA a wheel is built for."""
        return self.major is not None and self.kind not in _WEAK


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The conclusion: what a wheel was built with and which runtime major it loads.

    ``state`` is ``known``, ``none`` or ``unknown``; ``cuda`` is None when only the major is known.
    ``evidence`` is every observation, strongest first; ``device_code`` what the libraries are said
    to hold for GPUs, None where nobody told; ``facts`` what was read of the wheel itself.
    """

    state: Literal["known", "none", "unknown"]
    cuda: CudaVersion | None = None
    runtime: int | None = None
    evidence: tuple[Observation, ...] = ()
    device_code: DeviceCode | None = None
    facts: "WheelFacts | None" = None

    @property
    def decisive(self) -> Observation | None:
        """The observation the conclusion rests on."""
        return next((o for o in self.evidence if o.decides), None)

    @property
    def disagreement(self) -> bool:
        """Whether two observations that may decide name different CUDA releases or majors."""
        strong = [o for o in self.evidence if o.decides]
        # A variant names the oldest CUDA of a driver that runs it, which may well be another release.
        releases = {o.cuda for o in strong if o.cuda is not None and o.kind != "variant"}
        return len({o.major for o in strong}) > 1 or len(releases) > 1


@lru_cache(maxsize=65536)
def label_of(local: str | None) -> LocalLabel:
    """Return the parsed local version label (memoised: a page repeats a few labels)."""
    return parse_local_label(local)


def marker_holds(
    requirement: Requirement, environment: Mapping[str, str], extra: str | None = None
) -> bool:
    """Whether the requirement applies to the environment when ``extra`` is asked for.

    Raises `WheelError` for a marker that means nothing here, such as ``sys_platform ~= "1"``.
    """
    if requirement.marker is None:
        return extra is None
    try:
        return requirement.marker.evaluate({**environment, "extra": extra or ""})
    except (UndefinedComparison, UndefinedEnvironmentName) as error:
        raise WheelError(
            f"expected a marker that can be evaluated, found {format_quoted(str(requirement))}"
        ) from error


def observe_file(file: ListedFile, knowledge: Knowledge) -> tuple[Observation, ...]:
    """Observe what a listed file shows before any byte of it is read: free of cost."""
    found: list[Observation] = []
    wheel = file.wheel
    label = label_of(wheel.version.local)
    if label.cuda_major is not None:
        text = f"label +{wheel.version.local}"
        found.append(
            Observation(
                kind="label",
                text=text,
                source=wheel.filename,
                major=label.cuda_major,
                cuda=label.cuda,
            )
        )
    if label.unread:
        found.append(
            Observation(
                kind="label",
                text=f"label +{wheel.version.local}, of which `{' '.join(label.unread)}` is unread",
                source=wheel.filename,
            )
        )
    library = knowledge.runtime_library(wheel.project, wheel.version)
    if library is not None:
        found.append(
            Observation(
                kind="knowledge",
                text=f"{wheel.project} is a library of CUDA {library.major}",
                source=library.source,
                major=library.major,
            )
        )
    number = knowledge.cuda_number(wheel.project)
    if number is not None:
        found.append(
            Observation(
                kind="knowledge",
                text=f"the version of {wheel.project} is a CUDA version",
                source=number.source,
                major=wheel.version.major,
            )
        )
    found.extend(_variant_observations(file))
    found.extend(_weak_observations(file))
    return tuple(found)


def _variant_observations(file: ListedFile) -> list[Observation]:
    """Observe the oldest CUDA that a wheel variant asks for, as a label's release."""
    label = file.wheel.variant_label
    if label is None or file.variants is None:
        return []
    bound = variant_bound(label, file.variants)
    if bound is None:
        return []
    major, cuda = bound
    text = f"variant {label} asks for CUDA {cuda or major}"
    source = file.variants.source
    return [Observation(kind="variant", text=text, source=source, major=major, cuda=cuda)]


def _weak_observations(file: ListedFile) -> list[Observation]:
    found: list[Observation] = []
    # A folder is named as a label would be.
    cuda = None if file.folder is None else label_of(file.folder).cuda
    if cuda is not None:
        found.append(
            Observation(
                kind="path",
                text=f"listed in {file.folder}",
                source=file.index_url,
                major=cuda.major,
                cuda=cuda,
            )
        )
    if suffix := _NAME_SUFFIX.search(file.wheel.project):
        found.append(
            Observation(
                kind="name",
                text=f"the name ends in {suffix[0]}",
                source=file.wheel.filename,
                major=int(suffix[1]),
            )
        )
    return found


def observe_metadata(
    metadata: CoreMetadata, knowledge: Knowledge, environment: Mapping[str, str]
) -> tuple[Observation, ...]:
    """Observe the runtime libraries a wheel requires in the target's environment.

    Requirements whose marker is false there say nothing: Windows wheels carry the Linux list.
    """
    found: list[Observation] = []
    for requirement in metadata.requires_dist:
        observation = _observe_requirement(requirement, metadata, knowledge)
        if observation is not None and marker_holds(requirement, environment):
            found.append(observation)
    # A requirement that names the release outranks one that only names the major; one observation
    # a release is enough to show.
    found.sort(key=lambda o: (o.cuda is None, o.text))
    first: dict[tuple[int | None, CudaVersion | None], Observation] = {}
    for observation in found:
        first.setdefault((observation.major, observation.cuda), observation)
    return tuple(first.values())


def _observe_requirement(
    requirement: Requirement, metadata: CoreMetadata, knowledge: Knowledge
) -> Observation | None:
    project = canonicalize_name(requirement.name)
    pinned = _pinned_release(requirement)
    part = knowledge.toolkit_part(project)
    numbered = knowledge.toolkit(project) is not None or (part is not None and not part.own_number)
    cuda = pinned if numbered else None
    major = cuda.major if cuda is not None else _required_major(requirement, project, knowledge)
    if major is None:
        return None
    return Observation(
        kind="requires-dist",
        text=f"Requires-Dist {requirement.name}{requirement.specifier}",
        source=metadata.source,
        major=major,
        cuda=cuda,
    )


def _required_major(requirement: Requirement, project: str, knowledge: Knowledge) -> int | None:
    """Return the CUDA major of the library a requirement asks for, if every release it admits has it.

    A requirement that also admits releases nobody has said anything of tells nothing.
    """
    for library in knowledge.runtime_libraries:
        if library.project == project and requirement.specifier.is_subset(library.versions):
            return library.major
    return None


def _pinned_release(requirement: Requirement) -> CudaVersion | None:
    """Return the X.Y an ``==`` clause pins."""
    for clause in requirement.specifier:
        if clause.operator == "==":
            parts = clause.version.split(".")
            if len(parts) >= 2 and parts[0].isdigit() and parts[1].isdigit():
                return CudaVersion(major=int(parts[0]), minor=int(parts[1]))
    return None


def observe_part(
    project: str, releases: Sequence[CudaVersion], source: str, newest: CudaVersion | None
) -> Observation:
    """Observe which release a toolkit part belongs to; of several, the newest not above."""
    fitting = [release for release in releases if newest is None or release <= newest]
    release = max(fitting or releases)
    return Observation(
        kind="knowledge",
        text=f"{project} is a part of CUDA {release}",
        source=source,
        major=release.major,
        cuda=release,
    )


def may_hold_code(file: ListedFile) -> bool:
    """Whether a wheel may hold compiled code: by its tags, or by a label that nobody understands."""
    label = label_of(file.wheel.version.local)
    return not file.wheel.any_platform or label.unread == (label.text,)


def conclude(observations: tuple[Observation, ...], *, native: bool) -> Variant:
    """Conclude a variant; ``native`` says that the wheel holds compiled code or may do so."""
    evidence = tuple(sorted(observations, key=lambda o: _ORDER.index(o.kind)))
    strong = [o for o in evidence if o.decides]
    if not strong:
        return Variant(state="unknown" if native else "none", evidence=evidence)
    runtime = strong[0].major
    cuda = next((o.cuda for o in strong if o.cuda is not None and o.major == runtime), None)
    return Variant(state="known", cuda=cuda, runtime=runtime, evidence=evidence)


def add_device_code(
    variant: Variant, file: ListedFile, knowledge: Knowledge, *, machine: str
) -> Variant:
    """Return the variant with what its build holds for GPUs.

    By the properties of a wheel variant, which are this wheel's own, else by knowledge of the
    release, else by its label.

    ``machine`` is that of Linux (``x86_64``), which the wheel fits, or ``win_amd64``.
    """
    version = file.wheel.version
    kind: Strength = "variant"
    label = file.wheel.variant_label
    code = None
    if label is not None and file.variants is not None:
        code = variant_code(label, file.variants)
    if code is None:
        code = knowledge.device_code(file.wheel.project, version, variant.cuda, machine)
        kind = "knowledge"
    if code is None:
        code, kind = label_code(label_of(version.local)), "label"
    if code is None:
        return variant
    seen = Observation(kind=kind, text=f"holds {format_images(code.images)}", source=code.source)
    evidence = sorted((*variant.evidence, seen), key=lambda o: _ORDER.index(o.kind))
    return replace(variant, device_code=code, evidence=tuple(evidence))
