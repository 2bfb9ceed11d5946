import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.index.cache import CACHE_SCHEMA, Cache, CacheEntry, freshness_seconds

ENTRY = CacheEntry(
    url="https://h.example.org/x/",
    status=200,
    stored_at=1000.5,
    fresh_for=600,
    body=b"a page\n\nof lines\x00\xff",
    content_type="text/html",
    etag='"a"',
    last_modified=None,
)
KEY = "page https://h.example.org/x/"


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_an_entry_comes_back_as_it_was(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    assert cache.load(KEY) is None
    assert cache.store(KEY, ENTRY)
    assert cache.load(KEY) == ENTRY
    assert Cache(tmp_path / "deep" / "cache").load(KEY) == ENTRY
    newer = CacheEntry(url="", status=404, stored_at=1.0, fresh_for=0)
    assert cache.store(KEY, newer)
    assert cache.load(KEY) == newer
    assert cache.load(KEY + "/") is None


def test_names_say_the_schema_and_nothing_of_the_key(tmp_path: Path) -> None:
    Cache(tmp_path).store("../../etc/passwd", ENTRY)
    (path,) = files(tmp_path)
    relative = path.relative_to(tmp_path)
    assert relative.parts[0] == CACHE_SCHEMA
    assert len("".join(relative.parts[1:])) == 64


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_only_the_owner_may_look(tmp_path: Path) -> None:
    Cache(tmp_path).store(KEY, ENTRY)
    for path in (tmp_path / CACHE_SCHEMA).rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077
    assert not stat.S_IMODE((tmp_path / CACHE_SCHEMA).stat().st_mode) & 0o077


def test_any_byte_flipped_and_any_cut_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, ENTRY)
    (path,) = files(tmp_path)
    sound = path.read_bytes()
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        assert cache.load(KEY) is None
        path.write_bytes(sound[:place])
        assert cache.load(KEY) is None
    path.write_bytes(sound + b"x")
    assert cache.load(KEY) is None
    assert cache.store(KEY, ENTRY)
    assert cache.load(KEY) == ENTRY


@given(st.binary(max_size=300))
def test_any_bytes_in_an_entry_are_a_miss(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    root = tmp_path_factory.getbasetemp() / "any-bytes"
    cache = Cache(root)
    cache.store(KEY, ENTRY)
    (path,) = files(root)
    path.write_bytes(data)
    assert cache.load(KEY) is None


def test_an_entry_under_another_name_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store("one", ENTRY)
    (path,) = files(tmp_path)
    cache.store("two", ENTRY)
    (other,) = [found for found in files(tmp_path) if found != path]
    other.write_bytes(path.read_bytes())
    assert cache.load("two") is None


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_planted_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.store(KEY, ENTRY)
    (path,) = files(tmp_path)
    target = tmp_path / "target"
    path.rename(target)
    path.symlink_to(target)
    before = target.read_bytes()
    assert cache.load(KEY) is None
    assert cache.store(KEY, CacheEntry(url="", status=404, stored_at=1, fresh_for=1))
    assert not path.is_symlink()
    assert target.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / CACHE_SCHEMA
    folder.mkdir()
    folder.chmod(0o777)
    cache = Cache(tmp_path)
    assert not cache.store(KEY, ENTRY)
    assert cache.load(KEY) is None
    assert "others may write" in str(cache.disabled)
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_made_costs_requests_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    assert not cache.store(KEY, ENTRY)
    assert cache.load(KEY) is None
    assert "cannot be made" in str(cache.disabled)
    (tmp_path / CACHE_SCHEMA).write_text("")
    linked = Cache(tmp_path)
    assert linked.load(KEY) is None
    assert linked.disabled is not None


def test_a_write_that_fails_leaves_the_old_entry_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, ENTRY)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert not cache.store(KEY, CacheEntry(url="", status=404, stored_at=1, fresh_for=1))
    monkeypatch.undo()
    assert cache.load(KEY) == ENTRY
    assert len(files(tmp_path)) == 1


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    huge = CacheEntry(url="", status=200, stored_at=1, fresh_for=1, body=bytes(80 * 1024 * 1024))
    assert not Cache(tmp_path).store(KEY, huge)


def test_freshness_begins_when_stored_and_not_before() -> None:
    assert [ENTRY.is_fresh(now) for now in (1000, 1000.5, 1600, 1600.5)] == [
        False,
        True,
        True,
        False,
    ]
    assert ENTRY.has_validator
    assert not CacheEntry(url="", status=200, stored_at=1, fresh_for=1).has_validator


@pytest.mark.parametrize(
    ("control", "age", "expected"),
    [
        (None, None, 600),
        ("", None, 600),
        ("public", None, 600),
        ("max-age=600, public, must-revalidate", None, 600),
        ("Max-Age=30", "10", 20),
        ('max-age="30"', "40", 0),
        ("max-age=0", None, 0),
        ("no-cache,no-store,must-revalidate", None, 0),
        ("no-store, max-age=600", None, 0),
        ("max-age=99999999999999999999", None, 600),
        ("max-age=31536000, immutable", None, 86400),
        ("max-age=-5", None, 600),
        ("max-age=60", "x", 60),
    ],
)
def test_how_long_an_answer_may_be_used(
    control: str | None, age: str | None, expected: int
) -> None:
    assert freshness_seconds(control, age) == expected
