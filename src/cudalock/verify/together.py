"""Whether the wheels of a lock go together: one CUDA, one build of each partner, families in step.

The rules are those of a resolve (`resolver/demands.py`, `bonds.py`): what a wheel binds of a virtual
package is asked of knowledge and labels again, and of what was recorded when it was locked.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cudalock.host.target import Target
from cudalock.resolver.bonds import abi_demands, knowledge_demands, label_requirement
from cudalock.resolver.demands import DRIVER, make_pins, variant_violations
from cudalock.resolver.facts import FactKind
from cudalock.verify.builds import Build
from cudalock.verify.problems import Problem
from cudalock.verify.selection import Selection
from cudalock.wheel.knowledge import Knowledge

__all__ = ["bond_problems", "cuda_problems"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """One wheel's hold on a virtual package."""

    who: str
    values: frozenset[str]
    because: str


def cuda_problems(builds: tuple[Build, ...], target: Target) -> Iterator[Problem]:
    """Yield the wheels that are of another CUDA than the target takes, or than the others."""
    pins = make_pins(target)
    for build in builds:
        for violation in variant_violations(build.entry.name, build.variant, pins):
            fact, pin = violation.fact, violation.pin
            yield Problem(
                code=_CODES.get(violation.package, "gpu"),
                severity="broken",
                message=f"{build.entry} {fact.detail} ({fact.source}), and {pin.detail}",
                package=build.entry.name,
            )
    majors: dict[int, str] = {}
    for build in builds:
        if build.variant.runtime is not None:
            majors.setdefault(build.variant.runtime, str(build.entry))
    if len(majors) > 1 and target.cuda is None:
        told = " and ".join(f"{who} of CUDA {major}" for major, who in sorted(majors.items()))
        message = f"expected one CUDA runtime in the set, found {told}"
        yield Problem(code="cuda-runtime", severity="broken", message=message)


_CODES = {"<cuda-runtime>": "cuda-runtime", "<cuda>": "cuda", DRIVER: "driver"}


def bond_problems(
    builds: tuple[Build, ...], selection: Selection, knowledge: Knowledge
) -> Iterator[Problem]:
    """Yield the virtual packages of which two wheels want different values.

    A family shares one version, an extension goes with one minor and one C++ ABI of its partner, the
    parts of a toolkit are of one release.
    """
    held: dict[str, list[_Held]] = {}
    for build in builds:
        entry, record = build.entry, build.entry.record
        demands = [
            *knowledge_demands(entry.name, entry.version, knowledge),
            *abi_demands(entry.name, entry.version, build.variant.cuda, knowledge),
        ]
        proven = frozenset[str]() if record is None else record.proven
        demands = [
            # What the symbols of a wheel proved outranks what is assumed of its release.
            demand
            for demand in demands
            if demand.fact.kind is not FactKind.PAIRING or demand.package.strip("<>") not in proven
        ]
        known = {demand.package for demand in demands}
        for demand in demands:
            because = f"{demand.fact.detail} ({demand.fact.source})"
            held.setdefault(demand.package, []).append(
                _Held(who=str(entry), values=demand.values, because=because)
            )
        for bind in record.binds if record is not None else ():
            # What knowledge says today replaces what it said then.
            if bind.package not in known:
                held.setdefault(bind.package, []).append(
                    _Held(who=str(entry), values=bind.values, because=bind.because)
                )
        wanted = label_requirement(entry.name, entry.version, knowledge)
        partner = None if wanted is None else selection.entries.get(wanted.name)
        if (
            wanted is not None
            and partner is not None
            and not wanted.specifier.contains(partner.version, prereleases=True)
        ):
            yield Problem(
                code="bond",
                severity="broken",
                message=f"the label of {entry} requires `{wanted}`, found {partner}",
                package=entry.name,
            )
    for package in sorted(held):
        yield from _clash(package, held[package])


def _clash(package: str, holders: list[_Held]) -> Iterator[Problem]:
    """Name the first two wheels that leave no value of a virtual package."""
    left, first = holders[0].values, holders[0]
    for holder in holders[1:]:
        both = left & holder.values
        if not both:
            other = next((h for h in holders if not h.values & holder.values), first)
            yield Problem(
                code="bond",
                severity="broken",
                message=f"{other.who} {other.because} and {holder.who} {holder.because}: "
                f"no one {package} suits both",
                package=holder.who.split(" ", maxsplit=1)[0],
                hint="lock again with `cudalock resolve`",
            )
            return
        left = both
