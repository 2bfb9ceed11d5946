"""The lock: ``pylock.toml`` (PEP 751) as values, as text, as a file, and compared.

``Lock`` and its parts are the values (``model.py``); ``format_lock`` and ``parse_lock`` turn them
into text and back under one set of rules (``rules.py``); ``read_lock`` and ``write_lock`` work on
files (``atomic.py``, ``comments.py``); ``compare_locks`` says what changed. Building a lock from
a resolution, and asking whether it is still true, belong to ``api``.
"""

from cudalock.lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.lock.atomic import (
        LockChangedError,
        LockWriteError,
        content_digest,
        write_atomically,
    )
    from cudalock.lock.comments import merge_comments
    from cudalock.lock.compare import (
        LockDifference,
        PackageChange,
        SettingChange,
        compare_locks,
        format_difference,
    )
    from cudalock.lock.faults import Fault, LockFaultsError, MissingHashError, UnwritableLockError
    from cudalock.lock.files import read_lock, write_lock
    from cudalock.lock.model import LARGEST_LOCK, Lock, LockedPackage, LockedWheel, TomlValue
    from cudalock.lock.names import check_lock_file_name, lock_file_name
    from cudalock.lock.read import parse_lock
    from cudalock.lock.write import format_lock

__all__ = [
    "LARGEST_LOCK",
    "Fault",
    "Lock",
    "LockChangedError",
    "LockDifference",
    "LockFaultsError",
    "LockWriteError",
    "LockedPackage",
    "LockedWheel",
    "MissingHashError",
    "PackageChange",
    "SettingChange",
    "TomlValue",
    "UnwritableLockError",
    "check_lock_file_name",
    "compare_locks",
    "content_digest",
    "format_difference",
    "format_lock",
    "lock_file_name",
    "merge_comments",
    "parse_lock",
    "read_lock",
    "write_atomically",
    "write_lock",
]

__getattr__ = lazy_names(
    __name__,
    {
        "atomic": ("LockChangedError", "LockWriteError", "content_digest", "write_atomically"),
        "comments": ("merge_comments",),
        "compare": (
            "LockDifference",
            "PackageChange",
            "SettingChange",
            "compare_locks",
            "format_difference",
        ),
        "faults": ("Fault", "LockFaultsError", "MissingHashError", "UnwritableLockError"),
        "files": ("read_lock", "write_lock"),
        "model": ("LARGEST_LOCK", "Lock", "LockedPackage", "LockedWheel", "TomlValue"),
        "names": ("check_lock_file_name", "lock_file_name"),
        "read": ("parse_lock",),
        "write": ("format_lock",),
    },
)
