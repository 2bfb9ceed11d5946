"""What a marker in a lock asks of extras and dependency groups.

PEP 751 adds ``'x' in extras`` and ``'x' in dependency_groups`` to the markers of PEP 508. Whether
an entry can be selected when nobody names an extra is decided here, with every question about
the environment answered "perhaps". ``packaging`` parses; this reads its canonical text, since
the parsed tree is private.
"""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from packaging.markers import Marker

from cudalock.lock.faults import quoted

__all__ = ["LockMarker", "marker_fault", "parse_marker"]

_LONGEST_MARKER = 4096
_TOKEN = re.compile(r""" "[^"]*" | '[^']*' | [()] | [^\s()"']+ """, re.VERBOSE)
_SETS = frozenset({"extras", "dependency_groups"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LockMarker:
    """A parsed marker: its canonical text, and the extras and groups it mentions."""

    text: str
    extras: frozenset[str]
    groups: frozenset[str]

    def may_hold(self, *, extras: AbstractSet[str], groups: AbstractSet[str]) -> bool:
        """Say whether some environment satisfies the marker under these extras and groups.

        Each comparison with the environment counts as satisfiable on its own, so "no" is
        certain and "yes" may be too kind.
        """
        # One frame per open parenthesis: (an alternative that held, the running conjunction).
        frames: list[tuple[bool, bool]] = [(False, True)]
        for item in _split_atoms(self.text):
            held, running = frames[-1]
            if item == ("(",):
                frames.append((False, True))
            elif item == (")",):
                frames.pop()
                outer, conjunction = frames[-1]
                frames[-1] = (outer, conjunction and (held or running))
            elif item == ("or",):
                frames[-1] = (held or running, True)
            elif item != ("and",):
                frames[-1] = (held, running and _atom_may_hold(item, extras, groups))
        held, running = frames[0]
        return held or running


def _split_atoms(text: str) -> list[tuple[str, ...]]:
    """Cut canonical marker text into comparisons, connectives and parentheses."""
    items: list[tuple[str, ...]] = []
    atom: list[str] = []
    for token in _TOKEN.findall(text):
        if token in {"(", ")", "and", "or"}:
            if atom:
                items.append(tuple(atom))
                atom = []
            items.append((token,))
        else:
            atom.append(token)
    if atom:
        items.append(tuple(atom))
    return items


def _atom_may_hold(
    atom: tuple[str, ...], extras: AbstractSet[str], groups: AbstractSet[str]
) -> bool:
    if atom[-1] not in _SETS:
        return True
    present = atom[0][1:-1] in (extras if atom[-1] == "extras" else groups)
    return present is (atom[1] == "in")


@lru_cache(maxsize=4096)
def _parse(text: str) -> LockMarker | str:
    if len(text) > _LONGEST_MARKER:
        return f"expected a marker of at most {_LONGEST_MARKER} characters, found {len(text)}"
    try:
        canonical = str(Marker(text))
    except (ValueError, RecursionError):
        return f"expected a marker, found {quoted(text)}"
    mentioned: dict[str, set[str]] = {"extras": set(), "dependency_groups": set()}
    for atom in _split_atoms(canonical):
        if "extra" in atom:
            return "expected `'NAME' in extras` (a lock has no `extra`), found " + quoted(text)
        if _SETS.isdisjoint(atom):
            continue
        if atom[-1] not in _SETS or atom[1:-1] not in {("in",), ("not", "in")}:
            return f"expected `'NAME' in {'` or `in '.join(sorted(_SETS))}`, found {quoted(text)}"
        mentioned[atom[-1]].add(atom[0][1:-1])
    return LockMarker(
        text=canonical,
        extras=frozenset(mentioned["extras"]),
        groups=frozenset(mentioned["dependency_groups"]),
    )


def marker_fault(text: str) -> str | None:
    """Say why ``text`` is no marker for a lock, or ``None`` when it is one."""
    parsed = _parse(text)
    return parsed if isinstance(parsed, str) else None


def parse_marker(text: str) -> LockMarker | None:
    """Parse a marker; ``None`` when ``marker_fault`` has something to say of it."""
    parsed = _parse(text)
    return None if isinstance(parsed, str) else parsed
