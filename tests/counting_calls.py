"""What a piece of work costs, counted: a busy machine counts the same."""

import sys
from collections.abc import Callable

__all__ = ["calls_of"]


def calls_of(work: Callable[[], object]) -> int:
    """Count the calls of Python and C functions."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
