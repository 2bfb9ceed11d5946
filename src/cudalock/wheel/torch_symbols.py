"""Which dynamic symbols bind a library to PyTorch's own libraries, and how tightly.

A name is torch's when its own scope is ``c10``, ``at``, ``torch`` or ``caffe2`` (Itanium C++ ABI,
section 5.1: nested names with their lengths), or when it starts with ``torch_`` or ``aoti_torch_``,
the C shims of the stable ABI. A function of another project that only takes a tensor is not
torch's: ``_ZN8facebook10torchcodec4readERKN2at6TensorE`` is looked for in that project's libraries.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["TorchStyle", "TorchSymbols", "format_symbol", "is_torch_symbol", "torch_style"]

TorchStyle: TypeAlias = Literal["none", "stable", "cxx"]

_SHIM = (b"torch_", b"aoti_torch_")
# _Z, then what may stand before a nested name: tables and type information (TV, TI, TS, TT, TW, TH),
# guards (GV, GR), thunks (Th, Tv, Tc with their offsets), function locals (Z); then qualifiers.
_CXX = re.compile(
    rb"_Z(?:T[VTISHW]|GV|GR|T[hvc](?:[hv]?n?[0-9]{1,9}_){1,4})?Z?"
    rb"N[rVK]{0,3}[RO]?(?:3c10|2at|5torch|6caffe2)"
)
_NESTED = re.compile(r"_ZN[rVK]{0,3}[RO]?(?=[1-9])")
_LENGTH = re.compile(r"[1-9][0-9]{0,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchSymbols:
    """What a library wants of torch, and what it offers under names that look like torch's.

    ``undefined`` has the strong undefined names: without one of them the library cannot be loaded.
    ``exported`` has what it defines, weak or not: a library beside it in the same wheel may be the
    one that another one's names are for, and for torch's own libraries this is the table. Only when
    ``exact`` is set is what is not in a set known to be missing.
    """

    undefined: frozenset[str] = frozenset()
    exported: frozenset[str] = frozenset()
    exact: bool = False

    @property
    def style(self) -> TorchStyle:
        """How the undefined names bind, as `torch_style` says."""
        return torch_style(self.undefined)


def is_torch_symbol(name: bytes) -> bool:
    """Whether a symbol of this name would be one of torch's own."""
    return _CXX.match(name) is not None or name.startswith(_SHIM)


def torch_style(names: Iterable[str]) -> TorchStyle:
    """Tell how tightly these names of torch bind.

    ``cxx``: C++ names, which only the torch minor it was built with is sure to export. ``stable``:
    C shims alone, which have a lower bound only. ``none``: nothing of torch is asked for.
    """
    style: TorchStyle = "none"
    for name in names:
        if name.startswith("_Z"):
            return "cxx"
        style = "stable"
    return style


def format_symbol(name: str) -> str:
    """Return a symbol as a person knows it: ``c10::cuda::current_device`` without its parameters.

    A name that is not a plain nested one stays as it is.
    """
    match = _NESTED.match(name)
    parts: list[str] = []
    at = 0 if match is None else match.end()
    while at and name[at : at + 1].isdigit():
        length = _LENGTH.match(name, at)
        if length is None:
            break
        at = length.end() + int(length[0])
        parts.append(name[length.end() : at])
    # What is left of a plain name is `E` and its parameters; constructors, operators and templates say more.
    return "::".join(parts) if len(parts) > 1 and name[at : at + 1] == "E" else name
