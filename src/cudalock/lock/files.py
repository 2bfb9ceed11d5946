"""A lock as a file: read it, or write it and keep what a person added.

The two doors the rest of cudalock uses. They know the order in which the other modules of this
room must be called; none of their rules is here.
"""

from collections.abc import Set as AbstractSet
from pathlib import Path

from cudalock.errors import UsageError
from cudalock.lock.atomic import content_digest, follow_links, read_bytes, write_atomically
from cudalock.lock.comments import merge_comments
from cudalock.lock.model import Lock
from cudalock.lock.names import check_lock_file_name
from cudalock.lock.read import decode_lock, parse_lock
from cudalock.lock.write import format_lock

__all__ = ["read_lock", "write_lock"]


def read_lock(path: Path, *, insecure_hosts: AbstractSet[str] = frozenset()) -> Lock:
    """Read a lock file.

    Raises ``UsageError`` when there is none or its name is no lock's, ``LockFaultsError`` with
    every fault of its content, and ``LockWriteError`` when the system refuses to read it.
    """
    check_lock_file_name(path)
    content = read_bytes(path)
    if content is None:
        raise UsageError("expected a lock file, found none", where=str(path))
    where = str(path)
    return parse_lock(decode_lock(content, where), where=where, insecure_hosts=insecure_hosts)


def write_lock(path: Path, lock: Lock, *, insecure_hosts: AbstractSet[str] = frozenset()) -> bool:
    """Write a lock file, keeping the comments of one that is there; return whether it changed.

    A file that is there and is no valid lock is left alone: ``LockFaultsError``. So is one that
    changes while this runs: ``LockChangedError``. Also raises what ``format_lock`` and
    ``write_atomically`` raise, and ``UsageError`` for a name that is no lock's, whether the
    path's own or that of the file a symbolic link leads to.
    """
    check_lock_file_name(path)
    # A link planted in a checkout must not make us overwrite something that is no lock.
    check_lock_file_name(follow_links(path))
    text = format_lock(lock, insecure_hosts=insecure_hosts)
    old = read_bytes(path)
    if old is not None and old != text.encode():
        where = str(path)
        old_text = decode_lock(old, where)
        parse_lock(old_text, where=where, insecure_hosts=insecure_hosts)
        text = merge_comments(old_text, text)
    return write_atomically(path, text.encode(), expected=content_digest(old))
