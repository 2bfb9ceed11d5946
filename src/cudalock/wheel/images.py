"""The pieces of device code that wheels carry, as values, and the heads of files that hold one.

Layouts were measured by compiling with nvcc 13.0 and dumping; NVIDIA documents none of them. A
*cubin* is machine code, an ELF file of machine 190; *PTX* is compiled by the driver; *LTO-IR* is
neither until a linker made one of them.
"""

import re
import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cudalock.cuda import Architecture, PtxIsa

__all__ = [
    "ARCHITECTURE_NUMBERS",
    "CUBIN_HEAD",
    "BareCubin",
    "Image",
    "ImageKind",
    "architecture_in_name",
    "architectures_in_notes",
    "parse_cubin_head",
    "parse_ptx_head",
]

ImageKind: TypeAlias = Literal["cubin", "ptx", "lto"]

# So much of a cubin tells what it is for.
CUBIN_HEAD = 64
_MACHINE = 190
_OLD_ABI, _NEW_ABI = 0x33, 0x41
_OLD_SUFFIX_A, _NEW_SUFFIX_A = 0x800, 0x8
# No architecture below has code for one device alone.
_FIRST_SUFFIXED = 90
# Numbers that an architecture can have, so that damaged bytes make no value.
ARCHITECTURE_NUMBERS = range(20, 1000)
# `fmha_sm_100f.cubin`, `Kernel_Sm100f_x.cubin`, `bmmSm100a.cubin`: a capital or a break begins the word,
# and the number ends at what cannot belong to it.
_NAME = re.compile(r"(?:Sm|SM|(?<![A-Za-z])sm)[_-]?([2-9][0-9]|[1-9][0-9]{2})([af]?)(?![0-9a-z])")
_NOTE = re.compile(rb"-arch[ =]sm_([2-9][0-9]|[1-9][0-9]{2})([af]?)(?=[^0-9a-z])")
_PTX_VERSION = re.compile(rb"^\s*\.version\s+([0-9]{1,2})\.([0-9]{1,2})\s", re.MULTILINE)
_PTX_TARGET = re.compile(rb"^\s*\.target\s+sm_([2-9][0-9]|[1-9][0-9]{2})([af]?)[\s,]", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Image:
    """One piece of device code in a container.

    ``version`` is the ISA of PTX; of a cubin the version of its format: 1.7 is an older compiler's,
    1.8 that of CUDA 13, and of CUDA 12 from sm_100 on.
    """

    kind: ImageKind
    architecture: Architecture
    version: tuple[int, int]

    @property
    def isa(self) -> PtxIsa | None:
        """The ISA it was written with, which the driver must know; None for what is not PTX."""
        return PtxIsa(*self.version) if self.kind == "ptx" else None

    def __str__(self) -> str:
        match self.kind:
            case "cubin":
                return str(self.architecture)
            case "ptx":
                return f"{self.architecture}@{self.isa}"
            case _:
                return f"lto_{self.architecture.number}{self.architecture.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class BareCubin:
    """A cubin in no container. ``suffix`` is None when nothing tells whether it has one."""

    number: int
    suffix: Literal["", "a", "f"] | None = None

    def __str__(self) -> str:
        return f"sm_{self.number}{'?' if self.suffix is None else self.suffix}"


def parse_cubin_head(head: bytes) -> BareCubin | None:
    """Read the first 64 bytes of a cubin; None for anything else.

    The number is exact. CUDA 13 writes the same header for sm_120, sm_120a and sm_120f.
    """
    if len(head) < CUBIN_HEAD or head[:7] != b"\x7fELF\x02\x01\x01":
        return None
    kind, machine = struct.unpack_from("<HH", head, 16)
    (flags,) = struct.unpack_from("<I", head, 48)
    if machine != _MACHINE or kind not in (1, 2):
        return None
    suffix: Literal["", "a"] | None
    match head[7]:
        case 0x33 if flags & 0xFF == (flags >> 16) & 0xFF:
            number = flags & 0xFF
            suffix = "a" if flags & _OLD_SUFFIX_A else ""
        case 0x41:
            number = (flags >> 8) & 0xFF
            suffix = "a" if flags & _NEW_SUFFIX_A else "" if number < _FIRST_SUFFIXED else None
        case _:
            return None
    return BareCubin(number=number, suffix=suffix) if number in ARCHITECTURE_NUMBERS else None


def parse_ptx_head(head: bytes) -> Image | None:
    """Read ``.version`` and ``.target`` of PTX text from its beginning; None if they are not there."""
    version, target = _PTX_VERSION.search(head), _PTX_TARGET.search(head)
    if version is None or target is None:
        return None
    return Image(
        kind="ptx",
        architecture=Architecture(int(target[1]), _suffix(target[2].decode()), "compute"),
        version=(int(version[1]), int(version[2])),
    )


def architecture_in_name(name: str) -> Architecture | None:
    """Read the architecture in the name of a file of device code: ``fmha_Sm100f_bf16.cubin``.

    None when there is none, or two that differ.
    """
    found = {Architecture(int(match[1]), _suffix(match[2])) for match in _NAME.finditer(name)}
    return found.pop() if len(found) == 1 else None


def architectures_in_notes(data: bytes) -> frozenset[Architecture]:
    """Find the ``-arch`` that an assembler wrote into the notes of a cubin.

    What ends with the bytes given may go on behind them and is left out.
    """
    return frozenset(
        Architecture(int(match[1]), _suffix(match[2].decode())) for match in _NOTE.finditer(data)
    )


def _suffix(text: str) -> Literal["", "a", "f"]:
    return "a" if text == "a" else "f" if text == "f" else ""
