"""The compute capability of a GPU by its name, as a person types it or a driver reports it.

``5090``, ``rtx-pro-6000``, ``NVIDIA A100-SXM4-80GB MIG 1g.10gb``: what does not tell chips apart
(vendor, form factor, memory, edition, MIG slice) is left out, and the rest must be a name of the
tables. A name that stands for several chips (``RTX 6000``: Turing and Ada) is refused, never
guessed.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from cudalock.cuda.arch import ComputeCapability
from cudalock.cuda.tables import DeviceClass, Tables, shipped_tables
from cudalock.errors import UsageError

__all__ = ["capability_of", "class_of"]

_LONGEST_NAME = 120
_MEMORY = re.compile(r"\b[0-9]{1,4} ?g(?:i?b)?\b")
_WORDS = re.compile(r"[a-z0-9]+")
# Words that say how a chip is sold, cooled, mounted or sliced.
_IGNORED = re.compile(
    r"nvidia|geforce|tesla|gpu|nvgpu|graphics|card|generation|edition|server|workstation|blackwell"
    r"|laptop|mobile|max|q|maxq|sff|ti|super|d|v2|dgx|hgx|dgxs|fhhl|ac|developer|kit"
    r"|sxm[0-9]?|pcie|pci|nvl[0-9]*|hbm[0-9]?e?|mig|me|[0-9]{1,3}[abcq]"
)
_GLUED = re.compile(r"(?<=[0-9])(?:ti|super)+$")
_GEFORCE = re.compile(r"[rg]tx([0-9]{3,4})")


def capability_of(name: str, *, tables: Tables | None = None) -> ComputeCapability:
    """Return the compute capability of the GPU called ``name``.

    Raises ``UsageError`` for a name that is not in the tables or stands for several chips; it
    names the nearest ones, and ``--sm``, which needs no name.
    """
    index = _index(tables or shipped_tables())
    found = _find(name, index)
    if found is not None:
        return found[0]
    key = _key(name[:_LONGEST_NAME])
    # Only a wrong name pays for this import.
    from difflib import get_close_matches  # noqa: PLC0415 - see above

    near = [index[match][1] for match in get_close_matches(key, index, n=3, cutoff=0.7)]
    hint = f"; near: {', '.join(f'`{each}`' for each in dict.fromkeys(near))}" if near else ""
    raise UsageError(
        f"expected the name of one GPU, found `{name[:_LONGEST_NAME]}`{hint}"
        " (or give its compute capability, as --sm 12.0)",
        flag="--sm",
    )


def class_of(name: str, *, tables: Tables | None = None) -> DeviceClass | None:
    """Tell how the GPU called ``name`` is sold, or ``None`` where that, or the name, is not known."""
    tables = tables or shipped_tables()
    found = _find(name, _index(tables))
    if found is None:
        return None
    return next((each for each, names in tables.classes.items() if found[1] in names), None)


def _find(
    name: str, index: Mapping[str, tuple[ComputeCapability, str]]
) -> tuple[ComputeCapability, str] | None:
    key = _key(name[:_LONGEST_NAME])
    return index.get(key) or index.get(_GLUED.sub("", key))


@lru_cache(maxsize=4)
def _index(tables: Tables) -> Mapping[str, tuple[ComputeCapability, str]]:
    index: dict[str, tuple[ComputeCapability, str]] = {}
    for capability, names in tables.devices.items():
        for name in names:
            key = _key(name)
            index[key] = (capability, name)
            short = _GEFORCE.fullmatch(key)
            if short is not None:
                index[short[1]] = (capability, name)
    return index


def _key(name: str) -> str:
    words = _WORDS.findall(_MEMORY.sub(" ", name.lower().replace("_", " ")))
    return "".join(word for word in words if _IGNORED.fullmatch(word) is None)
