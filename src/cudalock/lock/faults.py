"""Faults of a lock: where each is, in words, and the errors that carry them.

A lock is judged whole: every fault is collected with the path of its key
(``packages[3].wheels[0].hashes.sha256``) and raised once. Text from a lock may hold anything, so
whatever is quoted in a message is shortened, and what a terminal would obey is escaped.
"""

import re
from dataclasses import dataclass

from cudalock.errors import InvalidLockError, LockError

__all__ = [
    "UNSAFE_TO_SHOW",
    "Fault",
    "FaultList",
    "LockFaultsError",
    "MissingHashError",
    "UnwritableLockError",
    "key_path",
    "quoted",
]

_MOST_FAULTS = 1000
_MOST_WORDED = 20
_LONGEST_QUOTE = 80
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,80}")

# C0, DEL, C1, and the characters that reorder or hide text on a terminal. A fixed list, because
# ``str.isprintable`` follows the interpreter's Unicode tables.
UNSAFE_TO_SHOW = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def _escape_match(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def quoted(text: str) -> str:
    """Word untrusted text for a message: in backticks, escaped, at most 80 characters."""
    shown = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"
    return f"`{UNSAFE_TO_SHOW.sub(_escape_match, shown)}`"


def key_path(parent: str, key: str) -> str:
    """Return the path of ``key`` below ``parent``; a key that is no plain word is quoted."""
    word = key if _PLAIN_KEY.fullmatch(key) else quoted(key)
    return f"{parent}.{word}" if parent else word


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: the path of the key, what was expected and found, and whose entry it is in."""

    path: str
    message: str
    package: str | None = None

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        owner = f" [{self.package}]" if self.package else ""
        return f"{place}{self.message}{owner}"


class FaultList:
    """Faults in the order they were met; past a thousand they are only counted."""

    __slots__ = ("_faults", "count")

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self.count = 0

    def add(self, path: str, message: str, package: str | None = None) -> None:
        """Take note of one fault."""
        self.count += 1
        if len(self._faults) < _MOST_FAULTS:
            self._faults.append(Fault(path=path, message=message, package=package))

    def as_tuple(self) -> tuple[Fault, ...]:
        """Return the faults kept so far."""
        return tuple(self._faults)


def _word_faults(faults: FaultList, where: str | None) -> str:
    kept = faults.as_tuple()
    place = "" if where is None else f" ({where})"
    if faults.count == 1:
        return f"{kept[0]}{place}"
    lines = [f"{faults.count} faults{place}"]
    lines.extend(f"  {fault}" for fault in kept[:_MOST_WORDED])
    if faults.count > _MOST_WORDED:
        lines.append(f"  and {faults.count - _MOST_WORDED} more")
    return "\n".join(lines)


class LockFaultsError(InvalidLockError):
    """A lock that was read breaks the rules; ``faults`` holds each with the path of its key."""

    def __init__(self, faults: FaultList, *, where: str | None) -> None:
        super().__init__(_word_faults(faults, None), where=where)
        self.faults = faults.as_tuple()
        self._worded = _word_faults(faults, where)

    def __str__(self) -> str:
        return self._worded


class UnwritableLockError(LockError):
    """A lock that was to be written breaks the rules it would be read by; nothing was written."""

    code = "unwritable-lock"

    def __init__(self, faults: FaultList, *, where: str | None = None) -> None:
        super().__init__(_word_faults(faults, None), where=where)
        self.faults = faults.as_tuple()
        self._worded = _word_faults(faults, where)

    def __str__(self) -> str:
        return self._worded


class MissingHashError(LockError):
    """A wheel without a sha256 was to be locked. PEP 751: at least one hash must be recorded."""

    code = "missing-hash"

    def __init__(self, *, package: str, wheel: str, where: str | None = None) -> None:
        super().__init__(
            f"expected a sha256 for {quoted(wheel)} of {quoted(package)}, found none",
            where=where,
            flag="--hash-missing",
        )
        self.package = package
        self.wheel = wheel
