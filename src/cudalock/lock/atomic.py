"""Putting a lock on disk so that at every moment the old file or the new one is there, whole.

A temporary file beside the target is written, flushed to the disk, and renamed over it; then the
directory is flushed. A crash before the rename leaves the old file as it was (and perhaps a
``.cudalock-*.tmp``, which may be deleted). An existing file keeps its mode; a new one gets what
the umask leaves. A symbolic link is followed, and the file it names is replaced, so that a lock
shared through a link stays shared.

The guard against an edit made while we resolved compares digests just before the rename. What a
person saves in the microseconds between the two is lost; no portable call compares and renames.
"""

import errno
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from cudalock.errors import LockError
from cudalock.lock.model import LARGEST_LOCK

__all__ = [
    "LockChangedError",
    "LockWriteError",
    "content_digest",
    "follow_links",
    "read_bytes",
    "write_atomically",
]

_ABSENT = "absent"
_CHUNK = 1 << 20
# Windows opens files as text unless told otherwise, and has no flag for "do not follow".
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# A named pipe must answer at once instead of waiting for its other end.
_READ_FLAGS = os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0)
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | getattr(os, "O_NOFOLLOW", 0)
# Some file systems cannot flush a directory and say so; the rename itself stands.
_CANNOT_FLUSH = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})


class LockWriteError(LockError):
    """The file could not be read or replaced; what was there before is still there, whole."""

    code = "lock-write"


class LockChangedError(LockError):
    """Somebody changed the file since it was read; it was left as they made it."""

    code = "lock-changed"


def content_digest(content: bytes | None) -> str:
    """Return the digest ``write_atomically`` expects; ``None`` stands for "there is no file"."""
    return _ABSENT if content is None else hashlib.sha256(content).hexdigest()


def follow_links(path: Path) -> Path:
    """Return the file a path stands for once symbolic links are followed; it need not exist."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise LockWriteError(
            f"expected a path to a file, found {_reason(error)}", where=str(path)
        ) from error


def read_bytes(path: Path) -> bytes | None:
    """Read a regular file of at most 64 MiB; ``None`` when there is none.

    Raises ``LockWriteError`` for anything else, and never waits on a pipe.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LockWriteError(
            f"expected a file that can be read, found {_reason(error)}", where=str(path)
        ) from error
    try:
        return _read_all(descriptor, path)
    except OSError as error:
        raise LockWriteError(
            f"expected a file that can be read, found {_reason(error)}", where=str(path)
        ) from error
    finally:
        os.close(descriptor)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _read_all(descriptor: int, path: Path) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise LockWriteError("expected a regular file, found something else", where=str(path))
    content = bytearray()
    while chunk := os.read(descriptor, _CHUNK):
        content += chunk
        if len(content) > LARGEST_LOCK:
            raise LockWriteError(
                f"expected at most {LARGEST_LOCK} bytes, found more", where=str(path)
            )
    return bytes(content)


def write_atomically(path: Path, data: bytes, *, expected: str | None = None) -> bool:
    """Make ``data`` the content of ``path``; return whether anything had to be written.

    ``expected`` is the ``content_digest`` of what the caller read; when the file holds something
    else by now, ``LockChangedError`` is raised and the file stays. Content that is already there
    is not written again. Raises ``LockWriteError`` for everything the system refuses. The one
    failure after which the new content stands is that of flushing the directory, and it says so.
    """
    target = follow_links(path)
    current = read_bytes(target)
    if expected is not None:
        _refuse_change(current, expected, path)
    if current == data:
        return False
    if current is not None and not os.access(target, os.W_OK):
        # A rename would replace even a file whose owner made it read-only.
        raise LockWriteError(
            "expected a file that may be written, found read-only", where=str(path)
        )
    try:
        temporary = _write_beside(target, data, path)
        try:
            _refuse_change(read_bytes(target), content_digest(current), path)
            temporary.replace(target)
        except BaseException:
            _remove(temporary)
            raise
    except OSError as error:
        raise LockWriteError(
            f"expected to write the file, found {_reason(error)}; it is as it was", where=str(path)
        ) from error
    try:
        _flush_directory(target.parent)
    except OSError as error:
        raise LockWriteError(
            f"the file is written, but flushing its folder failed ({_reason(error)}): "
            "a loss of power may bring the old one back",
            where=str(path),
        ) from error
    return True


def _refuse_change(content: bytes | None, expected: str, path: Path) -> None:
    if content_digest(content) != expected:
        raise LockChangedError(
            "expected the file as it was read, found that it changed underneath; "
            "it was left alone, so run the command again",
            where=str(path),
        )


def _write_beside(target: Path, data: bytes, path: Path) -> Path:
    """Write a flushed temporary file in the target's folder, with the target's mode."""
    temporary = target.parent / f".cudalock-{os.urandom(8).hex()}.tmp"
    # 0o666 lets the kernel apply the umask, which cannot be read without changing it.
    descriptor = os.open(temporary, _CREATE_FLAGS, 0o666)
    try:
        try:
            with suppress(FileNotFoundError):
                mode = stat.S_IMODE(target.stat().st_mode)
                temporary.chmod(mode)
            _write_all(descriptor, data, path)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _remove(temporary)
        raise
    return temporary


def _write_all(descriptor: int, data: bytes, path: Path) -> None:
    left = memoryview(data)
    while left:
        written = os.write(descriptor, left)
        if not written:
            raise LockWriteError(
                "expected the disk to take more, found it took none", where=str(path)
            )
        left = left[written:]


def _remove(temporary: Path) -> None:
    with suppress(OSError):
        temporary.unlink()


def _flush_directory(directory: Path) -> None:
    flag = getattr(os, "O_DIRECTORY", None)
    if flag is None:
        # Windows cannot open a directory for flushing; its rename is journalled.
        return
    descriptor = os.open(directory, os.O_RDONLY | flag | _BINARY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_FLUSH:
            raise
    finally:
        os.close(descriptor)
