"""``--as-of``: which files were not there yet, and which nobody can date.

A file that was published later is ruled out as any other. One without a date is unknown: it is left
out too, and a "no" that rests on it is "could not tell". Nothing but an exact pin of the user takes
it all the same.
"""

from collections.abc import Callable

from packaging.version import Version

from cudalock.resolver.facts import Fact, FactKind
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.published import AsOf, published

__all__ = ["LATE", "UNDATED", "late_fact"]

LATE = "later"
UNDATED = "undated"


def late_fact(
    file: ListedFile, as_of: AsOf, *, pinned: Callable[[Version], bool] = lambda _: False
) -> Fact | None:
    """Return why a file does not count, or None. ``pinned``: the user asks for exactly a version."""
    when = published(file)
    admitted = None if when is None else as_of.admits(when)
    if admitted or (admitted is None and pinned(file.wheel.version)):
        return None
    if admitted is None:
        return Fact(
            kind=FactKind.UNKNOWN,
            subject=file.wheel.project,
            object=UNDATED,
            detail=f"without a date that says they are of {as_of} or before (`--as-of`; an exact "
            "pin takes one all the same)",
            source="" if when is None else str(when),
        )
    return Fact(
        kind=FactKind.REJECTION,
        subject=file.wheel.project,
        object=LATE,
        detail=f"later than {as_of} (`--as-of`)",
        source=str(when),
    )
