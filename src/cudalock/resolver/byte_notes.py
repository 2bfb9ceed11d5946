"""What should be said of a set by the bytes of its wheels: libraries nobody brings, files two wheels own.

And for each native wheel, by which rule it was found to fit, and whether that is proven, assumed or unknown.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from cudalock.resolver.byte_demands import missing_in
from cudalock.resolver.candidates import Candidate
from cudalock.resolver.engine import Solution
from cudalock.resolver.facts import FactKind
from cudalock.resolver.path_clashes import path_clashes
from cudalock.resolver.resolution import Proof, ResolvedPackage, SetWarning
from cudalock.resolver.world import World
from cudalock.wheel.byte_evidence import builds_of_libraries, cuda_major_of, split_soname
from cudalock.wheel.contents import external_needs
from cudalock.wheel.gpu_service import GpuService, gpu_service
from cudalock.wheel.wheel_facts import WheelFacts

__all__ = ["byte_warnings", "proofs"]

State = Literal["proven", "assumed", "unknown"]
_SHOWN = 6


def byte_warnings(
    world: World, solution: Solution, packages: tuple[ResolvedPackage, ...]
) -> Iterator[SetWarning]:
    """Yield what to say of the wheels that were read."""
    if world.target.cpu:
        return
    present = {package.project for package in packages}
    for package in packages:
        facts = world.facts.of(package.file)
        if facts is not None:
            yield from _unbrought(world, package, facts, present)
    for clash in path_clashes(world, solution):
        if clash.together is not None:
            more = f" and {len(clash.paths) - 1} more" if len(clash.paths) > 1 else ""
            yield SetWarning(
                code="path-clash",
                message=f"{' and '.join(clash.projects)} install different bytes as {clash.paths[0]}"
                f"{more}, and {clash.together} requires {'both' if len(clash.projects) == 2 else 'them all'}: which one stays depends on the order "
                "they are installed in",
                facts=clash.paths,
            )


def _unbrought(
    world: World, package: ResolvedPackage, facts: WheelFacts, present: set[str]
) -> Iterator[SetWarning]:
    """Name libraries that a wheel needs, of which it is known who brings them, and nobody in the set does."""
    needed: dict[tuple[str, ...], set[str]] = {}
    for group in builds_of_libraries(facts.contents):
        answers = []
        for library in group:
            found = {}
            for name in external_needs(facts.contents, library) or ():
                providers = _providers(world, name)
                if providers and present.isdisjoint(providers):
                    found[name] = providers
            answers.append(found)
        # Of builds of one library the one that finds most is loaded.
        for name, providers in min(answers, key=len).items():
            needed.setdefault(providers, set()).add(name)
    for providers, names in sorted(needed.items()):
        named = ", ".join(sorted(names)[:_SHOWN])
        brings = next(iter(providers))
        yield SetWarning(
            code="undeclared-library",
            message=f"{package.project} {package.version} needs {named}, which nothing in the set brings "
            f"and its METADATA does not ask for: {brings} would bring it",
            facts=tuple(f"{name}: {', '.join(providers)}" for name in sorted(names)),
        )


def _providers(world: World, name: str) -> tuple[str, ...]:
    """Return who brings a library of this name for its CUDA major, or else for the target's."""
    entry = world.knowledge.shared_library(split_soname(name)[0])
    if entry is None:
        return ()
    major = cuda_major_of(name, world.knowledge)
    if major is None and world.target.cuda is not None:
        major = world.target.cuda.major
    known = world.knowledge.runtime_libraries
    majors = {p: {each.major for each in known if each.project == p} for p in entry.providers}
    return tuple(p for p in entry.providers if not majors[p] or major in majors[p])


def proofs(world: World, solution: Solution, candidate: Candidate) -> tuple[Proof, ...]:
    """Return how it is known that a native wheel fits; nothing for one of which nothing is asked."""
    variant = world.details(candidate).variant
    facts = variant.facts
    if variant.state == "none" and facts is None:
        return ()
    found = [_runtime(world, candidate)]
    found += _gpus(world, candidate)
    found += _torch(world, solution, candidate)
    return tuple(proof for proof in found if proof is not None)


def _runtime(world: World, candidate: Candidate) -> Proof | None:
    variant = world.details(candidate).variant
    seen = variant.decisive
    if variant.state == "none":
        return None
    if seen is None:
        why = world.facts.failure(candidate.file)
        read = "not read" if variant.facts is None else "nothing in what was read tells"
        read = f"not read: {why}" if why else read
        return Proof(rule="cuda-runtime", state="unknown", text=read)
    state: State = "proven" if seen.kind == "needed" else "assumed"
    return Proof(rule="cuda-runtime", state=state, text=f"{seen.text} ({seen.source})")


def _gpus(world: World, candidate: Candidate) -> Iterator[Proof | None]:
    variant = world.details(candidate).variant
    for capability in world.target.capabilities:
        service = gpu_service(
            variant,
            capability,
            driver_cuda=world.pins.driver_cuda,
            knowledge=world.knowledge,
            project=candidate.project,
        )
        rule = f"gpu {capability}"
        if service is not None:
            yield Proof(rule=rule, state=_certainty(service), text=_coverage(service))
        elif candidate.project in world.knowledge.cuda_libraries:
            # What CUDA's own libraries run on is their toolkit's business.
            continue
        elif variant.facts is not None and variant.facts.contents.complete:
            yield Proof(rule=rule, state="proven", text=_without_code(variant.facts))
        elif variant.state == "known":
            yield Proof(rule=rule, state="unknown", text="its device code was not read")


def _without_code(facts: WheelFacts) -> str:
    contents = facts.contents
    code = any(lib.code.containers or lib.code.bare_cubins for lib in contents.libraries)
    return "no device code of its own in it" if code or contents.loose else "no device code in it"


def _certainty(service: GpuService) -> State:
    if service.undecided and not service.serves:
        return "unknown"
    return "proven" if service.read and not service.undecided else "assumed"


def _coverage(service: GpuService) -> str:
    parts = [f"{each.name} {each.counted or each.served}" for each in service.libraries[:_SHOWN]]
    more = len(service.libraries) - _SHOWN
    return ", ".join([*parts, *([f"{more} more"] if more > 0 else [])]) + f" ({service.source})"


def _torch(world: World, solution: Solution, candidate: Candidate) -> Iterator[Proof]:
    facts = world.details(candidate).variant.facts
    releases: Mapping[str, str] = {p: c.version.public for p, c in solution.candidates.items()}
    for table in world.facts.tables:
        project = table.project
        if candidate.project == project or releases.get(project) != table.release.public:
            continue
        missing = None if facts is None else missing_in(facts.contents, table)
        if facts is not None and missing == ():
            if any(
                lib.torch is not None and lib.torch.undefined for lib in facts.contents.libraries
            ):
                text = f"every symbol it needs is exported ({table.source})"
                # Of a library that was read in part there may be symbols that nobody saw.
                seen = all(lib.torch and lib.torch.exact for lib in facts.contents.libraries)
                state: State = "proven" if seen and not table.partial else "assumed"
                yield Proof(rule=f"lib{project}", state=state, text=text)
            return
    for demand in world.details(candidate).demands:
        if demand.fact.kind is FactKind.PAIRING:
            text = f"{demand.fact.detail} ({demand.fact.source})"
            yield Proof(rule=demand.package.strip("<>"), state="assumed", text=text)
