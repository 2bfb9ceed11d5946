"""What should be said of a set because of dates: nightlies and their days, ``--as-of`` and its sources.

Each warning has a stable code. Nothing here changes the set.
"""

from collections.abc import Iterator
from datetime import date, timedelta

from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.resolver.dating import UNDATED
from cudalock.resolver.engine import Solution
from cudalock.resolver.request import exact_pin
from cudalock.resolver.resolution import ResolvedPackage, SetWarning
from cudalock.resolver.trains import ALIGNED_BY_DAY
from cudalock.resolver.world import World
from cudalock.wheel.knowledge import Train
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.published import nightly_day, published

__all__ = ["expiry", "nightly_warnings"]


def nightly_warnings(
    world: World, solution: Solution, packages: tuple[ResolvedPackage, ...]
) -> Iterator[SetWarning]:
    """Yield what to say of dates."""
    yield from _sources_of_dates(world, packages)
    yield from _undated(world, packages)
    yield from _older(world, packages)
    for train in world.knowledge.trains:
        yield from _train(world, solution, packages, train)
    yield from _expiring(world, packages)


def _name(package: ResolvedPackage) -> str:
    return f"{package.project} {package.version}"


_TOLD_SOURCES = (
    ("upload time", "by {} upload time"),
    ("version", "by the day in {} version"),
    ("label", "by the day in {} label"),
    ("", "without a date (pinned)"),
)


def _sources_of_dates(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    """Count the chosen wheels by what told their date."""
    if world.request.as_of is None:
        return
    by_source: dict[str, list[str]] = {}
    for package in packages:
        when = published(package.file)
        by_source.setdefault("" if when is None else when.source, []).append(_name(package))
    counted = [
        f"{len(by_source[source])} {words.format('its' if len(by_source[source]) == 1 else 'their')}"
        for source, words in _TOLD_SOURCES
        if source in by_source
    ]
    yield SetWarning(
        code="as-of",
        message=f"every wheel is of {world.request.as_of} or before: {', '.join(counted)}",
        facts=tuple(
            f"{name}: {source or 'no date'}"
            for source, _ in _TOLD_SOURCES
            for name in by_source.get(source, ())
        ),
    )


def _undated(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    """Name newer wheels that were left out because nobody can date them."""
    told = []
    for package in packages:
        options = world.options(package.project, nightly=package.file.nightly)
        chosen = Version(package.version.public)
        newer = sorted(
            {
                candidate.version
                for candidate in options.candidates
                if candidate.late is not None
                and candidate.late.object == UNDATED
                and Version(candidate.version.public) > chosen
            }
        )
        if newer:
            span = f"{newer[0]} to {newer[-1]}" if len(newer) > 1 else str(newer[0])
            told.append(f"{package.project} {span}")
    if told:
        yield SetWarning(
            code="undated",
            message="newer wheels without a date were left out (an exact pin takes one all the same): "
            + ", ".join(told),
            facts=tuple(told),
        )


def _older(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    """Say that a release was taken where nightlies were let in, because it is the newer one."""
    for package in packages:
        if not world.allows_prereleases(package.project) or package.version.is_prerelease:
            continue
        options = world.options(package.project, nightly=True)
        early = [
            candidate.version
            for candidate in options.candidates
            if candidate.version.is_prerelease and candidate.late is None
        ]
        newest = max(early, default=None)
        if newest is not None and newest < Version(package.version.public):
            yield SetWarning(
                code="nightly-older",
                message=f"{_name(package)} is taken although pre-releases are let in: the newest, "
                f"{newest.public}, is before it (`{package.project}<{package.version.base_version}a0` "
                "asks for the pre-releases)",
            )


def _train(
    world: World, solution: Solution, packages: tuple[ResolvedPackage, ...], train: Train
) -> Iterator[SetWarning]:
    """Say which nightlies of a train were put together by their day, or against it."""
    members = [p for p in packages if p.project in train.projects]
    first = next((p for p in members if p.project == train.projects[0]), None)
    for package in members:
        day = nightly_day(package.version)
        if package is first or day is None or len(members) == 1:
            continue
        demands = world.details(solution.candidates[package.project]).demands
        others = " or ".join(p for p in train.projects if p != package.project)
        if any(demand.fact.source == ALIGNED_BY_DAY for demand in demands):
            yield SetWarning(
                code="aligned-by-day",
                message=f"{_name(package)} pins no {others}: taken with those of its day, which is "
                "assumed to fit",
            )
        elif first is not None and _of_another_day(package, first, day, train):
            yield SetWarning(
                code="other-day",
                message=f"{_name(package)} pins no {others}, and {_name(first)} is of another day: "
                "taken because you pin both",
            )


def _of_another_day(
    package: ResolvedPackage, first: ResolvedPackage, day: date, train: Train
) -> bool:
    pins = any(
        canonicalize_name(requirement.name) in train.projects
        and exact_pin(requirement.specifier) is not None
        for requirement in package.metadata.requires_dist
    )
    other = nightly_day(first.version)
    return not pins and other is not None and other != day


def expiry(world: World, file: ListedFile) -> date | None:
    """Return about when the publisher drops a nightly; None for any other file."""
    when = published(file)
    if not file.nightly or when is None or file.index not in world.nightly_days:
        return None
    day = nightly_day(file.wheel.version) or when.start.date()
    return day + timedelta(days=world.nightly_days[file.index])


def _expiring(world: World, packages: tuple[ResolvedPackage, ...]) -> Iterator[SetWarning]:
    """Say when the publisher drops the nightlies of the set."""
    by_index: dict[str, list[tuple[date, str]]] = {}
    for package in packages:
        day = expiry(world, package.file)
        if day is not None:
            by_index.setdefault(package.file.index, []).append((day, _name(package)))
    for index, found in sorted(by_index.items()):
        days = world.nightly_days[index]
        names = ", ".join(name for _, name in found)
        yield SetWarning(
            code="nightly-expires",
            message=f"dropped by `{index}` about {min(day for day, _ in found)}: {days} days after "
            f"their day nightlies are removed, and the lock can be installed no more ({names})",
            facts=tuple(name for _, name in found),
        )
