"""One shared library of a wheel: what it needs, and what device code it has, as far as it was read."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cudalock.wheel.fatbin import DeviceCode
from cudalock.wheel.torch_symbols import TorchSymbols

__all__ = ["Library", "LibraryKind", "Seen"]

# ``windows``, ``foreign`` (32-bit, big-endian), ``damaged`` and ``other`` ones are not understood.
LibraryKind: TypeAlias = Literal[
    "unread", "elf", "fatbin", "windows", "foreign", "damaged", "other"
]
Seen: TypeAlias = Literal["nothing", "head", "part", "whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What was read of one library; lengths in bytes.

    ``seen`` says how much of it: what is not there in one that is not ``whole`` may be further on.
    ``needed`` is None when unknown; without ``needed_exact`` it may have a name too many, not too few.
    ``grafted`` are those of its needs that the wheel carries under a name of its own, each with the
    library it is a copy of: evidence of what it was built with, and nothing it asks others for.
    ``copy_of`` is another path of the wheel with the same bytes.
    """

    path: str
    crc32: int
    size: int
    packed: int
    kind: LibraryKind = "unread"
    seen: Seen = "nothing"
    machine: int = 0
    needed: frozenset[str] | None = None
    needed_exact: bool = False
    soname: str | None = None
    grafted: tuple[tuple[str, str], ...] = ()
    torch: TorchSymbols | None = None
    code: DeviceCode = field(default_factory=DeviceCode)
    copy_of: str | None = None
    anomalies: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether everything was read, and understood as far as it goes."""
        return self.seen == "whole" and self.kind in ("elf", "fatbin")
