"""How deep a wheel is read, and how much of it at most."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Depth", "ReadingLimits"]

Depth: TypeAlias = Literal["names", "needs", "presence", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingLimits:
    """Bounds of depth ``needs``, which must stay cheap; what they leave out is unknown, never absent.

    ``head``: unpacked bytes of one library in which its tables must begin. ``moved``: packed bytes of one
    wheel that are read on behind the heads, for libraries whose names were moved to their end.
    ``loose_heads``: files of device code, not named after an architecture, whose first bytes are read.
    """

    head: int = 32 * 1024 * 1024
    moved: int = 20 * 1024 * 1024
    loose_heads: int = 32
