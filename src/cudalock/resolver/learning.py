"""Solve, read what was chosen, learn, solve again: until nothing new is learnt.

The search works on metadata and on what is known of wheels' bytes. The wheels of the set it finds are then
read, by a reader that is given; what they tell may contradict the set, and then the search runs again. A
"no" that rests on an assumption (a pairing, a label, stand-in metadata) is not said before the wheels it
speaks of were read. Facts only ever rule out, so a set that still holds is still the first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from cudalock.errors import ResolutionStoppedError
from cudalock.resolver.candidates import Candidate
from cudalock.resolver.conflict import Conflict, NoSolutionError
from cudalock.resolver.engine import Solution
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.path_clashes import path_clashes
from cudalock.resolver.resolution import find_faults, solve
from cudalock.resolver.selection import virtual_key
from cudalock.resolver.world import World
from cudalock.wheel.evidence import may_hold_code
from cudalock.wheel.gpu_service import gpu_service
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.wheel_facts import Tier

__all__ = ["ROUND_LIMIT", "Learnt", "ReadWheels", "Wanted", "learn"]

ROUND_LIMIT = 30
_NAMED_LIMIT = 4
_WHOLE_BELOW = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A wheel to read, and how deep. With ``whole_below``, a smaller one that speaks of CUDA is read whole."""

    file: ListedFile
    tier: Tier
    whole_below: int = 0


ReadWheels = Callable[[list[Wanted]], bool]
"""Reads wheels into the book of facts; whether anything new was learnt. What cannot be read is noted there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A solution, the world, with all that was learnt, in which it holds, and the one that was searched last.

    What was passed over is known to the searched one.
    """

    world: World
    searched: World
    solution: Solution


def learn(
    make_world: Callable[[frozenset[str]], World],
    read: ReadWheels,
    find: Callable[[World], Solution] = solve,
) -> Learnt:
    """Return a solution that the bytes of its wheels do not contradict.

    ``make_world`` makes the problem anew, given the paths that two wheels were seen to own; ``find`` solves
    it. Raises what that does, once the wheels that a refusal speaks of were read as far as that can be done, and under
    ``strict`` `ResolutionStoppedError` for a set with libraries of which nobody can tell.
    """
    contested = frozenset[str]()
    world = searched = make_world(contested)
    solution: Solution | None = None
    for _ in range(ROUND_LIMIT):
        if solution is None:
            try:
                solution, searched = find(world), world
            except NoSolutionError as error:
                if not read(list(_assumed(world, error.conflict))):
                    raise
                world = make_world(contested)
                continue
        learnt = read(list(_unread(world, solution)))
        clashes = {
            # One path tells enough. What a wheel requires together is told of, and not refused.
            clash.paths[0]
            for clash in path_clashes(world, solution)
            if clash.together is None
        } - contested
        if not learnt and not clashes:
            _refuse_undecided(world, solution)
            return Learnt(world=world, searched=searched, solution=solution)
        contested |= clashes
        world = make_world(contested)
        solution = _carried_over(world, solution)
    raise ResolutionStoppedError(
        f"each of {ROUND_LIMIT} sets was contradicted by the bytes of its wheels: this proves nothing"
    )


def _unread(world: World, solution: Solution) -> Iterator[Wanted]:
    """Yield the wheels of a set that are to be read, by the target's policy."""
    policy, target = world.pins.verify_sm, world.target
    if policy == "off" or target.cpu:
        return
    for project in sorted(solution.candidates):
        candidate = solution.candidates[project]
        file, facts = candidate.file, world.facts.of(candidate.file)
        cuda = _is_of_cuda(world, candidate)
        if world.facts.failure(file) is not None or not (may_hold_code(file) or cuda):
            continue
        if facts is None:
            small = cuda and file.size is not None and file.size < _WHOLE_BELOW
            yield Wanted(file=file, tier="T4" if small else "T2", whole_below=_WHOLE_BELOW)
        elif policy == "strict" and facts.tier != "T4" and _undecided(world, candidate):
            # What files of device code hold is told by their names until all of them are read.
            unread = any(not code.read for code in facts.contents.loose)
            yield Wanted(file=file, tier="T4" if facts.tier == "T3" and unread else "T3")


def _is_of_cuda(world: World, candidate: Candidate) -> bool:
    """Whether a wheel is of a project built for CUDA, or requires one that is."""
    if world.is_cuda_project(candidate.project):
        return True
    metadata = world.details(candidate).metadata
    if metadata is None:
        return False
    libraries = {library.project for library in world.knowledge.runtime_libraries}
    names = {canonicalize_name(requirement.name) for requirement in metadata.requires_dist}
    return not names.isdisjoint(libraries | world.knowledge.partners)


def _undecided(world: World, candidate: Candidate) -> list[str]:
    """Return what keeps from telling whether each library of a wheel serves every GPU."""
    if world.knowledge.mark("compiles", candidate.project) is not None:
        return []
    variant = world.details(candidate).variant
    found = []
    for capability in world.target.capabilities:
        service = gpu_service(
            variant,
            capability,
            driver_cuda=world.pins.driver_cuda,
            knowledge=world.knowledge,
            project=candidate.project,
        )
        if service is None:
            if variant.facts is None or not variant.facts.contents.complete:
                found.append(f"nothing is known of it for {capability.sm}")
        elif service.undecided:
            names = ", ".join(each.name for each in service.undecided)
            found.append(f"{names} for {capability.sm}")
        elif not service.read:
            found.append(f"code for {capability.sm} is only said to be in it ({service.source})")
    return found


def _refuse_undecided(world: World, solution: Solution) -> None:
    """Raise for wheels of CUDA projects of which it is not known whether all of it serves, with the reasons."""
    if world.pins.verify_sm != "strict" or world.target.cpu:
        return
    found = []
    for project in sorted(solution.candidates):
        candidate = solution.candidates[project]
        native = may_hold_code(candidate.file) or world.is_cuda_project(project)
        told = _undecided(world, candidate) if native and _is_of_cuda(world, candidate) else []
        if told:
            why = world.facts.failure(candidate.file)
            found.append(f"{candidate}: {', '.join(told)}" + (f" ({why})" if why else ""))
    if found:
        raise ResolutionStoppedError(
            "`--verify-sm strict` asks for code in every library, and of these that could not be told: "
            f"{'; '.join(found)}"
        )


def _assumed(world: World, conflict: Conflict) -> Iterator[Wanted]:
    """Yield the wheels about which a conflict only assumes something: of each project the newest few."""
    if world.pins.verify_sm == "off" or world.target.cpu:
        return
    facts = [*conflict.facts, *(fact for also in conflict.also for fact in also)]
    named: dict[str, set[str]] = {}
    for described in facts:
        fact = described.fact
        if _is_assumption(world, fact):
            named.setdefault(fact.subject, set()).update(str(v) for v in described.versions)
    for project in sorted(named):
        options = world.options(project, nightly=world.opens_nightly(project))
        asked = [edge for edge in world.roots if edge.node == project]
        fitting = [
            candidate.file
            for candidate in options.candidates
            if str(candidate.version) in named[project]
            and all(edge.admits(candidate.version) for edge in asked)
            and (may_hold_code(candidate.file) or world.is_cuda_project(project))
        ]
        for file in fitting[:_NAMED_LIMIT]:
            if world.facts.of(file) is None and world.facts.failure(file) is None:
                yield Wanted(file=file, tier="T2")


def _is_assumption(world: World, fact: Fact) -> bool:
    """Whether a fact is known by no more than knowledge, a label, or what stands in for METADATA."""
    match fact.kind:
        case FactKind.PAIRING:
            return True
        case FactKind.DEMAND:
            return fact.source.startswith("label +")
        case FactKind.DEPENDENCY:
            options = world.options(fact.subject, nightly=world.opens_nightly(fact.subject))
            known = [world.known(candidate) for candidate in options.candidates]
            return any(
                details.metadata.assumed and details.metadata.source == fact.source
                for details in known
                if details is not None and details.metadata is not None
            )
        case _:
            return False


def _carried_over(world: World, solution: Solution) -> Solution | None:
    """Return the solution in a world where more is known, None where it does not hold any more."""
    candidates: dict[str, Candidate] = {}
    for project, old in solution.candidates.items():
        if old.direct:
            candidates[project] = world.direct(project, old.url)
            continue
        options = world.options(project, nightly=old.file.nightly)
        found = next((c for c in options.candidates if c.url == old.url), None)
        if found is None:
            return None
        candidates[project] = found
    moved = replace(solution, candidates=candidates)
    accepted: dict[str, frozenset[str]] = {}
    for project in sorted(candidates):
        if not world.details(candidates[project]).usable:
            return None
        for edge in world.edges(candidates[project]):
            if edge.values is not None:
                values = accepted.get(edge.node, edge.values)
                accepted[edge.node] = values & edge.values
    if not all(accepted.values()):
        return None
    chosen = {
        node: solution.values[node]
        if solution.values.get(node) in options
        else max(options, key=virtual_key)
        for node, options in accepted.items()
    }
    moved = replace(moved, values=chosen)
    return moved if next(find_faults(world, moved), None) is None else None
