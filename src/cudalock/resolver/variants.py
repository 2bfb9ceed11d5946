"""Wheel variants among a project's wheels: which may be taken, and in which order.

An installer that does not know variants refuses their names: measured, pip 26.3 refuses a whole lock
that lists one ("Invalid wheel filename"), and uv 0.13.9 finds no wheel in an entry that lists nothing
else. So variants are candidates only for who asks for them; else their release is locked as its
ordinary wheel, and the variants are told of. Matching is known to `cudalock.wheel.variant_match`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from packaging.version import Version

from cudalock.cuda import driver_cuda
from cudalock.host import Target
from cudalock.resolver.demands import DRIVER, Pins, Violation
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.source import Source
from cudalock.wheel.filename import NULL_VARIANT
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.variant_match import (
    VariantMachine,
    VariantMismatch,
    judge_variant,
    variant_order,
)
from cudalock.wheel.variants import VariantsLink, VariantsMetadata, VariantsUnread

__all__ = [
    "UNKNOWN_VARIANT",
    "SettledVariant",
    "VariantAnswers",
    "bound_violations",
    "read_variants",
    "settle_variant",
    "variant_places",
]

UNKNOWN_VARIANT = "variant-unknown: "
"""How the kind of a rejection begins that says why nobody can tell whether a variant suits."""

# The newest versions whose metadata is read; a project of more says that it was not read whole.
_VERSIONS_LIMIT = 128

VariantAnswers: TypeAlias = Mapping[
    tuple[Version, VariantsLink | None], VariantsMetadata | VariantsUnread
]
"""What was read, by version and where its page says that it is."""


def read_variants(source: Source, files: Iterable[ListedFile]) -> VariantAnswers:
    """Read the metadata of the variants among ``files``, of the newest 128 versions.

    Raises `IndexAccessError`.
    """
    first: dict[tuple[Version, VariantsLink | None], ListedFile] = {}
    for file in sorted(files, key=lambda file: file.filename):
        if file.wheel.variant_label is not None:
            first.setdefault((file.wheel.version, file.variants_link), file)
    newest = set(sorted({version for version, _ in first}, reverse=True)[:_VERSIONS_LIMIT])
    wanted = [key for key in first if key[0] in newest]
    answers = dict(zip(wanted, source.variants([first[key] for key in wanted]), strict=True))
    cut = VariantsUnread(reason=f"only the newest {_VERSIONS_LIMIT} versions were read")
    return {**dict.fromkeys(first, cut), **answers}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledVariant:
    """A file with what its label stands for; ``reason`` is the kind of rejection, if any.

    ``mismatches`` are what the target contradicts in it.
    """

    file: ListedFile
    reason: str | None = None
    mismatches: tuple[VariantMismatch, ...] = ()


def settle_variant(
    file: ListedFile, answers: VariantAnswers | None, target: Target
) -> SettledVariant:
    """Say what a wheel is as a variant; an ordinary wheel stays as it is.

    Without ``answers`` nobody asked for variants.
    """
    label = file.wheel.variant_label
    if label is None:
        return SettledVariant(file=file)
    if answers is None:
        return SettledVariant(file=file, reason="variant")
    key = (file.wheel.version, file.variants_link)
    answer = answers.get(key, VariantsUnread(reason="its metadata was not read"))
    match answer:
        case VariantsUnread():
            if label == NULL_VARIANT:
                return SettledVariant(file=file)
            return SettledVariant(file=file, reason=f"{UNKNOWN_VARIANT}{answer.reason}")
        case VariantsMetadata():
            return _settled(replace(file, variants=answer), label, answer, target)
        case _:
            assert_never(answer)


def _settled(
    file: ListedFile, label: str, variants: VariantsMetadata, target: Target
) -> SettledVariant:
    if variants.properties(label) is None:
        # PEP 825 has tools "assume that the respective wheels are incompatible"; but not known is
        # not known.
        reason = f"{UNKNOWN_VARIANT}{label} is not in {variants.source}"
        return SettledVariant(file=file, reason=reason)
    mismatches = judge_variant(label, variants, _machine(target))
    unfit = tuple(mismatch for mismatch in mismatches if mismatch.kind == "unfit")
    if any(mismatch.about == "machine" for mismatch in unfit):
        return SettledVariant(file=file, reason="variant-unfit")
    if mismatches and not unfit:
        reason = f"{UNKNOWN_VARIANT}{label} {mismatches[0].detail}"
        return SettledVariant(file=file, reason=reason)
    return SettledVariant(file=file, mismatches=unfit)


def _machine(target: Target) -> VariantMachine:
    runs = target.runs_cuda
    if runs is None and target.driver is not None:
        runs = driver_cuda(target.driver).cuda
    return VariantMachine(
        machine=target.machine, cpu=target.cpu, runs=runs, capabilities=target.capabilities
    )


def bound_violations(
    file: ListedFile,
    mismatches: Sequence[VariantMismatch],
    known: Sequence[Violation],
    pins: Pins,
) -> list[Violation]:
    """Return the bounds on the driver that the target contradicts and nothing ``known`` says yet.

    They hold under every policy: PEP 825 lets no tool take "a wheel with properties the target
    system does not support". What a variant holds for GPUs is judged like any device code.
    """
    if any(violation.package == DRIVER for violation in known):
        return []
    return [
        Violation(
            package=DRIVER,
            fact=Fact(
                kind=FactKind.DEMAND,
                subject=file.wheel.project,
                object=DRIVER,
                detail=mismatch.detail,
                source=f"variant {file.wheel.variant_label}",
            ),
            pin=pins.facts[DRIVER],
        )
        for mismatch in mismatches
        if mismatch.about == "driver"
    ]


def variant_places(files: Iterable[ListedFile], target: Target) -> dict[str, int]:
    """Return the place of each variant among those of its version, by URL; larger is better.

    PEP 825, "Variant ordering": variants with properties, then the null variant (1), then ordinary
    wheels (0, left out here).
    """
    machine = _machine(target)
    versions: dict[Version, list[ListedFile]] = {}
    for file in files:
        if file.wheel.variant_label is not None:
            versions.setdefault(file.wheel.version, []).append(file)
    places: dict[str, int] = {}
    for members in versions.values():
        read = [file for file in members if file.variants is not None]
        places.update((file.url, 1) for file in members)
        keys = {
            file.url: variant_order(file.wheel.variant_label or "", file.variants, machine)
            for file in read
            if file.variants is not None and file.wheel.variant_label != NULL_VARIANT
        }
        ordered = {key: place for place, key in enumerate(sorted(set(keys.values()), reverse=True))}
        places.update((url, 2 + ordered[key]) for url, key in keys.items())
    return places
