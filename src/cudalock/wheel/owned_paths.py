"""Which paths a wheel would install, and with what bytes (binary distribution format, "Spread").

Two wheels that own one path with different bytes overwrite each other. The zip directory tells path,
length and CRC-32 without reading a member, and two members that differ in neither are taken as equal.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cudalock.wheel.names import format_quoted
from cudalock.wheel.zip_directory import ZipMember

__all__ = ["OwnedPath", "Scheme", "owned_paths"]

# purelib and platlib are one folder nearly everywhere.
Scheme: TypeAlias = Literal["lib", "data", "scripts", "headers"]

_DATA = re.compile(r"[^/]+\.data/(purelib|platlib|data|scripts|headers)/(.+)\Z", re.DOTALL)
_SCHEMES: dict[str, Scheme] = {
    "purelib": "lib",
    "platlib": "lib",
    "data": "data",
    "scripts": "scripts",
    "headers": "headers",
}
_UNSAFE_SHOWN = 16


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OwnedPath:
    """A file a wheel installs, under the folder that ``scheme`` names."""

    scheme: Scheme
    path: str
    crc32: int
    size: int


def owned_paths(members: Iterable[ZipMember]) -> tuple[tuple[OwnedPath, ...], tuple[str, ...]]:
    """Return the paths in order, and what is wrong with names that no installer should follow."""
    owned: list[OwnedPath] = []
    unsafe: list[str] = []
    for member in members:
        if member.name.endswith("/"):
            continue
        if _leaves(member.name):
            unsafe.append(member.name)
            continue
        match = _DATA.match(member.name)
        scheme: Scheme = "lib" if match is None else _SCHEMES[match[1]]
        path = member.name if match is None else match[2]
        owned.append(OwnedPath(scheme=scheme, path=path, crc32=member.crc32, size=member.size))
    shown = [f"a path that leaves its folder: {format_quoted(n)}" for n in unsafe[:_UNSAFE_SHOWN]]
    if len(unsafe) > _UNSAFE_SHOWN:
        shown.append(f"{len(unsafe) - _UNSAFE_SHOWN} more such paths")
    return tuple(sorted(owned)), tuple(shown)


def _leaves(name: str) -> bool:
    """Whether a path is absolute, has empty, ``.`` or ``..`` parts, or means more on other systems."""
    parts = name.split("/")
    return "\\" in name or ":" in parts[0] or any(part in ("", ".", "..") for part in parts)
