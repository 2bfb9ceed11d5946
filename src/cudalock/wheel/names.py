"""Names, versions, specifiers and requirements from untrusted text, with limits.

`packaging` implements the specifications (version specifiers, dependency specifiers, names). It
lets some hostile text escape as a plain ``ValueError`` or ``RecursionError`` and puts no limit on
length, so everything that comes from an index or a wheel passes here first. Results are memoised:
a resolve meets the same few thousand texts many times over.
"""

import re
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from cudalock.errors import WheelError

__all__ = [
    "format_quoted",
    "parse_extra",
    "parse_project_name",
    "parse_requirement",
    "parse_specifiers",
    "parse_version",
]

_NAME_LIMIT = 128
_VERSION_LIMIT = 128
_REQUIREMENT_LIMIT = 8192
# The name grammar of the dependency-specifiers specification; ASCII only, so that no look-alike
# letter of another alphabet passes for a project's name.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z", re.ASCII)


def format_quoted(text: str, limit: int = 80) -> str:
    """Quote untrusted text for a person: nothing in it can reach a terminal as a control code."""
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
    return f"`{shown}…`" if len(text) > limit else f"`{shown}`"


@lru_cache(maxsize=16384)
def parse_project_name(text: str) -> str:
    """Return the normalised name of a project; raise `WheelError` for anything else."""
    if len(text) > _NAME_LIMIT or not _NAME.match(text):
        raise WheelError(f"expected a project name, found {format_quoted(text)}")
    return canonicalize_name(text)


def parse_extra(text: str) -> str:
    """Return the normalised name of an extra (same grammar and normalisation as a project's)."""
    return parse_project_name(text)


@lru_cache(maxsize=65536)
def parse_version(text: str) -> Version:
    """Parse a version of at most 128 characters; raise `WheelError` for anything else."""
    if len(text) > _VERSION_LIMIT:
        raise WheelError(f"expected a version, found {len(text)} characters: {format_quoted(text)}")
    try:
        return Version(text)
    except (InvalidVersion, ValueError) as error:
        raise WheelError(f"expected a version, found {format_quoted(text)}") from error


@lru_cache(maxsize=16384)
def parse_specifiers(text: str) -> SpecifierSet:
    """Parse version specifiers such as ``>=2.9,<3``; raise `WheelError` for anything else."""
    if len(text) > _REQUIREMENT_LIMIT:
        raise WheelError(f"expected version specifiers, found {len(text)} characters")
    try:
        return SpecifierSet(text)
    except (InvalidSpecifier, ValueError) as error:
        raise WheelError(f"expected version specifiers, found {format_quoted(text)}") from error


@lru_cache(maxsize=16384)
def parse_requirement(text: str) -> Requirement:
    """Parse one dependency specifier; raise `WheelError` for anything else.

    The result is shared between callers and must not be changed.
    """
    if len(text) > _REQUIREMENT_LIMIT:
        raise WheelError(f"expected a requirement, found {len(text)} characters")
    try:
        requirement = Requirement(text)
    except (InvalidRequirement, ValueError, RecursionError) as error:
        raise WheelError(f"expected a requirement, found {format_quoted(text)}") from error
    parse_project_name(requirement.name)
    return requirement
