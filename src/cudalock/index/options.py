"""Which indices a person wants asked, and how: plain values, read by who wires the rooms together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cudalock.index.routes import AddedIndex

__all__ = ["IndexOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """Which indices to ask, and how.

    ``default_index`` is the address of the default index (PEP 503). ``directory`` holds the
    publishers' definitions, the knowledge and the recordings; None means those that come with
    cudalock. ``sources`` maps a project to the index that it comes from.
    """

    default_index: str
    added: tuple[AddedIndex, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    excluded: frozenset[str] = frozenset()
    only_default: bool = False
    find_links: tuple[str, ...] = ()
    recorded: bool = False
    offline: bool = False
    cache_dir: Path | None = None
    directory: Path | None = None
