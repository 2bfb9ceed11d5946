"""Which entry of an old lock became which of a new one.

Entries of one name are told apart by their markers: those with the same marker belong together,
the others in the order they come. ``compare.py`` and ``comments.py`` ask the same question and
must agree.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Pairing", "pair_entries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Positions in two lists: those that belong together, and those only one of them has."""

    matched: tuple[tuple[int, int], ...]
    only_old: tuple[int, ...]
    only_new: tuple[int, ...]


def pair_entries(old: Sequence[str], new: Sequence[str]) -> Pairing:
    """Pair the entries of one name by their markers (``""`` for none). Linear."""
    waiting: dict[str, deque[int]] = {}
    for position, marker in enumerate(new):
        waiting.setdefault(marker, deque()).append(position)
    matched: list[tuple[int, int]] = []
    rest: list[int] = []
    for position, marker in enumerate(old):
        same = waiting.get(marker)
        if same:
            matched.append((position, same.popleft()))
        else:
            rest.append(position)
    taken = {position for _, position in matched}
    left = [position for position in range(len(new)) if position not in taken]
    matched.extend(zip(rest, left, strict=False))
    return Pairing(
        matched=tuple(matched),
        only_old=tuple(rest[len(left) :]),
        only_new=tuple(left[len(rest) :]),
    )
