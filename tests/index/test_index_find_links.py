import hashlib
import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_wheel
from cudalock.errors import CudalockError, IndexAccessError, UsageError, WheelError
from cudalock.index.find_links import (
    hash_local_file,
    local_path,
    parse_direct_file,
    parse_find_links,
    read_local_metadata,
    read_wheel_directory,
)

SHA = "ab" * 32


def test_a_directory_lists_its_wheels_by_project_and_says_which_names_lie(tmp_path: Path) -> None:
    make_wheel(tmp_path, "left", "1.0+cu130")
    make_wheel(tmp_path, "left", "1.1")
    make_wheel(tmp_path, "Right.Hand", "2")
    (tmp_path / "left-1.0-broken.whl").write_bytes(b"")
    (tmp_path / "-.whl").write_bytes(b"")
    (tmp_path / "left-1.0.tar.gz").write_bytes(b"")
    (tmp_path / "left-9-py3-none-any.whl").mkdir()
    found = read_wheel_directory(tmp_path)
    assert sorted(found.files) == ["left", "right-hand"]
    first, second = found.files["left"]
    assert first.filename == "left-1.0+cu130-py3-none-any.whl"
    assert first.url == (tmp_path / first.filename).as_uri()
    assert first.index == "find-links"
    assert first.index_url == f"{tmp_path.as_uri()}/"
    assert first.size == (tmp_path / first.filename).stat().st_size
    assert first.sha256 == ()
    assert str(second.wheel.version) == "1.1"
    (rejection,) = found.rejections["left"]
    assert (rejection.filename, rejection.kind) == ("left-1.0-broken.whl", "bad-name")
    assert "left-1.0-broken.whl" in rejection.where
    assert sorted(found.rejections) == ["", "left"]


def test_a_directory_that_went_away_gives_no_usable_answer(tmp_path: Path) -> None:
    with pytest.raises(IndexAccessError) as caught:
        read_wheel_directory(tmp_path / "gone")
    assert caught.value.flag == "--find-links"
    assert str(tmp_path / "gone") in str(caught.value)


def test_a_directory_of_too_many_entries_is_not_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cudalock.index.find_links._ENTRIES_LIMIT", 2)
    for number in range(3):
        (tmp_path / str(number)).write_bytes(b"")
    with pytest.raises(IndexAccessError, match="at most 2 entries"):
        read_wheel_directory(tmp_path)


def test_find_links_takes_an_address_or_a_directory_that_exists(tmp_path: Path) -> None:
    assert parse_find_links("https://a.example/links.html") == "https://a.example/links.html"
    assert parse_find_links(str(tmp_path)) == tmp_path
    assert parse_find_links(tmp_path.as_uri()) == tmp_path
    for text in (str(tmp_path / "no"), "ftp://a.example", "", "a\0b", f"{tmp_path}\x1b[31m"):
        with pytest.raises(UsageError) as caught:
            parse_find_links(text)
        assert str(caught.value).isprintable()


def test_a_file_address_of_another_machine_is_refused() -> None:
    assert local_path("https://a.example/x.whl") is None
    assert local_path("file:///a%20b/x.whl") == Path("/a b/x.whl")
    assert local_path("file://localhost/x.whl") == Path("/x.whl")
    with pytest.raises(UsageError, match="this machine"):
        local_path("file://other/share/x.whl")


def test_a_url_requirement_names_its_wheel_by_its_path_decoded_once() -> None:
    url = "https://h.example/rel/left-1.0%2Bcu130-py3-none-any.whl"
    file = parse_direct_file("left", f"{url}#sha256={SHA.upper()}", None)
    assert file.filename == "left-1.0+cu130-py3-none-any.whl"
    assert (file.url, file.index, file.index_url) == (url, "direct", "")
    assert file.sha256 == (SHA,)
    assert parse_direct_file("left", url, None).sha256 == ()
    assert parse_direct_file("left", f"{url}#sha256={SHA}", SHA).sha256 == (SHA,)
    with pytest.raises(WheelError, match=r"%2[Bb]"):
        parse_direct_file("left", url.replace("%2B", "%252B"), None)


@pytest.mark.parametrize(
    "url",
    [
        "https://h.example/right-1.0-py3-none-any.whl",
        "https://h.example/left-1.0.tar.gz",
        "https://h.example/left/",
        "https://h.example/",
        "https://h.example/..%2fleft-1.0-py3-none-any.whl",
        "https://h.example/left-1.0-py3-none-any.whl%00",
    ],
)
def test_a_url_that_is_no_wheel_of_the_project_is_an_error_naming_it(url: str) -> None:
    with pytest.raises(WheelError) as caught:
        parse_direct_file("left", url, None)
    assert caught.value.where == url


@pytest.mark.parametrize(
    ("url", "sha256"),
    [
        ("ftp://h.example/left-1-py3-none-any.whl", None),
        ("left-1-py3-none-any.whl", None),
        ("https://[::1/left-1-py3-none-any.whl", None),
        ("https:///left-1-py3-none-any.whl", None),
        ("https://h.example/left-1-py3-none-any.whl#sha256=abc", None),
        ("https://h.example/left-1-py3-none-any.whl", "zz" * 32),
        (f"https://h.example/left-1-py3-none-any.whl#sha256={SHA}", "cd" * 32),
    ],
)
def test_a_url_requirement_that_is_asked_wrongly_is_refused(url: str, sha256: str | None) -> None:
    with pytest.raises(UsageError):
        parse_direct_file("left", url, sha256)


def test_no_secret_of_an_address_is_shown() -> None:
    with pytest.raises(WheelError) as caught:
        parse_direct_file("left", "https://u:p@canary@h.example/x.whl?token=canary", None)
    assert "canary" not in str(caught.value)


@given(st.text(max_size=100), st.none() | st.text(max_size=70))
def test_any_url_requirement_is_a_wheel_or_one_of_our_errors(url: str, sha256: str | None) -> None:
    try:
        outcome = parse_direct_file("left", url, sha256).wheel.project
    except CudalockError as error:
        outcome = str(error)
    assert outcome.isprintable()


def test_metadata_of_a_wheel_on_this_disk_is_read_from_it(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "left", "1.0+cu130", requires=["right>=2"])
    metadata = read_local_metadata(wheel)
    assert [str(requirement) for requirement in metadata.requires_dist] == ["right>=2"]
    assert not metadata.assumed


def test_metadata_of_another_project_or_version_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "left", "1.0")
    for name in ("right-1.0-py3-none-any.whl", "left-1.1-py3-none-any.whl"):
        lying = wheel.with_name(name)
        lying.write_bytes(wheel.read_bytes())
        with pytest.raises(WheelError, match=r"left 1\.0"):
            read_local_metadata(lying)


def test_a_local_label_that_only_the_name_has_is_taken_from_there(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "left", "1.0")
    renamed = wheel.rename(tmp_path / "left-1.0+cu130-py3-none-any.whl")
    assert str(read_local_metadata(renamed).version) == "1.0+cu130"
    with pytest.raises(IndexAccessError):
        read_local_metadata(wheel)


@pytest.mark.parametrize("members", [["left.py"], ["a.dist-info/METADATA", "b.dist-info/METADATA"]])
def test_a_wheel_holds_exactly_one_metadata(tmp_path: Path, members: list[str]) -> None:
    path = tmp_path / "left-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, "Name: left\nVersion: 1.0\n")
    with pytest.raises(WheelError, match=r"found [02] METADATA"):
        read_local_metadata(path)


def test_metadata_over_the_limit_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "left-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("left-1.0.dist-info/METADATA", b"\0" * (4 * 1024 * 1024 + 1))
    with pytest.raises(WheelError, match="found METADATA of 4194305 bytes"):
        read_local_metadata(path)


def test_any_damage_to_a_wheel_is_one_of_our_errors(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "left", "1.0", requires=["right>=2"])
    data = wheel.read_bytes()
    damaged = [data[:cut] for cut in range(0, len(data), 7)]
    damaged += [
        data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
        for at in range(0, len(data), 3)
        for flip in (0x01, 0xFF)
    ]
    for content in damaged:
        wheel.write_bytes(content)
        # Most damage is harmless to METADATA; what is not must be our error, naming the file.
        try:
            where: str | None = str(wheel) if read_local_metadata(wheel).project == "left" else ""
        except WheelError as error:
            where = error.where
        assert where == str(wheel)


def test_a_file_is_hashed_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "x"
    content = os.urandom(3 * 1024 * 1024)
    path.write_bytes(content)
    assert hash_local_file(path) == (hashlib.sha256(content).hexdigest(), len(content))
    with pytest.raises(IndexAccessError):
        hash_local_file(tmp_path / "gone")
