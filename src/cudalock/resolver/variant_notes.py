"""What is said of wheel variants in a finished set, and the metadata its lock records.

Nothing here changes the set. A package that was locked as its ordinary wheel is matched against the
target all the same, so that the lock and whoever reads the warnings know what there was.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cudalock.errors import IndexAccessError
from cudalock.resolver.candidates import Candidate, ProjectOptions, rejection_fact
from cudalock.resolver.resolution import SetWarning
from cudalock.resolver.variants import VariantAnswers
from cudalock.resolver.world import World
from cudalock.wheel.filename import NULL_VARIANT
from cudalock.wheel.variants import VariantsMetadata, VariantsUnread

__all__ = ["VariantsTold", "tell_variants"]

_NEEDS = "pip 26.3 refuses a lock that names a wheel variant, and uv 0.13.9 finds no wheel in such an entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantsTold:
    """What to warn of, and the metadata of variants by project."""

    warnings: tuple[SetWarning, ...]
    metadata: Mapping[str, VariantsMetadata]


def tell_variants(world: World, candidates: Mapping[str, Candidate]) -> VariantsTold:
    """Tell of the variants of each chosen version; reads their metadata where that was not done.

    Metadata that cannot be had is told of and stops nothing: the set does not rest on it.
    """
    warnings: list[SetWarning] = []
    metadata: dict[str, VariantsMetadata] = {}
    taken = [c for _, c in sorted(candidates.items()) if c.file.wheel.variant_label is not None]
    if taken:
        names = ", ".join(f"{c} ({c.file.wheel.variant_label})" for c in taken)
        message = f"this lock needs an installer that knows wheel variants: {names}; {_NEEDS}"
        warnings.append(SetWarning(code="variant-locked", message=message))
    for project, candidate in sorted(candidates.items()):
        if candidate.file.variants is not None:
            metadata[project] = candidate.file.variants
        if candidate.file.wheel.variant_label is not None:
            continue
        warnings += _newer(world, candidate)
        try:
            beside = world.variants_beside(candidate)
        except IndexAccessError as error:
            message = f"the wheel variants of {candidate} could not be read: {error}"
            warnings.append(SetWarning(code="variants-unread", message=message))
            continue
        if beside is None:
            continue
        options, answers = beside
        read = [answer for answer in answers.values() if isinstance(answer, VariantsMetadata)]
        if read:
            metadata[project] = read[0]
        warnings += _passed_over(world, candidate, options, answers)
    return VariantsTold(warnings=tuple(warnings), metadata=metadata)


def _passed_over(
    world: World, candidate: Candidate, options: ProjectOptions, answers: VariantAnswers
) -> Iterator[SetWarning]:
    """Say which variants there are beside an ordinary wheel, and the one that would be taken."""
    unread = sorted({a.reason for a in answers.values() if isinstance(a, VariantsUnread)})
    if unread:
        message = f"the wheel variants of {candidate} could not be read: {'; '.join(unread)}"
        yield SetWarning(code="variants-unread", message=message)
        return
    # That the null variant suits goes without saying, and tells no more than the ordinary wheel.
    suiting = [
        candidate
        for candidate in options.candidates
        if not candidate.violations
        and candidate.last_resort is None
        and candidate.file.wheel.variant_label != NULL_VARIANT
    ]
    reasons = tuple(_reasons(options))
    if suiting and not world.request.variants:
        label = suiting[0].file.wheel.variant_label
        message = (
            f"{candidate} is locked as its ordinary wheel; its wheel variant {label} suits the "
            f"target, and `--variants` takes it, but {_NEEDS}"
        )
        yield SetWarning(code="variant-passed-over", message=message, facts=reasons)
    elif not suiting:
        message = f"no wheel variant of {candidate} is known to suit the target: "
        yield SetWarning(
            code="variant-passed-over",
            message=message + ("; ".join(reasons) or "none was read"),
            facts=reasons,
        )


def _reasons(options: ProjectOptions) -> Iterator[str]:
    for candidate in options.candidates:
        label = candidate.file.wheel.variant_label
        if candidate.violations:
            yield f"{label} {candidate.violations[0].fact.detail}"
        elif candidate.last_resort is not None:
            yield f"{label}: {candidate.last_resort}"
    for _, kind, _ in options.ruled_out:
        yield rejection_fact(options.project, kind).detail


def _newer(world: World, candidate: Candidate) -> Iterator[SetWarning]:
    """Say of a newer release that the user admits that it has nothing but variants."""
    if world.request.variants:
        return
    options = world.options(candidate.project, nightly=candidate.file.nightly)
    asked = [edge for edge in world.roots if edge.node == candidate.project]
    ordinary = {other.version for other in options.candidates}
    newer = sorted(
        version
        for version, kind, _ in options.ruled_out
        if kind == "variant"
        and version > candidate.version
        and version not in ordinary
        and not (version.is_prerelease and not candidate.version.is_prerelease)
        and all(edge.admits(version) for edge in asked)
    )
    if asked and newer:
        message = (
            f"{candidate.project} {newer[-1]} is published as wheel variants only and was not "
            f"considered; `--variants` considers it, but {_NEEDS}"
        )
        yield SetWarning(code="variant-passed-over", message=message)
