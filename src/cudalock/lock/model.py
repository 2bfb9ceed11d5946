"""What a lock says, as values: PEP 751's tables, narrowed to what cudalock locks.

Narrower than the standard on purpose: wheels only (no sdist, VCS, directory or archive), every
package has a version, every wheel its file name. ``tool`` holds the contents of
``[tool.cudalock]`` and ``[packages.tool.cudalock]``; what other tools keep in a lock is theirs
and, as PEP 751 demands of such data, disposable. Making one of these checks nothing:
``rules.py`` does, for reader and writer alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

__all__ = ["LARGEST_LOCK", "Lock", "LockedPackage", "LockedWheel", "TomlValue"]

# Of text or bytes; the largest locks seen are a hundredth of it.
LARGEST_LOCK = 64 * 1024 * 1024

# Plain TOML data. Floats and dates are left out: nothing cudalock records needs them, and a
# float would make the bytes depend on who formats it.
TomlValue: TypeAlias = "str | bool | int | Sequence[TomlValue] | Mapping[str, TomlValue]"


def _no_tool() -> Mapping[str, TomlValue]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedWheel:
    """One file: its name, one of ``url`` and ``path``, and its hashes by algorithm.

    ``path`` is relative to the lock file. ``size`` is in bytes, ``None`` when not known;
    ``upload_time`` is in UTC.
    """

    name: str
    url: str | None = None
    path: str | None = None
    upload_time: datetime | None = None
    size: int | None = None
    hashes: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPackage:
    """One ``[[packages]]`` entry.

    ``name`` is normalized; ``version`` carries the local label. ``dependencies`` are pairs of
    name and version for people to read; installers must not act on them. ``variants_json`` is the
    metadata of the version's wheel variants (PEP 825), kept as it was read. ``tool`` is the
    evidence, keyed by file name.
    """

    name: str
    version: str
    marker: str | None = None
    requires_python: str | None = None
    dependencies: tuple[tuple[str, str | None], ...] = ()
    index: str | None = None
    wheels: tuple[LockedWheel, ...]
    variants_json: Mapping[str, TomlValue] | None = field(default=None, hash=False)
    tool: Mapping[str, TomlValue] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A whole lock file. ``environments`` and the markers are PEP 508 text as written."""

    lock_version: str = "1.0"
    created_by: str = "cudalock"
    requires_python: str | None = None
    environments: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    dependency_groups: tuple[str, ...] = ()
    default_groups: tuple[str, ...] = ()
    packages: tuple[LockedPackage, ...] = ()
    tool: Mapping[str, TomlValue] = field(default_factory=_no_tool, hash=False)
