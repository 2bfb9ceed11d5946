"""Comparing two locks: what one has that the other has not, and what changed.

Entries are paired by name; where a name has several, by marker first and then in order. The
order of a file says nothing.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

from cudalock.lock.model import Lock, LockedPackage
from cudalock.lock.pairing import pair_entries

__all__ = ["LockDifference", "PackageChange", "SettingChange", "compare_locks", "format_difference"]

_SETTINGS = ("requires_python", "environments", "extras", "dependency_groups", "default_groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageChange:
    """One entry before and after, and the names of the parts that differ, in the file's words."""

    old: LockedPackage
    new: LockedPackage
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """A key above the packages whose value differs; values as words, ``-`` for none."""

    key: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockDifference:
    """What changed between two locks; false when nothing did. Each part is sorted by name."""

    added: tuple[LockedPackage, ...] = ()
    removed: tuple[LockedPackage, ...] = ()
    changed: tuple[PackageChange, ...] = ()
    settings: tuple[SettingChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.settings)


def _sort_key(package: LockedPackage) -> tuple[str, str, str]:
    return package.name, package.version, package.marker or ""


def _by_name(lock: Lock) -> dict[str, list[LockedPackage]]:
    entries: dict[str, list[LockedPackage]] = defaultdict(list)
    for package in sorted(lock.packages, key=_sort_key):
        entries[package.name].append(package)
    return entries


def _differing_parts(old: LockedPackage, new: LockedPackage) -> tuple[str, ...]:
    old_wheels = sorted(old.wheels, key=lambda wheel: wheel.name)
    new_wheels = sorted(new.wheels, key=lambda wheel: wheel.name)
    parts = {
        "version": old.version != new.version,
        "marker": old.marker != new.marker,
        "requires-python": old.requires_python != new.requires_python,
        "index": old.index != new.index,
        "wheels": [replace(wheel, hashes={}) for wheel in old_wheels]
        != [replace(wheel, hashes={}) for wheel in new_wheels],
        "hashes": {wheel.name: wheel.hashes for wheel in old_wheels}
        != {wheel.name: wheel.hashes for wheel in new_wheels},
        "variants-json": (old.variants_json or {}) != (new.variants_json or {}),
        "dependencies": set(old.dependencies) != set(new.dependencies),
        "evidence": (old.tool or {}) != (new.tool or {}),
    }
    return tuple(part for part, differs in parts.items() if differs)


def _words(value: str | tuple[str, ...] | None) -> str:
    if isinstance(value, tuple):
        return ", ".join(sorted(value)) or "-"
    return value or "-"


def compare_locks(old: Lock, new: Lock) -> LockDifference:
    """Return what changed from ``old`` to ``new``. Linear in the entries, but for sorting."""
    olds, news = _by_name(old), _by_name(new)
    added: list[LockedPackage] = []
    removed: list[LockedPackage] = []
    changed: list[PackageChange] = []
    for name in sorted(olds.keys() | news.keys()):
        before, after = olds.get(name, []), news.get(name, [])
        pairing = pair_entries(
            [package.marker or "" for package in before],
            [package.marker or "" for package in after],
        )
        added.extend(after[place] for place in pairing.only_new)
        removed.extend(before[place] for place in pairing.only_old)
        for old_place, new_place in pairing.matched:
            parts = _differing_parts(before[old_place], after[new_place])
            if parts:
                changed.append(
                    PackageChange(old=before[old_place], new=after[new_place], parts=parts)
                )
    settings = [
        (key.replace("_", "-"), _words(getattr(old, key)), _words(getattr(new, key)))
        for key in _SETTINGS
    ]
    return LockDifference(
        added=tuple(added),
        removed=tuple(removed),
        changed=tuple(changed),
        settings=tuple(
            SettingChange(key=key, old=before_words, new=after_words)
            for key, before_words, after_words in settings
            if before_words != after_words
        ),
    )


def format_difference(difference: LockDifference) -> str:
    """Word a difference, one line a change: settings, then removed, added and changed entries."""
    lines = [f"{change.key}: {change.old} -> {change.new}" for change in difference.settings]
    lines.extend(f"- {package.name} {package.version}" for package in difference.removed)
    lines.extend(f"+ {package.name} {package.version}" for package in difference.added)
    for change in difference.changed:
        if "version" in change.parts:
            lines.append(f"~ {change.new.name} {change.old.version} -> {change.new.version}")
        else:
            parts = ", ".join(change.parts)
            lines.append(f"~ {change.new.name} {change.new.version}: {parts}")
    return "\n".join(lines)
