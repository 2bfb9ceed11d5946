r"""The file name of a lock: ``pylock.toml`` or ``pylock.NAME.toml`` (PEP 751, "File Name").

"A lock file MUST be named pylock.toml or match the regular expression
``r"^pylock\.([^.]+)\.toml$"``": NAME holds no dot, so ``pylock.13.0.toml`` is no lock.
"""

import re
from pathlib import PurePath

from cudalock.errors import UsageError
from cudalock.lock.faults import quoted

__all__ = ["check_lock_file_name", "lock_file_name"]

_NAMED = re.compile(r"pylock\.[^.]+\.toml")
# What we write is narrower than what the standard admits: one word that every file system takes.
_TARGET = re.compile(r"[A-Za-z0-9_-]{1,64}")


def lock_file_name(target_name: str | None) -> str:
    """Return the file name of the lock for a named target, or of the only one.

    Raises ``UsageError`` for a name that cannot stand in a file name.
    """
    if target_name is None:
        return "pylock.toml"
    if not _TARGET.fullmatch(target_name):
        raise UsageError(
            "expected a target name of letters, digits, `-` and `_`, at most 64 "
            f"(it becomes pylock.NAME.toml), found {quoted(target_name)}",
            flag="--target",
        )
    return f"pylock.{target_name}.toml"


def check_lock_file_name(path: PurePath) -> None:
    """Raise ``UsageError`` unless installers would take the file for a lock by its name."""
    if path.name != "pylock.toml" and not _NAMED.fullmatch(path.name):
        raise UsageError(
            "expected a file named `pylock.toml` or `pylock.NAME.toml` with no dot in NAME, "
            f"found {quoted(path.name)}",
            flag="-o",
        )
