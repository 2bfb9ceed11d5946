"""A stamp says that a `check` was answered "yes", and for which bytes.

It holds a copy of every file that the answer came from. The next `check` of the same command line
compares copy and file, byte by byte, and repeats the answer if nothing differs: no hash that could
collide, no clock of a file system to trust. The code and data of cudalock are known by the size and
time of their files. Only answers without any finding are stamped, of locks whose inputs are at most
a pyproject.toml, and none that asked a machine, an environment or an index.

This module runs before anything else is imported and must not import what costs: the whole process
takes 30 ms, of which Python itself takes 20.
"""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["keep_answer", "repeat_answer"]

_HEAD = b"cudalock check 1"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PLAIN_FLAGS = frozenset({"-q", "--quiet", "-v", "--verbose"})


def repeat_answer(arguments: "Sequence[str]", environ: "Mapping[str, str]") -> "str | None":
    """Return what was printed for this command line, if all it came from is as it was."""
    key = _key(arguments, environ)
    if key is None:
        return None
    try:
        with open(_place(key, environ), "rb") as file:
            parts = _split(file.read())
    except OSError:
        return None
    if parts is None or len(parts) < 4 or parts[0] != _HEAD or parts[1] != key:
        return None
    if not parts[2].isdigit() or time.time() >= int(parts[2]) or len(parts) % 2:
        return None
    for place in range(4, len(parts), 2):
        try:
            with open(os.fsdecode(parts[place]), "rb") as file:
                if file.read() != parts[place + 1]:
                    return None
        except OSError:
            return None
    return parts[3].decode()


def keep_answer(
    arguments: "Sequence[str]",
    environ: "Mapping[str, str]",
    *,
    printed: str,
    files: "Iterable[tuple[str, bytes]]",
    until: int,
) -> None:
    """Keep a "yes" until a time (seconds since 1970); ``files`` are those it came from, as read.

    A folder that cannot be written is no error: the next `check` takes its full time.
    """
    key = _key(arguments, environ)
    if key is None:
        return
    parts = [_HEAD, key, str(until).encode(), printed.encode()]
    for name, data in files:
        parts += [os.fsencode(os.path.abspath(name)), data]
    place = _place(key, environ)
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        # Another process may read it meanwhile: it sees the old one or the new one.
        temporary = f"{place}.{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(b"".join(b"%d\n%b" % (len(part), part) for part in parts))
        os.replace(temporary, place)
    except OSError:
        return


def _key(arguments: "Sequence[str]", environ: "Mapping[str, str]") -> bytes | None:
    """Return all that an answer depends on but for the contents of files; None where that is more."""
    words = list(arguments)
    for place, word in enumerate(words[1:], 1):
        if word == "--format" or words[place - 1] == "--format":
            continue
        if word.startswith("-") and word not in _PLAIN_FLAGS:
            return None
    try:
        # A lock that was added or has gone changes what "every lock" means.
        names = [n for n in os.listdir() if n.startswith("pylock") and n.endswith(".toml")]
        where = os.getcwd()
    except OSError:
        return None
    own = [f"{name}={environ[name]}" for name in sorted(environ) if name.startswith("CUDALOCK_")]
    told = [where, *words, "", *sorted(names), "", *own, "", *_code(_PACKAGE)]
    indices = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "indices", "knowledge")
    if os.path.isdir(indices):
        told += _code(indices)
    return os.fsencode("\0".join(told))


def _code(folder: str) -> "list[str]":
    """Tell the code and data apart from any other: every file's name, size and time of change."""
    found: list[str] = []
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name not in {"__pycache__", "recorded", "schemas"}:
                        waiting.append(entry.path)
                else:
                    seen = entry.stat()
                    found.append(f"{entry.path} {seen.st_size} {seen.st_mtime_ns}")
    return sorted(found)


def _place(key: bytes, environ: "Mapping[str, str]") -> str:
    from zlib import crc32  # noqa: PLC0415 - part of the interpreter; only names the file.

    base = environ.get("CUDALOCK_CACHE_DIR") or environ.get("XDG_CACHE_HOME")
    if not base:
        base = environ.get("LOCALAPPDATA") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "cudalock-check", f"{crc32(key):08x}")


def _split(data: bytes) -> "list[bytes] | None":
    parts: list[bytes] = []
    start = 0
    while start < len(data):
        end = data.find(b"\n", start, start + 20)
        if end < 0 or not data[start:end].isdigit():
            return None
        size = int(data[start:end])
        part = data[end + 1 : end + 1 + size]
        if len(part) != size:
            return None
        parts.append(part)
        start = end + 1 + size
    return parts
