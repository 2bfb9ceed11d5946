"""What the names of files and libraries tell: which are native, and which are grafted copies.

``auditwheel`` copies a library into the wheel as ``libcudart-3eda8113.so.13`` or ``libcudart.3eda8113.so.13``
and lets the others need that name. The name without the mark tells which library it is.
"""

import re
from typing import Literal

__all__ = ["graft_of", "is_library_name", "loose_kind"]

_LIBRARY = re.compile(r"\.(?:so(?:\.[0-9A-Za-z_.+-]{1,64})?|pyd|dll|dylib|fatbin)\Z", re.IGNORECASE)
_GRAFTED = re.compile(r"(lib.{1,200}?)[.-][0-9a-f]{8}(\.so.{0,64})\Z", re.DOTALL)


def is_library_name(path: str) -> bool:
    """Whether a file of this name is read as a shared library, or as a container of device code."""
    return _LIBRARY.search(path.rpartition("/")[2]) is not None


def loose_kind(path: str) -> Literal["cubin", "ptx"] | None:
    """Tell whether a file of this name is one piece of device code by itself."""
    lowered = path.lower()
    if lowered.endswith(".cubin"):
        return "cubin"
    return "ptx" if lowered.endswith(".ptx") else None


def graft_of(name: str) -> str | None:
    """Return the name a grafted library had before: ``libcudart.so.13``; None for one that is not."""
    match = _GRAFTED.match(name)
    return None if match is None else match[1] + match[2]
