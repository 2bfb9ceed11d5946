"""Opening locks that a person names, for the commands that read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cudalock.errors import InvalidLockError, UsageError
from cudalock.lock.faults import LockFaultsError
from cudalock.lock.model import LARGEST_LOCK, Lock
from cudalock.lock.names import check_lock_file_name
from cudalock.lock.read import decode_lock, parse_lock

__all__ = ["OpenLock", "find_lock", "open_locks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLock:
    """A lock file that was read: its path as the person names it, its bytes, and what they say.

    ``lock`` is None for a file that is no lock, and ``faults`` say why.
    """

    path: Path
    data: bytes
    lock: Lock | None
    faults: tuple[str, ...] = ()


def open_locks(names: Sequence[str], folder: Path) -> list[OpenLock]:
    """Open the locks that are named, or every one of a folder; raise `UsageError` for none."""
    paths = [Path(name) for name in names] or sorted(folder.glob("pylock*.toml"))
    if not paths:
        raise UsageError(
            "expected a lock, found no pylock.toml or pylock.NAME.toml",
            where=str(folder.absolute()),
        )
    return [_open(path) for path in paths]


def _open(path: Path) -> OpenLock:
    check_lock_file_name(path)
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_LOCK + 1)
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", where=str(path)) from error
    try:
        lock = parse_lock(decode_lock(data, str(path)), where=str(path))
    except LockFaultsError as error:
        faults = tuple(str(fault) for fault in error.faults)
        return OpenLock(path=path, data=data, lock=None, faults=faults)
    return OpenLock(path=path, data=data, lock=lock)


def find_lock(name: str | None, folder: Path) -> Lock:
    """Read one lock: the one that is named, or the only one of a folder.

    Raises `UsageError` for none or several, `InvalidLockError` for a file that is no lock.
    """
    if name is None:
        paths = sorted(folder.glob("pylock*.toml"))
        plain = [path for path in paths if path.name == "pylock.toml"]
        if len(paths) > 1 and not plain:
            told = ", ".join(path.name for path in paths)
            message = f"expected one lock, found {told}"
            raise UsageError(message, where=str(folder), flag="--lock")
        name = str((plain or paths or [folder / "pylock.toml"])[0])
    opened = _open(Path(name))
    if opened.lock is None:
        raise InvalidLockError("\n".join(opened.faults), where=name)
    return opened.lock
