"""What should be said of a finished set: what was held back and why, what is not known.

Each warning has a stable code. Nothing here changes the set.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from packaging.utils import canonicalize_name

from cudalock.cuda import CudaVersion, parse_cuda_version
from cudalock.resolver.build_notes import build_warnings
from cudalock.resolver.byte_notes import byte_warnings, proofs
from cudalock.resolver.candidates import Candidate
from cudalock.resolver.demands import TOOLKIT
from cudalock.resolver.engine import Solution
from cudalock.resolver.file_notes import file_warnings, hash_warnings
from cudalock.resolver.held_back import held_back_warnings
from cudalock.resolver.nightly_notes import expiry, nightly_warnings
from cudalock.resolver.request import format_requirement
from cudalock.resolver.resolution import (
    Resolution,
    ResolvedPackage,
    SetWarning,
    needed_driver,
    needed_package,
)
from cudalock.resolver.variant_notes import tell_variants
from cudalock.resolver.world import World
from cudalock.wheel.evidence import marker_holds
from cudalock.wheel.listing import ListedFile

__all__ = ["describe", "unpublished_warnings"]


def describe(world: World, solution: Solution, searched: World | None = None) -> Resolution:
    """Describe a checked solution: its packages, what it needs, and what to say of it.

    ``searched`` is the world it was found in, if another: what was passed over is known there.
    """
    packages = tuple(_package(world, solution, p) for p in sorted(solution.candidates))
    toolkit = solution.values.get(TOOLKIT)
    variants = tell_variants(world, solution.candidates)
    packages = tuple(replace(p, variants=variants.metadata.get(p.project)) for p in packages)
    warnings = [
        *held_back_warnings(searched or world, solution),
        *_yanked(packages),
        *_last_resorts(world, solution),
        *_unknown(world, packages),
        *_disagreeing(packages),
        *_newer_minors(world, packages),
        *_majors_only(world, packages),
        *_other_minor(world, solution, packages),
        *_lacking_extras(packages),
        *_overridden_extras(world, packages),
        *_assumed(packages),
        *build_warnings(
            packages,
            target=world.target,
            knowledge=world.knowledge,
            toolkit=parse_cuda_version(toolkit) if toolkit is not None else None,
        ),
        *byte_warnings(world, solution, packages),
        *nightly_warnings(world, solution, packages),
        *variants.warnings,
        *hash_warnings(packages),
        *_listing_notes(world, packages),
    ]
    return Resolution(
        target=world.target,
        packages=packages,
        toolkit=parse_cuda_version(toolkit) if toolkit is not None else None,
        driver=needed_driver(world.target, [package.variant for package in packages]),
        compat_package=needed_package(world.target, packages),
        as_of=world.request.as_of,
        warnings=tuple(warnings),
    )


def _package(world: World, solution: Solution, project: str) -> ResolvedPackage:
    candidate = solution.candidates[project]
    details = world.details(candidate)
    extras = solution.extras.get(project, frozenset())
    edges = [*world.edges(candidate)]
    for extra in sorted(extras):
        edges.extend(world.edges(candidate, extra))
    if details.metadata is None:  # pragma: no cover - a checked solution has read every wheel
        raise AssertionError(f"{candidate} was never read")
    return ResolvedPackage(
        project=project,
        version=candidate.version,
        file=candidate.file,
        metadata=details.metadata,
        variant=details.variant,
        extras=extras,
        dependencies=tuple(sorted({e.node for e in edges if not e.node.startswith("<")})),
        rivals=_rivals(world, candidate),
        proofs=proofs(world, solution, candidate),
        requires=tuple(sorted({e.fact.detail for e in edges if not e.node.startswith("<")})),
        demands=details.demands,
        expires=expiry(world, candidate.file),
    )


def _rivals(world: World, candidate: Candidate) -> tuple[ListedFile, ...]:
    listing = world.options(candidate.project, nightly=candidate.file.nightly).listing
    release = candidate.version.public
    return tuple(
        file
        for file in (*listing.files, *listing.elsewhere)
        if file.wheel.version.public == release and file.url != candidate.file.url
    )


def _yanked(packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    for package in packages:
        if package.file.yanked is not False:
            why = f": {package.file.yanked}" if isinstance(package.file.yanked, str) else ""
            yield SetWarning(
                code="yanked",
                message=f"{package.project} {package.version} was yanked by its publisher{why}",
            )


def _last_resorts(world: World, solution: Solution) -> Iterator[SetWarning]:
    for project in sorted(solution.candidates):
        candidate = solution.candidates[project]
        reason = world.details(candidate).last_resort
        if reason is not None:
            yield SetWarning(
                code="ptx-only",
                message=f"{candidate} is taken because nothing else serves the GPU: {reason}",
            )


def _unknown(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    """Name the wheels of CUDA projects whose CUDA is not known."""
    names = [
        f"{package.project} {package.version}"
        for package in packages
        if package.variant.state == "unknown" and _built_for_cuda(world, package)
    ]
    if names:
        yield SetWarning(
            code="unknown-cuda",
            message=(
                "nothing that was read says which CUDA these are built for: " + ", ".join(names)
            ),
            facts=tuple(names),
        )


def _built_for_cuda(world: World, package: ResolvedPackage) -> bool:
    knowledge = world.knowledge
    if world.is_cuda_project(package.project):
        return knowledge.mark("compiles", package.project) is None
    return any(
        dependency in knowledge.partners
        or any(library.project == dependency for library in knowledge.runtime_libraries)
        for dependency in package.dependencies
    )


def _disagreeing(packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    for package in packages:
        if package.variant.disagreement:
            told = [o for o in package.variant.evidence if o.major is not None]
            seen = tuple(f"{o.text} ({o.source})" for o in told)
            yield SetWarning(
                code="evidence-disagrees",
                message=f"{package.project} {package.version}: {'; '.join(seen)}",
                facts=seen,
            )


def _newer_minors(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    """Say which wheels ``minor`` let in: built for a newer release than the target's."""
    release = world.target.cuda
    names = [
        f"{package.project} {package.version} (CUDA {package.variant.cuda})"
        for package in packages
        if release is not None
        and package.variant.cuda is not None
        and package.variant.cuda > release
        and world.knowledge.toolkit_part(package.project) is None
    ]
    if names:
        yield SetWarning(
            code="newer-minor",
            message=f"built for a newer release than CUDA {release}, and allowed by minor-version"
            f" compatibility: {', '.join(names)}",
            facts=tuple(names),
        )


def _majors_only(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    """Say which wheels ``strict`` took on a label that names only a major."""
    if world.target.any_minor:
        return
    names = [
        f"{package.project} {package.version}"
        for package in packages
        if (seen := package.variant.decisive) is not None
        and seen.kind in ("label", "variant")
        and package.variant.cuda is None
    ]
    if names:
        yield SetWarning(
            code="major-only",
            message="the label or variant names only a CUDA major, which is accepted in that major: "
            + ", ".join(names),
            facts=tuple(names),
        )


def _other_minor(
    world: World, solution: Solution, packages: tuple[ResolvedPackage, ...]
) -> Iterator[SetWarning]:
    """Name projects numbered by CUDA, and parts under ``minor``, of another release than the set."""
    knowledge = world.knowledge
    decided = solution.values.get(TOOLKIT)
    toolkits = [p.variant.cuda for p in packages if knowledge.toolkit(p.project) is not None]
    release = next(iter(toolkits), world.target.cuda)
    if decided is not None:
        release = parse_cuda_version(decided)
    for package in packages:
        number = package.variant.cuda
        if knowledge.cuda_number(package.project) is not None:
            number = CudaVersion(major=package.version.major, minor=package.version.minor)
        elif knowledge.toolkit_part(package.project) is None:
            continue
        if None not in (release, number) and number != release:
            yield SetWarning(
                code="other-minor",
                message=f"{package.project} {package.version} is for CUDA {number}; "
                f"the set is CUDA {release}",
            )


def _lacking_extras(packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    for package in packages:
        lacking = package.extras - package.metadata.provides_extra
        if lacking and not package.metadata.assumed:
            yield SetWarning(
                code="missing-extra",
                message=(
                    f"{package.project} {package.version} has no extra {', '.join(sorted(lacking))}"
                ),
            )


def _overridden_extras(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    """Say which extras a wheel asks for that an override, which replaces the whole, does not."""
    for entry in world.request.overrides:
        if not marker_holds(entry.requirement, world.environment):
            continue
        kept = {canonicalize_name(extra) for extra in entry.requirement.extras}
        for package in packages:
            lost = {
                canonicalize_name(extra)
                for requirement in package.metadata.requires_dist
                if canonicalize_name(requirement.name) == entry.project
                and any(
                    marker_holds(requirement, world.environment, extra)
                    for extra in (None, *sorted(package.extras))
                )
                for extra in requirement.extras
            } - kept
            if lost:
                named = ",".join(sorted(lost))
                yield SetWarning(
                    code="override-extra",
                    message=f"your override `{format_requirement(entry.requirement)}` leaves out "
                    f"what {package.project} {package.version} asks for: "
                    f"`{entry.project}[{named}]`",
                )


def _assumed(packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    assumed = [package for package in packages if package.metadata.assumed]
    if assumed:
        facts = tuple(f"{p.project} {p.version}: {p.metadata.source}" for p in assumed)
        names = ", ".join(f"{p.project} {p.version}" for p in assumed)
        yield SetWarning(
            code="assumed-metadata",
            message=f"what these require is assumed, not read from their own METADATA: {names}",
            facts=facts,
        )


def _listing_notes(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    for package in packages:
        options = world.options(package.project, nightly=package.file.nightly)
        yield from file_warnings(package, options.listing.statuses)
        for note in options.listing.notes:
            yield SetWarning(code="index", message=note)


def unpublished_warnings(
    resolution: Resolution, absent: Iterable[tuple[str, str]]
) -> list[SetWarning]:
    """Say which newer folders a publisher of the set does not have: ``cu131`` of PyTorch."""
    cuda = resolution.target.cuda
    used: dict[str, set[str]] = {}
    for package in resolution.packages:
        if package.file.folder is not None:
            used.setdefault(package.file.index, set()).add(package.file.folder)
    if cuda is None:
        return []
    found = []
    for index, folder in absent:
        if folder == cuda.label and index in used:
            taken = ", ".join(sorted(used[index]))
            message = f"`{index}` publishes no {folder}: {taken} is taken"
            found.append(SetWarning(code="unpublished", message=message))
    return found
