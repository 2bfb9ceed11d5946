"""Candidates and rejections: a project's listed wheels, sorted out against one target.

A filter returns what it kept and what it ruled out, each with a reason. Nothing is dropped: a
rejection is a fact like any other, so that "no" can say how many wheels were ruled out and why.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.version import Version

from cudalock.cuda import coverage
from cudalock.errors import WheelError
from cudalock.host import Target
from cudalock.resolver.dating import late_fact
from cudalock.resolver.demands import Pins, Violation, gpu_violations, variant_violations
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.rejection_words import REASONS
from cudalock.resolver.request import Preference
from cudalock.resolver.selection import candidate_key, variant_key
from cudalock.resolver.tag_reasons import GLIBC, tag_rejection
from cudalock.resolver.variants import (
    UNKNOWN_VARIANT,
    SettledVariant,
    VariantAnswers,
    bound_violations,
    settle_variant,
    variant_places,
)
from cudalock.wheel.byte_evidence import observe_bytes
from cudalock.wheel.device_code import format_images
from cudalock.wheel.evidence import (
    Variant,
    add_device_code,
    conclude,
    label_of,
    may_hold_code,
    observe_file,
)
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import HashAside, ListedFile, ProjectListing
from cudalock.wheel.names import parse_specifiers, parse_version
from cudalock.wheel.published import AsOf
from cudalock.wheel.wheel_facts import FactBook

__all__ = [
    "Candidate",
    "Ghost",
    "ProjectOptions",
    "build_options",
    "last_resort",
    "make_candidate",
    "rejection_fact",
    "rejection_kind",
]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Candidate:
    """One wheel that the target's tags accept. Equal when it is the same URL.

    ``variant`` is what the page alone tells; ``violations`` what the target contradicts in it;
    ``last_resort`` says why the wheel is used only when nothing else solves, ``late`` why
    ``--as-of`` rules it out.
    """

    project: str
    url: str
    file: ListedFile = field(compare=False)
    variant: Variant = field(compare=False)
    violations: tuple[Violation, ...] = field(compare=False, default=())
    last_resort: str | None = field(compare=False, default=None)
    direct: bool = field(compare=False, default=False)
    late: Fact | None = field(compare=False, default=None)

    @property
    def version(self) -> Version:
        """The version, with its local label."""
        return self.file.wheel.version

    def __str__(self) -> str:
        return f"{self.project} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ghost:
    """Wheels of one version ruled out for one reason: what could be if the reason were set aside.

    ``version`` is None for wheels nobody listed (of an index that could not be seen whole).
    """

    project: str
    version: Version | None
    fact: Fact
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class ProjectOptions:
    """What there is of a project: ``candidates`` best first, ``ghosts`` oldest first.

    ``ruled_out`` counts the listed wheels by version and reason. ``unseen`` is the fact that an
    index could not be seen whole, where that leaves something open.
    """

    project: str
    candidates: tuple[Candidate, ...]
    ruled_out: tuple[tuple[Version, str, int], ...]
    listing: ProjectListing
    pythons: frozenset[tuple[str, str]]
    platform: str
    unseen: Fact | None = None

    @property
    def complete(self) -> bool:
        """Whether every index that may hold a wheel of the project was seen whole."""
        return all(a.status in ("listed", "absent") for a in self.listing.answers)

    @cached_property
    def ghosts(self) -> tuple[Ghost, ...]:
        """The wheels ruled out. Made when first asked for: a set that is found needs none."""
        counts = {(version, kind): count for version, kind, count in self.ruled_out}
        for filename in self.listing.unfit:
            try:
                wheel = parse_wheel_file(filename)
            except WheelError:
                continue
            key = (wheel.version, tag_rejection(wheel, self.pythons, self.platform))
            counts[key] = counts.get(key, 0) + 1
        project = self.project
        found = [
            Ghost(project=project, version=version, fact=rejection_fact(project, kind), count=count)
            for (version, kind), count in sorted(counts.items())
        ]
        for rejection in self.listing.rejections:
            if rejection.kind in _BROKEN:
                fact = rejection_fact(project, rejection.kind, rejection.where)
                version = _version_in(rejection.filename)
                found.append(Ghost(project=project, version=version, fact=fact))
            elif rejection.kind == "quarantined":
                fact = rejection_fact(project, rejection.kind, rejection.where)
                found.append(Ghost(project=project, version=None, fact=fact))
        if self.unseen is not None:
            found.append(Ghost(project=project, version=None, fact=self.unseen))
        return tuple(found)


# What a page says of a file so badly that nobody can tell what the file is.
_BROKEN = frozenset({"bad-hash", "bad-url", "bad-name", "other-project"})


def _version_in(filename: str) -> Version | None:
    parts = filename.split("-")
    try:
        return parse_version(parts[1]) if len(parts) > 1 else None
    except WheelError:
        return None


def rejection_fact(project: str, kind: str, source: str = "") -> Fact:
    """Return the fact that wheels of a project are ruled out for a reason of this kind."""
    if kind.startswith(UNKNOWN_VARIANT):
        reason = kind.removeprefix(UNKNOWN_VARIANT)
        return Fact(
            kind=FactKind.UNKNOWN,
            subject=project,
            object=UNKNOWN_VARIANT.partition(":")[0],
            detail=f"a wheel variant of which nobody can tell whether it suits ({reason})",
            source=source,
        )
    if kind == "unlisted":
        fact_kind = FactKind.INCOMPLETE
    elif kind in ("unknown", "unreadable", "hash-open") or kind in _BROKEN:
        fact_kind = FactKind.UNKNOWN
    else:
        fact_kind = FactKind.REJECTION
    return Fact(
        kind=fact_kind,
        subject=project,
        object=kind,
        detail=f"for {kind} or newer" if kind.startswith(GLIBC) else REASONS.get(kind, kind),
        source=source,
    )


def build_options(
    listing: ProjectListing,
    *,
    target: Target,
    tag_ranks: Mapping[Tag, int],
    python: Version,
    pins: Pins,
    knowledge: Knowledge,
    cuda_project: bool,
    sha256: frozenset[str] = frozenset(),
    pinned: Callable[[Version], bool] = lambda _: False,
    as_of: AsOf | None = None,
    variants: VariantAnswers | None = None,
    facts: FactBook | None = None,
    preferred: Preference | None = None,
) -> ProjectOptions:
    """Sort out a listing. Costs about 10 us a wheel; no metadata is asked for.

    With ``sha256``, only wheels that may have one of these hashes are candidates. ``pinned`` says whether
    the user asks for exactly a version. With ``as_of``, a candidate says of itself why it does not
    count, unless it was published before, or it has no date and the user asks for its version.
    ``variants`` is what was read of wheel variants, for who asks for them, ``facts`` what was read of
    wheels themselves. ``preferred`` comes first.
    """
    project = listing.project
    kept: list[tuple[Candidate, int]] = []
    ruled_out: dict[tuple[Version, str], int] = {}
    pythons = frozenset((tag.interpreter, tag.abi) for tag in tag_ranks)
    # A wheel whose hash is open may be the one that was asked for, as long as no other says it is.
    found = any(
        not sha256.isdisjoint(file.sha256) and not file.wheel.tags.isdisjoint(tag_ranks)
        for file in listing.files
    )
    for listed in listing.files:
        file = _narrowed(listed, sha256)
        rank = min((tag_ranks[t] for t in file.wheel.tags if t in tag_ranks), default=None)
        reason: str | None
        if rank is None:
            reason = tag_rejection(file.wheel, pythons, target.platform)
        elif sha256 and len(file.sha256) == 1 and file.sha256[0] not in sha256:
            reason = "hash"
        elif found and sha256.isdisjoint(file.sha256):
            reason = "hash-open"
        else:
            reason = rejection_kind(file, target, python, knowledge)
            # A yanked release is there for those who pin it, or have it by now (PEP 592).
            had = preferred is not None and preferred.filename == file.filename
            if reason == "yanked" and (had or pinned(file.wheel.version)):
                reason = None
        settled = settle_variant(file, variants, target)
        reason = reason or settled.reason
        if reason is not None or rank is None:
            key = (file.wheel.version, reason or "platform")
            ruled_out[key] = ruled_out.get(key, 0) + 1
            continue
        candidate = make_candidate(settled, pins=pins, knowledge=knowledge, facts=facts)
        # What the target rules out for good is told by that, not by its date.
        if as_of is not None and not candidate.violations:
            candidate = replace(candidate, late=late_fact(file, as_of, pinned=pinned))
        kept.append((candidate, rank))
    options = ProjectOptions(
        project=project,
        candidates=_sorted(kept, target, preferred),
        ruled_out=tuple((*key, count) for key, count in sorted(ruled_out.items())),
        listing=listing,
        pythons=pythons,
        platform=target.platform,
    )
    if options.complete or (cuda_project and gpu_violations(project, pins)):
        return options
    unseen = sorted(a.url for a in listing.answers if a.status in ("partial", "unrecorded"))
    return replace(options, unseen=rejection_fact(project, "unlisted", ", ".join(unseen)))


def _sorted(
    kept: list[tuple[Candidate, int]], target: Target, preferred: Preference | None
) -> tuple[Candidate, ...]:
    """Sort candidates, each with the rank of its tag, best first; what is preferred before all."""
    places = variant_places((candidate.file for candidate, _ in kept), target)
    nearest: dict[Version, tuple[int, int, int]] = {}
    for candidate, _ in kept:
        if places.get(candidate.file.url, 0) > 1:
            key, version = variant_key(candidate.variant, target), candidate.version
            nearest[version] = max(key, nearest.get(version, key))

    def key_of(entry: tuple[Candidate, int]) -> tuple[object, ...]:
        candidate, rank = entry
        place = places.get(candidate.file.url, 0)
        # The variants of one version stand together, where the nearest of them would stand.
        near = nearest[candidate.version] if place > 1 else variant_key(candidate.variant, target)
        return candidate_key(candidate.file, candidate.variant, target, rank, (near, place))

    kept.sort(key=key_of, reverse=True)
    if preferred is not None:
        kept.sort(
            key=lambda e: preferred.rank(e[0].version, e[0].file.filename),
            reverse=True,
        )
    return tuple(candidate for candidate, _ in kept)


def _narrowed(file: ListedFile, sha256: frozenset[str]) -> ListedFile:
    """Keep of several claimed hashes the one that was asked for; the others are set aside."""
    asked = tuple(claimed for claimed in file.sha256 if claimed in sha256)
    if len(file.sha256) < 2 or not asked:
        return file
    others = (HashAside(c, "the requirement asks for another") for c in file.sha256)
    aside = (*file.aside, *(claim for claim in others if claim.sha256 not in asked))
    return replace(file, sha256=asked, aside=aside)


def make_candidate(
    settled: SettledVariant,
    *,
    pins: Pins,
    knowledge: Knowledge,
    address: str | None = None,
    facts: FactBook | None = None,
) -> Candidate:
    """Make a candidate of a listed file, with what its page tells about CUDA, or its bytes if just read.

    ``address`` is the URL a requirement asks for it by, as it was written.
    """
    file = settled.file
    native = may_hold_code(file)
    seen = observe_file(file, knowledge)
    read = None if facts is None or pins.target.cpu else facts.read_now(file)
    if read is not None:
        cuda = pins.target.cuda
        seen += observe_bytes(read, knowledge, wanted=None if cuda is None else cuda.major)
    variant = replace(conclude(seen, native=native), facts=read)
    variant = add_device_code(variant, file, knowledge, machine=pins.machine)
    violations = variant_violations(file.wheel.project, variant, pins)
    violations += bound_violations(file, settled.mismatches, violations, pins)
    return Candidate(
        project=file.wheel.project,
        url=address or file.url,
        file=file,
        variant=variant,
        violations=tuple(violations),
        last_resort=last_resort(variant, pins),
        direct=address is not None,
    )


def last_resort(variant: Variant, pins: Pins) -> str | None:
    """Say why a wheel serves a GPU by PTX only of which nothing is known, if it does at all.

    Device code that is known outranks what the toolkit's table says.
    """
    target, code = pins.target, variant.device_code
    if target.cpu or (code is not None and code.as_data):
        return None
    for capability in target.capabilities:
        if code is not None:
            if code.uncertain(capability, built_with=variant.cuda, driver_cuda=pins.driver_cuda):
                return (
                    f"it holds {format_images(code.images)}, and whether a driver compiles PTX of "
                    f"it for {capability} is not known"
                )
        elif variant.cuda is not None and coverage(variant.cuda, capability) == "ptx-only":
            return (
                f"CUDA {variant.cuda} has no {capability.sm}: only PTX, of which nothing is known, "
                "could serve it"
            )
    return None


def rejection_kind(
    file: ListedFile, target: Target, python: Version, knowledge: Knowledge
) -> str | None:
    """Return the kind of the first reason that rules a file out before its metadata is read."""
    wheel = file.wheel
    if file.requires_python and not _python_fits(file.requires_python, python):
        return "requires-python"
    if knowledge.placeholder(wheel.project, wheel.version) is not None:
        return "placeholder"
    vendor = label_of(wheel.version.local).vendor
    if vendor in ("rocm", "xpu", "musa", "vulkan"):
        return vendor
    if not target.cpu and (vendor == "cpu" or knowledge.cpu_build(file) is not None):
        return "cpu"
    # Last, because it is the one reason that a pin sets aside.
    return "yanked" if file.yanked is not False else None


def _python_fits(text: str, python: Version) -> bool:
    """Whether Requires-Python admits the target's; one that cannot be read admits none."""
    try:
        specifiers: SpecifierSet = parse_specifiers(text)
    except WheelError:
        return False
    return specifiers.contains(python, prereleases=True)
