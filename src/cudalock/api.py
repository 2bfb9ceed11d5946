"""What `import cudalock` offers and the command line calls: the rooms wired together.

Nothing here prints, reads the environment or keeps state between calls; a `Session` (in
`session.py`) is one resolve's snapshot of the indices.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudalock.errors import UsageError, WheelError
from cudalock.host import Detection, Target, detect, detect_interpreter
from cudalock.lock.fitness import machine_target
from cudalock.resolver.request import Request, Requested, exact_pin
from cudalock.resolver.resolution import Resolution
from cudalock.resolver.source import MemorySource, Source
from cudalock.resolver.world import World
from cudalock.session import IndexOptions, Session
from cudalock.solving import resolve_world
from cudalock.wheel.contents import inspect_wheel
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.names import parse_requirement
from cudalock.wheel.published import parse_as_of
from cudalock.wheel.range_source import FileSource, RangeSource
from cudalock.wheel.report import WheelReport, report_on
from cudalock.wheel.wheel_facts import DEPTHS, Tier

__all__ = [
    "IndexOptions",
    "Session",
    "detect_target",
    "find_wheel",
    "inspect",
    "resolve",
    "this_python",
]


def resolve(
    requirements: Iterable[str | Requirement],
    *,
    target: Target,
    source: Source | None = None,
    indices: IndexOptions | None = None,
    knowledge: Knowledge | None = None,
    constraints: Iterable[str | Requirement] = (),
    overrides: Iterable[str | Requirement] = (),
    prereleases: Iterable[str] = (),
    as_of: str | None = None,
    variants: bool = False,
    executor: Executor | None = None,
) -> Resolution:
    """Return a set of wheels that runs on ``target``.

    Give ``indices`` to ask real indices, or ``source`` (with ``knowledge``) to embed the resolver
    with a source of your own. ``as_of`` (`2026-02-20`, or an RFC 3339 time) leaves out what was
    published later; ``variants`` makes wheel variants candidates. Raises `NoSolutionError` with the
    proof, or another `CudalockError` when that could not be told. Prints nothing and reads no
    environment.
    """
    request = Request(
        requirements=_requested(requirements),
        constraints=_requested(constraints),
        overrides=_requested(overrides),
        prereleases=frozenset(prereleases),
        as_of=None if as_of is None else parse_as_of(as_of, where="as_of"),
        variants=variants,
    )
    if source is not None:
        return resolve_world(
            World(
                request=request,
                target=target,
                source=source,
                knowledge=knowledge or Knowledge(),
                executor=executor,
            )
        )
    if indices is None:
        raise UsageError("expected `indices` or a `source`, found neither")
    with Session(indices, executor=executor) as session:
        return session.resolve(request, target)


def _requested(requirements: Iterable[str | Requirement]) -> tuple[Requested, ...]:
    found = []
    for entry in requirements:
        try:
            requirement = parse_requirement(entry) if isinstance(entry, str) else entry
        except WheelError as error:
            raise UsageError(error.message) from error
        found.append(Requested(requirement=requirement, where="argument"))
    return tuple(found)


def detect_target(environ: Mapping[str, str] | None = None) -> Detection:
    """Ask this machine for its driver, CUDA and GPUs; every source and its answer is kept."""
    return detect(environ=environ or {})


def inspect(
    wheel: Path | RangeSource, *, target: Target | None = None, tier: Tier = "T4"
) -> WheelReport:
    """Return what a wheel is built for, by its bytes, library by library.

    ``wheel`` is a file of this machine, or any source of bytes by range. ``target`` adds a verdict for each
    of its GPUs; ``tier`` is how deep to read: ``T1`` names, ``T2`` heads, ``T3`` until code for the GPUs
    was seen, ``T4`` all. Raises `WheelError` for what is no sound wheel, and what the source raises.
    """
    if isinstance(wheel, Path):
        try:
            file = wheel.open("rb")
        except OSError as error:
            raise UsageError(f"cannot read it: {error.strerror}", where=str(wheel)) from error
        with file:
            return inspect(FileSource(file, where=str(wheel)), target=target, tier=tier)
    capabilities = () if target is None else target.capabilities
    driver_cuda = None if target is None else target.driver_cuda
    contents = inspect_wheel(
        wheel, depth=DEPTHS[tier], targets=capabilities, driver_cuda=driver_cuda
    )
    return report_on(contents, tier=tier, capabilities=capabilities, driver_cuda=driver_cuda)


def this_python() -> Target:
    """Return the target that the running Python and its platform are, of which no GPU is known.

    Raises `UsageError` for another implementation than CPython, or a platform that no CUDA wheel is made
    for. Asks no driver; costs some milliseconds.
    """
    return machine_target(detect_interpreter(), None)


def find_wheel(session: Session, requirement: str, target: Target) -> ListedFile:
    """Return the wheel of a requirement that a resolve for a target would try first.

    Raises `UsageError` where no wheel of it suits the target's Python and platform.
    """
    wanted = parse_requirement(requirement)
    request = Request(requirements=(Requested(requirement=wanted, where="argument"),))
    project = canonicalize_name(wanted.name)
    pin = exact_pin(wanted.specifier)
    listing = session.source(target, request).listing(
        project, admitted=wanted.specifier, nightly=pin is not None and pin.is_prerelease
    )
    world = World(
        request=request,
        target=target,
        source=MemorySource(listing.files, listings=[listing]),
        knowledge=session.knowledge,
    )
    for candidate in world.options(project).candidates:
        if wanted.specifier.contains(candidate.version, prereleases=pin is not None):
            return candidate.file
    raise UsageError(
        f"expected a wheel of `{requirement[:80]}` for Python {target.python} and"
        f" {target.platform}, found none among {len(listing.files)} that may fit"
    )
