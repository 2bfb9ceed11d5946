"""Compute capabilities of devices, and the architectures that code was built for.

A *compute capability* (``12.0``) is what a GPU is. An *architecture* is what code was compiled
for: ``sm_120`` names machine code (a cubin), ``compute_120`` names PTX, and a suffix narrows it:
``a`` to that one device, ``f`` to its family (CUDA C++ Programming Guide, "Feature Sets").
The two are different types so that no one compares them; ``compatibility`` says what runs where.
"""

import re
from dataclasses import dataclass
from typing import Literal

from cudalock.errors import UsageError

__all__ = [
    "Architecture",
    "ComputeCapability",
    "parse_architecture",
    "parse_compute_capability",
]

# The minor number of a capability has one digit: architectures are written major * 10 + minor.
# Numbers below 20 would be devices of 2008, and are refused because `12` is most often a
# shortened 12.0.
_CAPABILITY = re.compile(r"([2-9]|[1-9][0-9])\.([0-9])|(?:sm[_-]?)?([2-9][0-9]|[1-9][0-9]{2})")
_ARCHITECTURE = re.compile(
    r"(?:(compute|sm)[_-]?)?(?:([2-9][0-9]|[1-9][0-9]{2})|([2-9]|[1-9][0-9])\.([0-9]))([af]?)"
)


@dataclass(frozen=True, slots=True, order=True)
class ComputeCapability:
    """The compute capability of a device, ``12.0``. Ordered by number."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def number(self) -> int:
        """Major and minor as architectures write them: 120 for 12.0."""
        return 10 * self.major + self.minor

    @property
    def sm(self) -> str:
        """The plain architecture of this device: ``sm_120``."""
        return f"sm_{self.number}"


def parse_compute_capability(text: str) -> ComputeCapability:
    """Read ``12.0``, ``sm_120``, ``sm120`` or ``120``; raises ``UsageError`` for anything else.

    ``sm_120a`` is an architecture and no capability: the error says what to write instead.
    """
    lowered = text.strip().lower()
    match = _CAPABILITY.fullmatch(lowered)
    if match is not None:
        if match[3] is None:
            return ComputeCapability(int(match[1]), int(match[2]))
        return ComputeCapability(*divmod(int(match[3]), 10))
    narrowed = _ARCHITECTURE.fullmatch(lowered)
    if narrowed is not None:
        capability = _architecture(narrowed).capability
        raise UsageError(
            f"expected a compute capability, found the architecture `{_shown(text)}`: code is built"
            f" for an architecture, a GPU has a capability, here {capability}"
        )
    raise UsageError(
        f"expected a compute capability as 12.0, sm_120 or 120, found `{_shown(text)}`"
    )


@dataclass(frozen=True, slots=True, order=True)
class Architecture:
    """What one piece of device code was built for: ``sm_120``, ``sm_120a``, ``compute_90``."""

    number: int
    suffix: Literal["", "a", "f"] = ""
    kind: Literal["sm", "compute"] = "sm"

    def __str__(self) -> str:
        return f"{self.kind}_{self.number}{self.suffix}"

    @property
    def capability(self) -> ComputeCapability:
        """The capability it is named after."""
        return ComputeCapability(*divmod(self.number, 10))


def parse_architecture(text: str) -> Architecture:
    """Read ``sm_120a``, ``compute_90``, and without the word ``120f`` or ``12.0f`` (as ``sm``).

    Raises ``UsageError`` for anything else, ``lto_90`` and ``sm_90+PTX`` too.
    """
    match = _ARCHITECTURE.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(
            f"expected an architecture as sm_120, sm_120a or compute_90, found `{_shown(text)}`"
        )
    return _architecture(match)


def _architecture(match: re.Match[str]) -> Architecture:
    number = int(match[2] if match[2] is not None else match[3] + match[4])
    suffix: Literal["", "a", "f"] = "a" if match[5] == "a" else "f" if match[5] == "f" else ""
    return Architecture(number, suffix, "compute" if match[1] == "compute" else "sm")


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
