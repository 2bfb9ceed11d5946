"""Remedies: changes that were made and solved before they are shown.

First what is least: change one requirement; take the nightlies of another day, all of one; move along
a rename and a pairing that knowledge knows (which may change both ends); take another ``--cuda``, the
other policy or a newer driver. When none of these solves, all requirements of the conflict at once or
another Python; and when that does not either, without an extra or something else that was asked for.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.cuda import CudaVersion, driver_cuda, floor_driver, known_majors, newest_minor
from cudalock.host import Target
from cudalock.resolver.conflict import Conflict
from cudalock.resolver.demands import DRIVER, STRICT
from cudalock.resolver.facts import FactKind
from cudalock.resolver.request import Request, Requested, VerifySm, exact_pin, format_requirement
from cudalock.resolver.resolution import Resolution
from cudalock.wheel.knowledge import Knowledge

__all__ = ["Remedy", "TrySolve", "find_remedies"]

_TRY_LIMIT = 8

TrySolve = Callable[[Request, Target], Resolution | None]
"""Solve a changed problem; None when it has no solution or that could not be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change that solves: ``changes`` in words, and the problem it makes.

    ``requirements`` are the changed requirements in the order they were given; ``target`` the
    target they were solved for, ``prereleases`` the projects whose pre-releases were let in for it,
    ``variants`` whether wheel variants counted, ``verify_sm`` how much of the device code had to be
    seen. ``note`` says what should be known of the change. ``hashes`` are
    the files whose hash the index leaves open: a lock of the set needs them downloaded.
    """

    changes: tuple[str, ...]
    requirements: tuple[Requested, ...]
    target: Target
    note: str = ""
    hashes: tuple[str, ...] = ()
    prereleases: tuple[str, ...] = ()
    variants: bool = False
    verify_sm: VerifySm = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A changed problem. ``moved`` are the positions of requirements to pin to what is found."""

    request: Request
    target: Target
    moved: tuple[int, ...] = ()
    changes: tuple[str, ...] = ()
    note: str = ""
    opened: tuple[str, ...] = ()


def find_remedies(
    conflict: Conflict,
    *,
    request: Request,
    target: Target,
    knowledge: Knowledge,
    solve: TrySolve,
) -> tuple[Remedy, ...]:
    """Return the remedies that solve, most like what was asked first.

    At most eight changed problems are solved, and up to twelve of a larger kind while those give
    nothing.
    """
    inside = {
        (fact.fact.object, fact.fact.source)
        for fact in conflict.facts
        if fact.fact.kind is FactKind.REQUIREMENT
    }
    positions = [
        position
        for position, entry in enumerate(request.requirements)
        if (entry.project, entry.where) in inside
    ]
    steps = (
        [
            *_with_less_seen(request, target, conflict),
            *_relaxed(request, target, positions),
            *_opened(request, target, conflict, knowledge),
            *_of_one_day(request, target, positions, knowledge),
            *_renamed(request, target, positions, knowledge),
            *_with_variants(request, target, conflict),
            *_retargeted(request, target, conflict),
        ],
        [
            *_together(request, target, positions),
            *_other_pythons(request, target, conflict),
        ],
        list(_dropped(request, target, positions)),
    )
    for attempts in steps:
        found = _found(attempts, solve)
        if found:
            return tuple(found)
    return ()


def _found(attempts: list[_Attempt], solve: TrySolve) -> list[Remedy]:
    """Return what solves of the first eight; what two attempts come to is told once."""
    found: dict[tuple[str, ...], Remedy] = {}
    for attempt in attempts[:_TRY_LIMIT]:
        remedy = _tried(attempt, solve)
        if remedy is not None:
            found.setdefault(remedy.changes, remedy)
    return list(found.values())


def _tried(attempt: _Attempt, solve: TrySolve) -> Remedy | None:
    resolution = solve(attempt.request, attempt.target)
    if resolution is None:
        return None
    versions = {package.project: package.version for package in resolution.packages}
    requirements = list(attempt.request.requirements)
    changes = list(attempt.changes)
    for position in attempt.moved:
        entry = requirements[position]
        version = versions.get(entry.project)
        if version is None:
            continue
        pinned = _with_pin(entry.requirement, version)
        requirements[position] = replace(entry, requirement=pinned)
        changes.append(format_requirement(pinned))
    return Remedy(
        changes=tuple(changes),
        requirements=tuple(requirements),
        target=attempt.target,
        note=attempt.note,
        hashes=tuple(
            package.file.filename
            for package in resolution.packages
            if len(package.file.sha256) != 1
        ),
        prereleases=attempt.opened,
        variants=attempt.request.variants,
        verify_sm=attempt.request.verify_sm,
    )


def _with_pin(requirement: Requirement, version: Version) -> Requirement:
    """Pin a requirement to the public version that was found (its label comes with the target)."""
    changed = _copy(requirement)
    changed.specifier = SpecifierSet(f"=={version.public}")
    return changed


def _copy(requirement: Requirement) -> Requirement:
    changed = Requirement(str(requirement))
    changed.url = None
    return changed


def _loosened(
    requirement: Requirement, specifier: str = "", name: str | None = None
) -> Requirement:
    changed = _copy(requirement)
    changed.specifier = SpecifierSet(specifier)
    changed.name = name or changed.name
    return changed


def _changed(request: Request, changed: dict[int, Requirement]) -> Request:
    entries = [
        replace(entry, requirement=changed[position]) if position in changed else entry
        for position, entry in enumerate(request.requirements)
    ]
    return replace(request, requirements=tuple(entries))


def _relaxed(request: Request, target: Target, positions: list[int]) -> Iterator[_Attempt]:
    """Let one requirement of the conflict take any release."""
    for position in positions:
        requirement = request.requirements[position].requirement
        if requirement.specifier or requirement.url:
            changed = _changed(request, {position: _loosened(requirement)})
            yield _Attempt(request=changed, target=target, moved=(position,))


def _opened(
    request: Request, target: Target, conflict: Conflict, knowledge: Knowledge
) -> Iterator[_Attempt]:
    """Let pre-releases of the other members of a train in, when one of it is a pre-release."""
    asked = {entry.project for entry in request.requirements}
    early = set(request.prereleases)
    for entry in request.requirements:
        pin = exact_pin(entry.requirement.specifier)
        if pin is not None and pin.is_prerelease:
            early.add(entry.project)
    subjects = {fact.fact.subject for fact in conflict.facts}
    subjects |= {fact.fact.object for fact in conflict.facts}
    for train in knowledge.trains:
        members = set(train.projects)
        closed = sorted((members & asked) - request.prereleases - early)
        if closed and members & early and subjects.intersection(closed):
            changed = replace(request, prereleases=request.prereleases.union(closed))
            yield _Attempt(
                request=changed,
                target=target,
                changes=tuple(f"--prerelease {name}" for name in closed),
                opened=tuple(closed),
            )


def _of_one_day(
    request: Request, target: Target, positions: list[int], knowledge: Knowledge
) -> Iterator[_Attempt]:
    """Take any day's nightlies in place of the one that is pinned, for all members of a train."""
    for train in knowledge.trains:
        members = {
            position: entry.requirement
            for position, entry in enumerate(request.requirements)
            if entry.project in train.projects
        }
        pins = {position: exact_pin(asked.specifier) for position, asked in members.items()}
        early = [p for p in positions if (pin := pins.get(p)) is not None and pin.is_prerelease]
        if early:
            changed = _changed(request, {p: _loosened(asked) for p, asked in members.items()})
            names = {entry.project for p, entry in enumerate(request.requirements) if p in members}
            yield _Attempt(
                request=replace(changed, prereleases=request.prereleases.union(names)),
                target=target,
                moved=tuple(members),
            )


def _together(request: Request, target: Target, positions: list[int]) -> Iterator[_Attempt]:
    """Let all requirements of the conflict take any release."""
    bound = {
        position: _loosened(request.requirements[position].requirement)
        for position in positions
        if request.requirements[position].requirement.specifier
    }
    if len(bound) > 1:
        yield _Attempt(request=_changed(request, bound), target=target, moved=tuple(bound))


def _other_pythons(request: Request, target: Target, conflict: Conflict) -> Iterator[_Attempt]:
    """Take the next older and newer Pythons, where wheels are for another one."""
    if any(fact.fact.object in ("python", "requires-python") for fact in conflict.facts):
        major, minor = map(int, target.python_minor.split("."))
        for other in (minor - 1, minor + 1, minor - 2):
            python = f"{major}.{other}"
            yield _Attempt(
                request=request,
                target=replace(target, python=python),
                changes=(f"--python {python}",),
            )


def _renamed(
    request: Request, target: Target, positions: list[int], knowledge: Knowledge
) -> Iterator[_Attempt]:
    """Follow a rename, with the partner as it is, or at the release its pre-release leads to."""
    for position in positions:
        entry = request.requirements[position]
        rename = knowledge.rename(entry.project)
        if rename is None:
            continue
        moved = {position: _loosened(entry.requirement, name=rename.successor)}
        why = f"{entry.project} goes on as {rename.successor} ({rename.source})"
        yield _Attempt(request=_changed(request, moved), target=target, moved=(position,), note=why)
        for other, partner in enumerate(request.requirements):
            pin = exact_pin(partner.requirement.specifier)
            if other == position or partner.project not in knowledge.partners or pin is None:
                continue
            if not pin.is_prerelease:
                continue
            final = f"=={pin.major}.{pin.minor}.*"
            both = {**moved, other: _loosened(partner.requirement, final)}
            note = (
                f"{pin.public} is before {pin.base_version}: the release is built for the final "
                f"{partner.project} {pin.major}.{pin.minor}; {why}"
            )
            yield _Attempt(
                request=_changed(request, both), target=target, moved=(other, position), note=note
            )


def _with_less_seen(request: Request, target: Target, conflict: Conflict) -> Iterator[_Attempt]:
    """Take libraries without code for a GPU, where only the policy refuses them."""
    if any(fact.fact.source == STRICT for fact in conflict.facts):
        yield _Attempt(
            request=replace(request, verify_sm="auto"),
            target=target,
            changes=("--verify-sm auto",),
            note="what does not serve a GPU is then told of, and not refused",
        )


def _with_variants(request: Request, target: Target, conflict: Conflict) -> Iterator[_Attempt]:
    """Consider wheel variants, where they were left out and it mattered."""
    if request.variants or not any(fact.fact.object == "variant" for fact in conflict.facts):
        return
    yield _Attempt(
        request=replace(request, variants=True),
        target=target,
        changes=("--variants",),
        note="its lock needs an installer that knows wheel variants",
    )


def _retargeted(request: Request, target: Target, conflict: Conflict) -> Iterator[_Attempt]:
    """Take another CUDA release that the driver runs, or the other policy."""
    if target.cuda is None or not any(
        fact.fact.kind in (FactKind.TARGET, FactKind.POLICY) for fact in conflict.facts
    ):
        return
    # Under `strict` a driver that runs the major is refused by the row of a newer minor, too.
    driver = any(fact.fact.subject == DRIVER for fact in conflict.facts)
    if target.cuda_compat == "strict" and (driver or conflict.only_policy):
        minor = replace(target, cuda_compat="minor")
        yield _Attempt(request=request, target=minor, changes=("--cuda-compat minor",))
    for release in _other_releases(target):
        # The driver runs these alone, so forward compatibility has no part in them.
        changed = replace(target, cuda=release, compat=None)
        yield _Attempt(request=request, target=changed, changes=(f"--cuda {release}",))
    yield from _with_newer_driver(request, target)


def _with_newer_driver(request: Request, target: Target) -> Iterator[_Attempt]:
    """Take the oldest driver of the next CUDA majors, where the target's is known and too old."""
    runs = target.driver_cuda
    for major in known_majors():
        floor = floor_driver(major, system=target.driver_system)
        if target.driver is None or runs is None or floor is None or major <= runs.major:
            continue
        newer = driver_cuda(floor).cuda
        changed = replace(target, driver=floor, driver_cuda=newer, cuda=newer, compat=None)
        yield _Attempt(
            request=request,
            target=changed,
            changes=(f"--driver {floor}",),
            note=f"the machine then needs that driver or a newer one; it has {target.driver}",
        )


def _other_releases(target: Target) -> list[CudaVersion]:
    """Return releases the driver runs, newest first: its own, and the newest of other majors."""
    runs = target.driver_cuda
    if runs is None and target.driver is not None:
        runs = driver_cuda(target.driver).cuda
    found: set[CudaVersion] = set()
    for major in known_majors():
        newest = newest_minor(major)
        if newest is None or (runs is not None and major > runs.major):
            continue
        found.add(newest if runs is None or major < runs.major else runs)
    found.discard(target.cuda or CudaVersion(major=0, minor=0))
    return sorted(found, reverse=True)


def _dropped(request: Request, target: Target, positions: list[int]) -> Iterator[_Attempt]:
    """Leave out one requirement of the conflict; before that, only its extras."""
    for position in positions:
        requirement = request.requirements[position].requirement
        if requirement.extras:
            changed = Requirement(str(requirement))
            changed.extras = set()
            yield _Attempt(
                request=_changed(request, {position: changed}),
                target=target,
                changes=(format_requirement(changed),),
                note=f"without what `{format_requirement(requirement)}` adds",
            )
    for position in positions:
        entry = request.requirements[position]
        rest = tuple(e for p, e in enumerate(request.requirements) if p != position)
        if rest:
            fewer = replace(request, requirements=rest)
            word = f"leave out {format_requirement(entry.requirement)}"
            yield _Attempt(request=fewer, target=target, changes=(word,))
