"""What the libraries of one wheel export for torch's extensions, and what an extension misses there.

A table of exports is made once for each torch release, from its wheel read whole. A symbol is missing
only when the table is exact, and when no library beside the extension could be the one that has it:
names in torch's scope are also defined by extensions, for their own libraries.
"""

from collections.abc import Container
from dataclasses import dataclass

from cudalock.wheel.contents import WheelContents
from cudalock.wheel.library import Library

__all__ = ["TorchExports", "exports_of", "missing_symbols"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchExports:
    """The names that a wheel's libraries define; only if ``exact`` are there no others."""

    names: frozenset[str]
    exact: bool


def exports_of(contents: WheelContents) -> TorchExports:
    """Gather what all libraries of a wheel export under names of torch."""
    names: set[str] = set()
    exact = True
    for library in contents.libraries:
        if library.torch is None:
            exact = False
        else:
            names |= library.torch.exported
            exact = exact and library.torch.exact
    return TorchExports(names=frozenset(names), exact=exact)


def missing_symbols(
    contents: WheelContents, library: Library, exported: Container[str]
) -> frozenset[str] | None:
    """Return the symbols that a library wants and neither torch nor a library beside it defines.

    ``exported`` is an exact table of a torch release. None when it cannot be told: the library's own
    symbols are not known, or something is missing that a library beside it, whose symbols are not
    all known, may define.
    """
    if library.torch is None:
        return None
    beside = exports_of(contents)
    missing = frozenset(n for n in library.torch.undefined - beside.names if n not in exported)
    return missing if beside.exact or not missing else None
