"""At every moment the old file or the new one is there, whole."""

import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cudalock.errors import LockError
from cudalock.lock import LockChangedError, LockWriteError, content_digest, write_atomically
from cudalock.lock.atomic import read_bytes

OLD, NEW = b"old\n" * 1000, b"new\n" * 5000


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "pylock.toml"
    path.write_bytes(OLD)
    return path


def leftovers(path: Path) -> list[str]:
    return [entry.name for entry in path.parent.iterdir() if entry.name.endswith(".tmp")]


def test_the_new_content_takes_the_place_of_the_old(lock: Path) -> None:
    assert write_atomically(lock, NEW, expected=content_digest(OLD))
    assert lock.read_bytes() == NEW
    assert leftovers(lock) == []


def test_a_new_file_gets_what_the_umask_leaves(tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    before = os.umask(0o027)
    try:
        assert write_atomically(path, NEW, expected=content_digest(None))
    finally:
        os.umask(before)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (NEW, 0o640)


def test_an_old_file_keeps_its_mode(lock: Path) -> None:
    lock.chmod(0o604)
    write_atomically(lock, NEW)
    assert stat.S_IMODE(lock.stat().st_mode) == 0o604


def test_content_that_is_there_is_not_written_again(lock: Path) -> None:
    before = lock.stat()
    assert not write_atomically(lock, OLD, expected=content_digest(OLD))
    after = lock.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("expected", [NEW, None])
def test_a_file_that_changed_since_it_was_read_is_left_alone(
    lock: Path, expected: bytes | None
) -> None:
    with pytest.raises(LockChangedError, match="changed underneath") as caught:
        write_atomically(lock, b"third", expected=content_digest(expected))
    assert (lock.read_bytes(), caught.value.where) == (OLD, str(lock))


def test_a_file_that_is_gone_since_it_was_read_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(LockChangedError):
        write_atomically(tmp_path / "pylock.toml", NEW, expected=content_digest(OLD))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changes_while_we_write_is_left_alone(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def edit(descriptor: int) -> None:
        lock.write_bytes(b"edited")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", edit)
    with pytest.raises(LockChangedError):
        write_atomically(lock, NEW)
    assert (lock.read_bytes(), leftovers(lock)) == (b"edited", [])


def test_a_symbolic_link_stays_a_link_and_its_file_changes(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    real = shared / "pylock.toml"
    real.write_bytes(OLD)
    link = tmp_path / "pylock.toml"
    link.symlink_to("shared/pylock.toml")
    write_atomically(link, NEW)
    assert link.is_symlink()
    assert real.read_bytes() == NEW


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "pylock.toml").symlink_to("other.toml")
    (tmp_path / "other.toml").symlink_to("pylock.toml")
    with pytest.raises(LockWriteError):
        write_atomically(tmp_path / "pylock.toml", NEW)


def test_what_is_no_regular_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(LockWriteError, match="expected a regular file"):
            write_atomically(tmp_path / name, NEW)
    for path in (tmp_path / "missing" / "pylock.toml", tmp_path / "nul\0", tmp_path / ("x" * 300)):
        with pytest.raises(LockWriteError) as caught:
            write_atomically(path, NEW)
        assert caught.value.where == str(path)


def test_a_file_over_the_limit_is_not_read(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudalock.lock.atomic.LARGEST_LOCK", 10)
    with pytest.raises(LockWriteError, match="at most 10 bytes"):
        read_bytes(lock)


def test_a_read_only_file_is_not_replaced(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The tests may run as root, to whom every file is writable; so the answer is given here.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(LockWriteError, match="found read-only"):
        write_atomically(lock, NEW)
    assert lock.read_bytes() == OLD


def test_a_read_only_folder_is_an_error(lock: Path) -> None:
    # A child without privileges, because root may write anywhere.
    lock.parent.chmod(0o555)
    for folder in lock.parents[1:3]:
        folder.chmod(folder.stat().st_mode | 0o555)
    program = (
        "import os, sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from cudalock.lock import LockWriteError, write_atomically\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: write_atomically(Path(sys.argv[1]), b'new')\n"
        "except LockWriteError as error: print(error)\n"
    )
    try:
        result = subprocess.run(
            [sys.executable, "-c", program, str(lock), *sys.path],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        lock.parent.chmod(0o755)
    assert str(lock) in result.stdout, result.stderr
    assert (lock.read_bytes(), leftovers(lock)) == (OLD, [])


def test_a_disk_that_is_full_leaves_the_old_file(lock: Path) -> None:
    program = (
        "import resource, sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from cudalock.lock import LockWriteError, write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "try: write_atomically(Path(sys.argv[1]), b'new' * 5000)\n"
        "except LockWriteError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(lock), *sys.path],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "File too large; it is as it was" in result.stdout
    assert (lock.read_bytes(), leftovers(lock)) == (OLD, [])


def failing(real: Callable[..., Any], number: int, error: OSError) -> Callable[..., Any]:
    """Return the call, made to fail the n-th time, after doing half of its work where it can."""
    calls = 0

    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - stands for any system call
        nonlocal calls
        calls += 1
        if calls == number:
            raise error
        if real is os.write:
            descriptor, data = arguments
            return real(descriptor, data[:4096])
        return real(*arguments, **options)

    return call


@pytest.mark.parametrize("name", ["open", "read", "write", "fsync", "replace", "fstat", "chmod"])
def test_whichever_call_fails_the_file_is_whole(
    lock: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    real = getattr(os, name)
    failures = 0
    for number in range(1, 20):
        lock.write_bytes(OLD)
        with monkeypatch.context() as patch:
            patch.setattr(os, name, failing(real, number, OSError(28, "No space left on device")))
            try:
                assert write_atomically(lock, NEW)
                message = "the file is written"
            except LockError as error:
                failures += 1
                message = str(error)
                words = (error.where, "No space left on device" in message)
                assert words == (str(lock), True)
        is_written = "the file is written" in message
        assert lock.read_bytes() == (NEW if is_written else OLD)
        assert leftovers(lock) == []
    assert failures >= 1


def test_a_file_that_cannot_be_made_is_not_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", failing(os.replace, 1, OSError(5, "Input/output error")))
    with pytest.raises(LockWriteError):
        write_atomically(tmp_path / "pylock.toml", NEW)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_nothing_is_an_error(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 0)
    with pytest.raises(LockWriteError, match="found it took none"):
        write_atomically(lock, NEW)
    assert (lock.read_bytes(), leftovers(lock)) == (OLD, [])


def test_a_file_system_that_cannot_flush_a_folder_is_no_error(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(os.fsync, 2, OSError(22, "Invalid argument")))
    assert write_atomically(lock, NEW)


def test_without_a_way_to_open_folders_the_file_is_written_all_the_same(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_DIRECTORY")
    assert write_atomically(lock, NEW)
    assert lock.read_bytes() == NEW


def test_an_interrupt_leaves_the_old_file(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                write_atomically(lock, NEW)
        assert (lock.read_bytes(), leftovers(lock)) == (OLD, [])


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    contents = [b"%d\n" % number * 200_000 for number in range(2)]
    path.write_bytes(contents[0])
    program = (
        "import os, sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from cudalock.lock.atomic import write_atomically\n"
        "contents = [b'%d\\n' % number * 200_000 for number in range(2)]\n"
        # One interpreter, many children: what is killed is the child that writes.
        "for line in sys.stdin:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        while True:\n"
        "            for content in contents: write_atomically(Path(sys.argv[1]), content)\n"
        "    print(child, flush=True)\n"
        "    os.waitpid(child, 0)\n"
        "    print('dead', flush=True)\n"
    )
    chance = random.Random(12)  # noqa: S311 - chooses moments, no secrets
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path), *sys.path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdin is not None
        assert parent.stdout is not None
        for _ in range(40):
            parent.stdin.write("\n")
            parent.stdin.flush()
            child = int(parent.stdout.readline())
            time.sleep(chance.uniform(0.001, 0.03))
            os.kill(child, signal.SIGKILL)
            assert parent.stdout.readline() == "dead\n"
            assert path.read_bytes() in contents
        parent.stdin.close()
