"""Which entries of a lock a target installs, and which of their wheels (PEP 751, "Installation").

The standard's own steps, with the target's values in place of the running interpreter's: markers are
evaluated with the extras and groups that are asked for, and of an entry's wheels the one is taken
whose tag the target likes best.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.version import Version

from cudalock.errors import UsageError
from cudalock.host.platforms import Platform, parse_platform
from cudalock.host.target import Target, marker_environment, supported_tags
from cudalock.lock.model import Lock, LockedPackage, LockedWheel
from cudalock.verify.problems import Problem
from cudalock.verify.recorded import WheelRecord, read_records
from cudalock.wheel.filename import parse_wheel_file

__all__ = ["Entry", "Selection", "marker_holds", "select", "select_entries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry that a target installs: the wheel that lands, and its record where there is one."""

    package: LockedPackage
    wheel: LockedWheel
    version: Version
    record: WheelRecord | None

    @property
    def name(self) -> str:
        """The normalised name of its project."""
        return self.package.name

    def __str__(self) -> str:
        return f"{self.package.name} {self.package.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a target installs of a lock, by project, and what stands against it."""

    entries: Mapping[str, Entry]
    problems: tuple[Problem, ...]
    environment: Mapping[str, str]


def select(
    lock: Lock,
    target: Target,
    *,
    extras: AbstractSet[str] = frozenset(),
    groups: AbstractSet[str] | None = None,
) -> Selection:
    """Select what ``target`` installs of a lock. ``groups`` are the lock's default ones if not given.

    Every entry is judged; problems say which do not fit the target's Python, glibc or platform.
    """
    environment = marker_environment(target)
    problems = list(_lock_fit(lock, target, environment))
    # What is for another Python altogether need not be told of each wheel.
    misfits = None if problems else _Misfits(target)
    entries: dict[str, Entry] = {}
    accepted = {tag: rank for rank, tag in enumerate(supported_tags(target))}
    asked: dict[str, str | AbstractSet[str]] = {
        **environment,
        "extras": frozenset(extras),
        "dependency_groups": frozenset(lock.default_groups if groups is None else groups),
    }
    for package in select_entries(lock, asked):
        wheel = _best_wheel(package, accepted)
        if misfits is not None:
            misfits.judge(package, wheel, environment)
        if package.name in entries:
            problems.append(
                Problem(
                    code="ambiguous",
                    severity="broken",
                    message=f"expected one entry of {package.name} for this target, found "
                    f"{entries[package.name].package.version} and {package.version}",
                    package=package.name,
                )
            )
        taken = wheel or package.wheels[0]
        entries[package.name] = Entry(
            package=package,
            wheel=taken,
            version=Version(package.version),
            record=read_records(package).get(taken.name),
        )
    problems += [] if misfits is None else misfits.problems()
    return Selection(entries=entries, problems=tuple(problems), environment=environment)


def select_entries(
    lock: Lock, asked: Mapping[str, str | AbstractSet[str]]
) -> Iterator[LockedPackage]:
    """Yield the entries whose marker holds, in the order of the file."""
    for package in lock.packages:
        if package.marker is None or marker_holds(package.marker, asked):
            yield package


def marker_holds(marker: str, asked: Mapping[str, str | AbstractSet[str]]) -> bool:
    """Whether a marker holds; one that means nothing, such as ``sys_platform ~= "1"``, does not."""
    try:
        return Marker(marker).evaluate(asked, context="lock_file")
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False


def _lock_fit(lock: Lock, target: Target, environment: Mapping[str, str]) -> Iterator[Problem]:
    python = environment["python_full_version"]
    told = f"Python {target.python} on {target.platform}"
    if lock.requires_python is not None and not _contains(lock.requires_python, python):
        yield Problem(
            code="python",
            severity="broken",
            message=f"the lock is for Python {lock.requires_python}, found {told}",
        )
    elif lock.environments and not any(marker_holds(m, environment) for m in lock.environments):
        yield Problem(
            code="environment",
            severity="broken",
            message=f"the lock is for `{' or '.join(lock.environments)}`, found {told}",
        )


@cache
def _contains(specifier: str, version: str) -> bool:
    return SpecifierSet(specifier).contains(version, prereleases=True)


def _best_wheel(package: LockedPackage, accepted: Mapping[Tag, int]) -> LockedWheel | None:
    if len(package.wheels) == 1 and package.wheels[0].name.endswith("-py3-none-any.whl"):
        return package.wheels[0]
    ranked = []
    for place, wheel in enumerate(package.wheels):
        ranks = [accepted[tag] for tag in parse_wheel_file(wheel.name).tags if tag in accepted]
        if ranks:
            ranked.append((min(ranks), place))
    return package.wheels[min(ranked)[1]] if ranked else None


class _Misfits:
    """The entries that do not fit a target, one problem a reason."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._found: dict[tuple[str, str], list[str]] = {}

    def judge(
        self, package: LockedPackage, wheel: LockedWheel | None, environment: Mapping[str, str]
    ) -> None:
        wanted = package.requires_python
        if wanted is not None and not _contains(wanted, environment["python_full_version"]):
            self._note("python", f"Python {wanted}", package)
        if wheel is None:
            needs = _needed_glibc(package, self._target)
            code = "glibc" if needs else "tags"
            told = (
                f"glibc {needs}"
                if needs
                else f"another Python or platform ({package.wheels[0].name})"
            )
            self._note(code, told, package)

    def _note(self, code: str, told: str, package: LockedPackage) -> None:
        self._found.setdefault((code, told), []).append(f"{package.name} {package.version}")

    def problems(self) -> Iterator[Problem]:
        for (code, told), names in sorted(self._found.items()):
            shown = ", ".join(names[:5])
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            yield Problem(
                code=code,
                severity="broken",
                message=f"{shown}{more} {'needs' if len(names) == 1 else 'need'} {told}, found "
                f"Python {self._target.python} on {self._target.platform}",
                package=names[0].split(" ", maxsplit=1)[0],
            )


def _needed_glibc(package: LockedPackage, target: Target) -> str | None:
    """Return the glibc that the entry's wheels need, if nothing but a newer one is missing."""
    newest = _platform(f"manylinux_2_99_{target.machine}") if target.is_linux else None
    if newest is None:
        return None
    pythons = {(tag.interpreter, tag.abi) for tag in supported_tags(target)}
    needed = [
        found.glibc
        for wheel in package.wheels
        for tag in parse_wheel_file(wheel.name).tags
        if (tag.interpreter, tag.abi) in pythons
        and (found := _platform(tag.platform)) is not None
        and found.machine == newest.machine
        and found.glibc is not None
    ]
    return f"{min(needed)[0]}.{min(needed)[1]}" if needed else None


def _platform(tag: str) -> Platform | None:
    try:
        return parse_platform(tag) if tag.startswith("manylinux") else None
    except UsageError:
        return None
