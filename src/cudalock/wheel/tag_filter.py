"""A quick look at a wheel's file name, to see whether its tags can be among the target's.

A page of a popular project lists thousands of wheels of which a target accepts a few dozen. Reading
each name in full costs about ten times as much as this look, which splits the compressed tag set
and asks three sets. It never turns away a wheel that fits; one it lets through may still not fit,
which the full reading finds out.
"""

from collections.abc import Iterable

from packaging.tags import Tag

from cudalock.wheel.filename import split_variant_label

__all__ = ["TagFilter"]


class TagFilter:
    """Accepts file names by the Python, ABI and platform parts of their tags. Equal by its tags."""

    def __init__(self, tags: Iterable[Tag]) -> None:
        self._tags = frozenset(tags)
        self._interpreters = frozenset(tag.interpreter for tag in self._tags)
        self._abis = frozenset(tag.abi for tag in self._tags)
        self._platforms = frozenset(tag.platform for tag in self._tags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TagFilter) and self._tags == other._tags

    def __hash__(self) -> int:
        return hash(self._tags)

    def admits(self, filename: str) -> bool:
        """Whether the wheel may fit; a name that is no wheel's is admitted, to be told why later."""
        # Wheel tags compare in lower case.
        lowered = filename.lower()
        if lowered.count("-") > 4:
            lowered, _ = split_variant_label(lowered)
        parts = lowered.rsplit("-", 3)
        if len(parts) != 4 or not parts[3].endswith(".whl"):
            return True
        return (
            _meets(parts[3][:-4], self._platforms)
            and _meets(parts[1], self._interpreters)
            and _meets(parts[2], self._abis)
        )


def _meets(compressed: str, accepted: frozenset[str]) -> bool:
    """Whether one part of a compressed tag set is accepted."""
    if compressed in accepted:
        return True
    return "." in compressed and any(part in accepted for part in compressed.split("."))
