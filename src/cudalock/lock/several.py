"""One lock for several targets, and the lock of one of them out of it.

PEP 751 has no key for a CUDA release, so a target that its environment (Python and platform) does not tell
apart from the default one is told apart by an extra of its name:

- Every target but the first has its extra, and an entry that it alone installs carries
  ``'cu128' in extras``.
- The default entries carry ``'cu128' not in extras``: without an extra an environment installs the
  set of the first target that is for it. There is no lock in which that selects nothing.
- An entry that all targets share carries no marker. Entries of one release for different
  environments are one entry with several wheels, where the tags alone lead each target to its own.
- ``dependency-groups = ["default"]`` lets pdm choose extras of a lock at all.

``[tool.cudalock]`` is that of the first target, as in a lock of its own, and
``[tool.cudalock.targets.NAME]`` holds the same for each other one. `lock_of_target` gives a target's
own lock again, whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache

from packaging.markers import Marker
from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name

from cudalock.errors import UsageError
from cudalock.host.target import Target, marker_environment, supported_tags
from cudalock.lock.model import Lock, LockedPackage, LockedWheel, TomlValue

__all__ = ["TargetLock", "best_wheel", "join_locks", "lock_of_target", "target_extras"]

_TARGETS = "targets"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLock:
    """A named target, and the lock that was made for it alone."""

    target: Target
    lock: Lock

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name or ""

    @property
    def extra(self) -> str:
        """The extra that stands for the target (PEP 685)."""
        return canonicalize_name(self.name)


def join_locks(members: Sequence[TargetLock]) -> Lock:
    """Return one lock for several targets; without an extra it installs the set of the first.

    Raises `UsageError` for fewer than two targets, and for names that give one extra.
    """
    if len(members) < 2:
        raise UsageError("expected several targets, found fewer than two", flag="--target")
    seen: dict[str, str] = {}
    for member in members:
        other = seen.setdefault(member.extra, member.name)
        if other != member.name or not member.name:
            raise UsageError(
                "expected targets whose names differ as extras do, found "
                f"`{other}` and `{member.name}`, which are both `{member.extra}`",
                flag="--target",
            )
    if len(seen) < len(members):
        raise UsageError("expected each target once, found one again", flag="--target")
    first = members[0].lock
    pythons = sorted({_python(member.target) for member in members})
    several = len(pythons) > 1
    return Lock(
        created_by=first.created_by,
        # "the minimum Python version compatible for any environment supported by the lock file"
        requires_python=f">={_dotted(pythons[0])}" if several else first.requires_python,
        environments=tuple(sorted({e for m in members for e in m.lock.environments})),
        extras=tuple(sorted(member.extra for member in members[1:])),
        dependency_groups=("default",),
        packages=tuple(_entries(members)),
        tool={
            **first.tool,
            _TARGETS: {member.name: member.lock.tool for member in members[1:]},
        },
    )


def _python(target: Target) -> tuple[int, ...]:
    return tuple(int(part) for part in target.python_minor.split("."))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


@dataclass(slots=True)
class _Shared:
    """An entry and the places of the targets that install it."""

    package: LockedPackage
    places: list[int]


def _entries(members: Sequence[TargetLock]) -> Iterable[LockedPackage]:
    found: dict[str, list[_Shared]] = {}
    for place, member in enumerate(members):
        for package in member.lock.packages:
            entries = found.setdefault(package.name, [])
            same = next((e for e in entries if _may_share(e, package, place, members)), None)
            if same is None:
                entries.append(_Shared(package=package, places=[place]))
            else:
                same.package = _merged(same.package, package)
                same.places.append(place)
    for entries in found.values():
        for entry in entries:
            yield replace(entry.package, marker=_marker(entry.places, members))


def _may_share(
    entry: _Shared, package: LockedPackage, place: int, members: Sequence[TargetLock]
) -> bool:
    """Whether one entry does for both: each target still finds the wheel that was chosen for it."""
    one = entry.package
    if (one.version, one.index, one.requires_python, one.variants_json) != (
        package.version,
        package.index,
        package.requires_python,
        package.variants_json,
    ):
        return False
    wheels = _merged(one, package).wheels
    files = (one.tool or {}).keys() & (package.tool or {}).keys()
    if any((one.tool or {})[file] != (package.tool or {})[file] for file in files):
        # What is recorded of one file depends on the target: a marker holds for one of them only.
        return False
    for other in (*entry.places, place):
        own = _wheels(members[other].lock, package.name)
        alone = members[other].lock.environments != members[place].lock.environments
        if own != package.wheels and not alone:
            # Nothing but the entry's marker would tell which of the files is for whom.
            return False
        if best_wheel(wheels, members[other].target) not in own:
            return False
    return True


def _wheels(lock: Lock, name: str) -> tuple[LockedWheel, ...]:
    return next(package.wheels for package in lock.packages if package.name == name)


def _merged(one: LockedPackage, other: LockedPackage) -> LockedPackage:
    return replace(
        one,
        wheels=(*one.wheels, *(wheel for wheel in other.wheels if wheel not in one.wheels)),
        dependencies=tuple(sorted({*one.dependencies, *other.dependencies}, key=str)),
        tool={**(other.tool or {}), **(one.tool or {})},
    )


def best_wheel(wheels: Iterable[LockedWheel], target: Target) -> LockedWheel | None:
    """Return the wheel whose tag a target likes best, as installers choose; None if it takes none."""
    order = _tag_order(target)
    ranked = [
        (min(ranks), wheel.name, wheel)
        for wheel in wheels
        if (ranks := [order[tag] for tag in _tags(wheel.name) if tag in order])
    ]
    return min(ranked, key=lambda entry: entry[:2])[2] if ranked else None


@cache
def _tag_order(target: Target) -> dict[Tag, int]:
    return {tag: rank for rank, tag in enumerate(supported_tags(target))}


def _tags(file_name: str) -> frozenset[Tag]:
    return parse_tag("-".join(file_name.removesuffix(".whl").split("-")[-3:]))


def _marker(places: Sequence[int], members: Sequence[TargetLock]) -> str | None:
    """Word for whom an entry is: its own extras, or no extra at all in the right environment."""
    if len(places) == len(members):
        return None
    others = [m.extra for place, m in enumerate(members) if place and place not in places]
    none_of_them = " and ".join(f"'{extra}' not in extras" for extra in sorted(others))
    clauses = [f"'{members[place].extra}' in extras" for place in places if place]
    defaults = _default_places(members)
    own = [place for place in places if place in defaults]
    if own and len(own) == len(defaults):
        clauses.append(none_of_them)
    else:
        for place in own:
            environment = members[place].lock.environments[0]
            clauses.append(" and ".join(filter(None, (environment, none_of_them))))
    return " or ".join(sorted(clauses))


def _default_places(members: Sequence[TargetLock]) -> list[int]:
    """Return which targets an environment gets without an extra: the first one of each."""
    defaults: dict[tuple[str, ...], int] = {}
    for place, member in enumerate(members):
        defaults.setdefault(member.lock.environments, place)
    return sorted(defaults.values())


def target_extras(lock: Lock) -> dict[str, str | None]:
    """Return the targets of a lock by name, each with the extra that selects it, the default first.

    Empty for a lock that does not say for which target it is.
    """
    own = lock.tool.get("target")
    if not isinstance(own, Mapping):
        return {}
    found: dict[str, str | None] = {str(own.get("name", "")): None}
    others = lock.tool.get(_TARGETS)
    if isinstance(others, Mapping):
        declared = set(lock.extras)
        found.update(
            {name: extra for name in others if (extra := canonicalize_name(name)) in declared}
        )
    return found


def lock_of_target(lock: Lock, target: Target) -> Lock:
    """Return what ``target`` installs of a lock, as a lock of its own: one wheel an entry, no extras.

    ``target.name`` is that of a target of the lock; None, or the default's, is the default one. Raises
    `UsageError` for a name that the lock does not have.
    """
    extras = target_extras(lock)
    name = target.name if target.name is not None else next(iter(extras), "")
    if name not in extras:
        known = ", ".join(f"`{other}`" for other in extras if other) or "none with a name"
        raise UsageError(
            f"expected a target of the lock ({known}), found `{name}`", flag="--target"
        )
    extra = extras[name]
    environment: dict[str, str | AbstractSet[str]] = {
        **marker_environment(target),
        "extras": frozenset() if extra is None else frozenset({extra}),
        "dependency_groups": frozenset(lock.default_groups),
    }
    packages = [
        package
        for package in lock.packages
        if package.marker is None
        or Marker(package.marker).evaluate(environment, context="lock_file")
    ]
    names = {(package.name, package.version) for package in packages}
    environments = tuple(e for e in lock.environments if Marker(e).evaluate(environment))
    one_python = len(environments) == len(lock.environments)
    described = lock.tool if extra is None else _described(lock, name)
    return replace(
        lock,
        requires_python=lock.requires_python if one_python else f"=={target.python_minor}.*",
        environments=environments,
        extras=(),
        dependency_groups=(),
        packages=tuple(_own(package, target, names) for package in packages),
        tool={key: value for key, value in described.items() if key != _TARGETS},
    )


def _described(lock: Lock, name: str) -> Mapping[str, TomlValue]:
    others = lock.tool.get(_TARGETS)
    described = others.get(name) if isinstance(others, Mapping) else None
    return described if isinstance(described, Mapping) else {}


def _own(package: LockedPackage, target: Target, names: set[tuple[str, str]]) -> LockedPackage:
    wheel = best_wheel(package.wheels, target)
    kept = package.wheels if wheel is None else (wheel,)
    tool = package.tool
    if tool is not None:
        tool = {key: value for key, value in tool.items() if key in {w.name for w in kept}}
    return replace(
        package,
        marker=None,
        wheels=kept,
        dependencies=tuple(
            (name, version)
            for name, version in package.dependencies
            if version is None or (name, version) in names
        ),
        tool=tool,
    )
