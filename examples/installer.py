"""A small installer on top of cudalock: ``python examples/installer.py LOCK FOLDER [EXTRA]``.

It installs a lock for the Python that runs it: selects the wheels, fetches each, holds it against the
lock's hash and size before a byte of it is unpacked, and unpacks it into a folder. What a real
installer does besides (scripts, RECORD, bytecode) is left out.
"""

import hashlib
import io
import sys
import zipfile
from pathlib import Path, PurePosixPath
from urllib.request import urlopen

import cudalock


def main(lock_file: str, folder: str, *extras: str) -> int:
    """Install the lock; return 0, or the exit code of what stands against it."""
    try:
        lock = cudalock.read_lock(Path(lock_file))
        target = cudalock.this_python()
        wheels = cudalock.select(lock, target, extras=set(extras))
        for chosen in wheels:
            unpack(fetch(chosen, Path(lock_file).parent), Path(folder))
            print(chosen.package.name, chosen.package.version)
    except cudalock.CudalockError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def fetch(chosen: cudalock.SelectedWheel, beside: Path) -> bytes:
    """Return a wheel's bytes, which are those that were locked."""
    wheel = chosen.wheel
    if wheel.url is not None:
        # `read_lock` lets https through, and http of this machine only.
        with urlopen(wheel.url, timeout=60) as answer:  # noqa: S310 - as said above
            content: bytes = answer.read()
    else:
        content = (beside / (wheel.path or "")).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != wheel.hashes["sha256"] or wheel.size not in (None, len(content)):
        raise cudalock.WheelError(
            f"expected the bytes that were locked, found others: sha256 {found}", where=wheel.name
        )
    return content


def unpack(content: bytes, folder: Path) -> None:
    """Unpack a wheel; a member that would land outside the folder is refused."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\\" in name:
                raise cudalock.WheelError("expected a path inside the wheel", where=name)
        archive.extractall(folder)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
