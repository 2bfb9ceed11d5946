"""Core metadata (the ``METADATA`` file of a wheel), read from bytes.

Only the fields a resolver needs are read, by a bounded scan of the header block: the format is
that of mail headers, and the description below the first empty line is never looked at. Building
`packaging.metadata.Metadata` costs about fifteen times as much and validates fields nobody here
uses. One unreadable ``Requires-Dist`` makes the whole file an error, because a requirement that is
dropped silently makes a wrong lock.
"""

import re
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.wheel.names import (
    format_quoted,
    parse_extra,
    parse_project_name,
    parse_requirement,
    parse_specifiers,
    parse_version,
)

__all__ = ["METADATA_LIMIT", "CoreMetadata", "parse_core_metadata"]

METADATA_LIMIT = 4 * 1024 * 1024
_HEADER_LINES_LIMIT = 20_000
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreMetadata:
    """What a wheel declares.

    ``source`` says where it was read, for a person. ``assumed`` is set when this is not the
    wheel's own METADATA but something that stands in for it (a knowledge entry, the same release
    on another index, a lock file), in which case ``source`` names that.
    """

    project: str
    version: Version
    requires_dist: tuple[Requirement, ...] = ()
    requires_python: SpecifierSet | None = None
    provides_extra: frozenset[str] = frozenset()
    source: str = "METADATA"
    assumed: bool = False


def parse_core_metadata(data: bytes, *, where: str | None = None) -> CoreMetadata:
    """Parse METADATA; raise `WheelError` with ``where`` for anything that is not.

    At most 4 MiB and 20,000 header lines are accepted. A `Requires-Python` that cannot be read is
    an error too: ignoring it would call a wheel compatible that is not.
    """
    try:
        return _parse(data)
    except WheelError as error:
        raise WheelError(error.message, where=where) from error


def _parse(data: bytes) -> CoreMetadata:
    if len(data) > METADATA_LIMIT:
        raise WheelError(f"expected METADATA of at most {METADATA_LIMIT} bytes, found {len(data)}")
    single: dict[str, str] = {}
    requires: list[str] = []
    extras: list[str] = []
    for name, value in _header_fields(data):
        if name == "requires-dist":
            requires.append(value)
        elif name == "provides-extra":
            extras.append(value)
        elif name in ("name", "version", "requires-python"):
            if name in single and single[name] != value:
                raise WheelError(f"expected one {name} in METADATA, found two")
            single[name] = value
    for field in ("name", "version"):
        if field not in single:
            raise WheelError(f"expected a {field} in METADATA, found none")
    python = single.get("requires-python", "")
    return CoreMetadata(
        project=parse_project_name(single["name"]),
        version=parse_version(single["version"]),
        requires_dist=tuple(parse_requirement(text) for text in requires),
        requires_python=parse_specifiers(python) if python else None,
        provides_extra=frozenset(parse_extra(text) for text in extras),
    )


def _header_fields(data: bytes) -> list[tuple[str, str]]:
    """Split the header block into (lower-case name, unfolded value), in order."""
    # Core metadata is UTF-8. Old wheels have an author's name in something else, which must not
    # make them unreadable; what is read here is ASCII, and a replaced letter fits none of it.
    text = data[: _header_end(data)].decode("utf-8-sig", errors="replace")
    # Not `splitlines`: a form feed or U+2028 in a summary ends no line.
    lines = _LINE_END.split(text)
    if len(lines) > _HEADER_LINES_LIMIT:
        raise WheelError(f"expected at most {_HEADER_LINES_LIMIT} lines of METADATA headers")
    fields: list[tuple[str, list[str]]] = []
    for line in lines:
        if not line:
            # "The end of the headers is a blank line" (RFC 822), however that is spelled.
            break
        if line[:1] in (" ", "\t"):
            if not fields:
                raise WheelError("expected a METADATA header before its continuation")
            fields[-1][1].append(line.strip())
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise WheelError(f"expected a METADATA header, found {format_quoted(line)}")
        fields.append((name.strip().lower(), [value.strip()]))
    return [(name, " ".join(part for part in value if part)) for name, value in fields]


def _header_end(data: bytes) -> int:
    """Return where the first blank line is, so that no description is decoded."""
    ends = [end for end in (data.find(b"\n\n"), data.find(b"\r\n\r\n")) if end >= 0]
    return min(ends, default=len(data))
