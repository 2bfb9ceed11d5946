"""The root of every error cudalock raises, and the families it is sorted into.

Each family has one meaning and one exit code::

    CudalockError
    ├─ UsageError                  asked wrongly: requirement, target, definition    exit 2
    ├─ IndexAccessError            an index gave no usable answer                    exit 3
    ├─ WheelError                  a wheel contradicts its own format                exit 3
    ├─ HostError                   this machine could not be read                    exit 3
    ├─ ResolutionError
    │  ├─ NoSolutionError          proved; defined beside ``Conflict``               exit 1
    │  └─ ResolutionStoppedError   budget or data ran out; proves nothing            exit 3
    └─ LockError
       ├─ InvalidLockError         the file is broken; carries the path to the key   exit 2
       └─ LockMismatchError        the lock is no longer true                        exit 1

An error that carries a room's value is defined in that room, under a family from here, so this
module imports nothing. Exceptions carry values; only ``cli/`` prints.
"""

from typing import ClassVar

__all__ = [
    "CudalockError",
    "HostError",
    "IndexAccessError",
    "InvalidLockError",
    "LockError",
    "LockMismatchError",
    "ResolutionError",
    "ResolutionStoppedError",
    "UsageError",
    "WheelError",
]


class CudalockError(Exception):
    """Anything cudalock refuses to go on from.

    ``message`` says what was expected and what was found; ``where`` names the file, line, URL or
    key; ``flag`` is the command-line flag that would change the outcome, when one would.
    ``code`` is a stable kebab-case name for machines. ``exit_code`` is the process's answer.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, where: str | None = None, flag: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.flag = flag

    def __str__(self) -> str:
        return self.message if self.where is None else f"{self.message} ({self.where})"


class UsageError(CudalockError):
    """What was asked cannot be understood or contradicts itself."""

    code = "usage"
    exit_code = 2


class IndexAccessError(CudalockError):
    """An index gave no usable answer, so nothing may be concluded from it."""

    code = "index-access"


class WheelError(CudalockError):
    """A wheel, or metadata taken from one, contradicts its own format."""

    code = "wheel"


class HostError(CudalockError):
    """This machine could not be read."""

    code = "host"


class ResolutionError(CudalockError):
    """No lock was made."""

    code = "resolution"


class ResolutionStoppedError(ResolutionError):
    """The budget or the data ran out before an answer: this proves nothing."""

    code = "stopped"


class LockError(CudalockError):
    """A lock file is broken or no longer true."""

    code = "lock"


class InvalidLockError(LockError):
    """The lock breaks the rules of PEP 751 or of cudalock; ``where`` holds the path to the key."""

    code = "invalid-lock"
    exit_code = 2


class LockMismatchError(LockError):
    """The lock is well formed and no longer matches what it is compared with."""

    code = "lock-mismatch"
    exit_code = 1
