"""A finished set: checked to be closed, and described for those who write or print it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from packaging.version import Version

from cudalock.cuda import CudaVersion, DriverVersion, floor_driver, toolkit_driver
from cudalock.errors import ResolutionStoppedError
from cudalock.host import Target, compat_package
from cudalock.resolver.admission import obstacle
from cudalock.resolver.candidates import Candidate
from cudalock.resolver.conflict import NoSolutionError, make_conflict
from cudalock.resolver.demands import Demand, make_pins, variant_violations
from cudalock.resolver.engine import Progress, Solution, search
from cudalock.resolver.exhaustive import Refusal, Witness, prove
from cudalock.resolver.request import Edge
from cudalock.resolver.world import World
from cudalock.wheel.evidence import Variant
from cudalock.wheel.file_hash import FileHash
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.published import AsOf
from cudalock.wheel.variants import VariantsMetadata

__all__ = [
    "Proof",
    "Resolution",
    "ResolvedPackage",
    "SetWarning",
    "edges_in_force",
    "find_faults",
    "needed_driver",
    "needed_package",
    "solve",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """How it is known that a wheel fits: by which rule, how surely, and what was seen where."""

    rule: str
    state: Literal["proven", "assumed", "unknown"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPackage:
    """One wheel of the set. ``dependencies`` are the projects it requires there, sorted.

    ``hash`` is None until it is settled which sha256 the file has: see `Session.settle_hashes`.
    ``rivals`` are the other files of its release that any index was seen to list.
    ``variants`` is the metadata of its version's wheel variants, where there are any. ``proofs`` say how
    it is known that a native wheel fits.
    ``requires`` are the requirements in force, without their markers, ``demands`` what it asks of
    virtual packages; ``expires`` is the day on which its publisher drops it, of a nightly.
    """

    project: str
    version: Version
    file: ListedFile
    metadata: CoreMetadata
    variant: Variant
    extras: frozenset[str]
    dependencies: tuple[str, ...]
    variants: VariantsMetadata | None = None
    hash: FileHash | None = None
    rivals: tuple[ListedFile, ...] = ()
    proofs: tuple[Proof, ...] = ()
    requires: tuple[str, ...] = ()
    demands: tuple[Demand, ...] = ()
    expires: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWarning:
    """Something a person should know about a set; ``code`` is stable, ``facts`` are sentences."""

    code: str
    message: str
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A set that runs on ``target``: ``packages`` by project, and what should be said of it.

    ``compat_package`` is what the machine needs beside its driver, under forward compatibility.
    ``as_of`` is the point in time before which its wheels were published, if one was asked for.
    """

    target: Target
    packages: tuple[ResolvedPackage, ...]
    toolkit: CudaVersion | None
    driver: DriverVersion | None
    compat_package: str | None = None
    warnings: tuple[SetWarning, ...] = ()
    as_of: AsOf | None = None


def solve(world: World, progress: Progress | None = None) -> Solution:
    """Return a checked solution.

    Raises `NoSolutionError` when there is none (proved by both searches), or
    `ResolutionStoppedError` when that could not be told.
    """
    for last_resort in (False, True):
        solution = search(world, last_resort=last_resort, progress=progress)
        # resolvelib keeps a pin whose admission went away with another pin: such a set is none.
        if solution is not None and next(find_faults(world, solution), None) is None:
            return solution
    answer = prove(world)
    if isinstance(answer, Refusal):
        raise NoSolutionError(make_conflict(world, answer), world.target)
    # resolvelib can call a solvable world impossible (sarugaku/resolvelib#206).
    solution = _from_witness(world, answer)
    fault = next(find_faults(world, solution), None)
    if fault is not None:
        raise ResolutionStoppedError(f"the search gave a set that does not hold together: {fault}")
    return solution


def _from_witness(world: World, witness: Witness) -> Solution:
    candidates = {n: o for n, o in witness.chosen.items() if isinstance(o, Candidate)}
    values = {node: o for node, o in witness.chosen.items() if isinstance(o, str)}
    extras: dict[str, set[str]] = {}
    pending = [*world.roots]
    for candidate in candidates.values():
        pending.extend(world.edges(candidate))
    while pending:
        edge = pending.pop()
        new = edge.extras.difference(extras.setdefault(edge.node, set()))
        extras[edge.node] |= new
        for extra in sorted(new):
            pending.extend(world.edges(candidates[edge.node], extra))
    return Solution(
        candidates=candidates,
        values=values,
        extras={node: frozenset(names) for node, names in extras.items() if names},
    )


def edges_in_force(world: World, solution: Solution) -> Iterator[Edge]:
    """Yield every edge of a set: the roots', each wheel's, and each asked extra's."""
    yield from world.roots
    for project in sorted(solution.candidates):
        candidate = solution.candidates[project]
        yield from world.edges(candidate)
        for extra in sorted(solution.extras.get(project, ())):
            yield from world.edges(candidate, extra)


def find_faults(world: World, solution: Solution) -> Iterator[str]:
    """Check the set against every edge, by itself: nothing of either search is trusted."""
    by_node: dict[str, list[Edge]] = {}
    for edge in edges_in_force(world, solution):
        by_node.setdefault(edge.node, []).append(edge)
    for node, edges in sorted(by_node.items()):
        if node.startswith("<"):
            value = solution.values.get(node)
            if any(value not in (edge.values or ()) for edge in edges):
                yield f"{node} {value}"
            continue
        candidate = solution.candidates.get(node)
        if candidate is None:
            yield f"{node} is missing"
            continue
        options = world.options(node, nightly=any(edge.nightly for edge in edges))
        if obstacle(world, options, candidate, edges) is not None:
            yield f"{candidate} does not satisfy what is asked of {node}"
        if not world.details(candidate).usable:
            yield f"{candidate} does not fit the target"
        asked = frozenset(extra for edge in edges for extra in edge.extras)
        if asked - solution.extras.get(node, frozenset()):
            yield f"{node} lacks an extra that was asked for"


def needed_driver(target: Target, variants: list[Variant]) -> DriverVersion | None:
    """Return the oldest driver a set needs, by the target's policy; None without CUDA.

    Under ``strict`` and without its package under ``forward``, the toolkit row of the newest release in the set, under ``minor`` the floor of
    its major (NVIDIA's minor-version compatibility). What a wheel variant asks of the driver counts
    under either. Drivers are numbered by system, and none is published for CUDA 13 on Windows.
    """
    system = target.driver_system
    majors = [variant.runtime for variant in variants if variant.runtime is not None]
    releases = [variant.cuda for variant in variants if variant.cuda is not None]
    if not majors:
        return None
    floor = floor_driver(max(majors), system=system)
    row = toolkit_driver(max(releases), system=system) if releases else None
    needed = row if not target.any_minor and row is not None else floor
    bounds = [
        toolkit_driver(seen.cuda, system=system)
        for variant in variants
        for seen in variant.evidence
        if seen.kind == "variant" and seen.cuda is not None
    ]
    return max((d for d in (needed, *bounds) if d is not None), default=None)


def needed_package(target: Target, packages: Iterable[ResolvedPackage]) -> str | None:
    """Name the package of forward compatibility, if the driver alone does not run one of these."""
    if target.compat is None:
        return None
    alone = make_pins(replace(target, compat=None))
    needed = any(variant_violations(p.project, p.variant, alone) for p in packages)
    return compat_package(target.compat) if needed else None
