"""The sha256 a lock gives for a wheel, and how it is known.

*Claimed*: an index, or the person, says it and nobody looked. *Observed*: somebody said it and the
bytes, read whole, have it. *Computed*: nobody said anything, and the bytes have it.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from cudalock.wheel.listing import HashAside, ListedFile

__all__ = ["FileHash", "HashState", "HashedBytes", "claimed_hash"]

HashState = Literal["claimed", "observed", "computed"]


class HashedBytes(NamedTuple):
    """What a whole file was found to be: its sha256 and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHash:
    """The hash of one file. ``aside`` are claims that do not count, each with the reason.

    ``size`` is in bytes and set where the bytes were read.
    """

    sha256: str
    state: HashState
    size: int | None = None
    aside: tuple[HashAside, ...] = ()


def claimed_hash(file: ListedFile) -> FileHash | None:
    """Return the one hash that is claimed for a file; None when none is, or several are."""
    if len(file.sha256) != 1:
        return None
    return FileHash(sha256=file.sha256[0], state="claimed", aside=file.aside)
