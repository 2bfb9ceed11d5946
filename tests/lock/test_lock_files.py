"""Locks as files: read, written, kept."""

from pathlib import Path

import pytest

from builders import locked_package
from cudalock.errors import UsageError
from cudalock.lock import (
    Lock,
    LockChangedError,
    LockFaultsError,
    content_digest,
    format_lock,
    read_lock,
    write_lock,
)

LOCK = Lock(packages=(locked_package(),))
NEWER = Lock(packages=(locked_package(version="1.1+cu130"),))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "pylock.cu130.toml"
    assert write_lock(path, LOCK)
    assert read_lock(path) == LOCK
    assert path.read_text() == format_lock(LOCK)


def test_the_same_lock_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    write_lock(path, LOCK)
    path.write_text(path.read_text().replace("[[packages]]", "# mine\n[[packages]]"))
    before = path.stat().st_mtime_ns
    assert not write_lock(path, LOCK)
    assert path.stat().st_mtime_ns == before


def test_comments_outlive_a_new_lock(tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    write_lock(path, LOCK)
    path.write_text(path.read_text().replace("[[packages]]", "# mine\n[[packages]]"))
    assert write_lock(path, NEWER)
    assert path.read_text() == format_lock(NEWER).replace("[[packages]]", "# mine\n[[packages]]")


@pytest.mark.parametrize("content", [b"broken", b"\xff", format_lock(LOCK).encode("utf-16")])
def test_a_broken_lock_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pylock.toml"
    path.write_bytes(content)
    for attempt in (lambda: write_lock(path, LOCK), lambda: read_lock(path)):
        with pytest.raises(LockFaultsError) as caught:
            attempt()
        assert (caught.value.exit_code, caught.value.where) == (2, str(path))
        assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_a_missing_lock_is_asked_wrongly(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a lock file, found none"):
        read_lock(tmp_path / "pylock.toml")


def test_a_name_that_is_no_locks_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    for attempt in (lambda path: write_lock(path, LOCK), read_lock):
        with pytest.raises(UsageError, match="expected a file named"):
            attempt(tmp_path / "pylock.13.0.toml")
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_something_else_than_a_lock_is_refused(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "pylock.toml").symlink_to(precious)
    with pytest.raises(UsageError, match="found `precious`"):
        write_lock(tmp_path / "pylock.toml", LOCK)
    assert precious.read_text() == "mine"


def test_an_edit_made_while_we_write_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pylock.toml"
    write_lock(path, LOCK)

    def edit(content: bytes | None) -> str:
        path.write_text("edited")
        return content_digest(content)

    monkeypatch.setattr("cudalock.lock.files.content_digest", edit)
    with pytest.raises(LockChangedError):
        write_lock(path, NEWER)
    assert path.read_text() == "edited"
