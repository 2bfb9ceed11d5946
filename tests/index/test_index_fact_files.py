"""Facts in files: those that come along, those kept in the cache, and tables of exports."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from contents_builder import make_contents
from cudalock.index.cache import Cache
from cudalock.index.client import Client
from cudalock.index.fact_files import (
    Exports,
    KeptFacts,
    ShippedFacts,
    format_exports,
    format_facts,
    open_book,
)
from cudalock.index.locate import DataFileError
from cudalock.wheel.contents_form import dump_contents, load_contents, shortened
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.wheel_facts import ExportTable, FactBook, WheelFacts, symbol_digest

_NAME = "left-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
_A, _B = "a1" * 32, "b2" * 32
_CODE = {"libraries": [{"path": "left/_C.so", "needed": ["libcudart.so.13"], "code": ["sm_120"]}]}


def _file(*sha256: str, url: str = "https://left.test/") -> ListedFile:
    return ListedFile(
        wheel=parse_wheel_file(_NAME),
        url=f"{url}{_NAME}",
        index="default",
        index_url=url,
        sha256=sha256,
    )


def _facts(tier: str = "T4", **table: object) -> WheelFacts:
    contents = make_contents({"tier": tier, **_CODE, **table})
    return WheelFacts(filename=_NAME, contents=contents, date="2026-12-01")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "evidence"
    path.mkdir()
    (path / f"{_NAME}.json").write_text(format_facts(_NAME, _A, _facts()), "utf-8")
    return path


class _Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def client(tmp_path: Path, clock: _Clock) -> Client:
    return Client(None, Cache(tmp_path / "cache"), wall=clock)


# Those that come along


def test_shipped_facts_are_of_the_one_hash_that_an_index_claims(folder: Path) -> None:
    shipped = ShippedFacts(folder)
    found = shipped.find(_file(_A))
    assert found is not None
    assert (found.origin, found.tier, found.date) == ("shipped", "T4", "2026-12-01")
    assert found.contents == shortened(_facts().contents)
    # Another hash, none, or two of which nobody knows the right one.
    assert shipped.find(_file(_B)) is None
    assert shipped.find(_file()) is None
    assert shipped.find(_file(_A, _B)) is None


def test_the_file_of_a_wheel_has_a_library_a_line(folder: Path) -> None:
    lines = (folder / f"{_NAME}.json").read_text("utf-8").splitlines()
    assert len(lines) == 3
    assert lines[0].startswith('{"filename":"left-1.0-')
    empty = format_facts(_NAME, _A, _facts(libraries=[]))
    assert json.loads(empty)["libraries"] == []
    load_contents(json.loads(empty))


def test_a_folder_that_is_not_there_has_no_facts(tmp_path: Path) -> None:
    shipped = ShippedFacts(tmp_path / "none")
    assert shipped.find(_file(_A)) is None
    assert shipped.tables == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "1",
        "[" * 100_000,
        '{"sha256":"%s"}' % _A,  # noqa: UP031 - braces
        json.dumps({**dump_contents(_facts().contents), "sha256": _A}),
        json.dumps({**dump_contents(_facts().contents), "sha256": _A, "date": "x", "reader": 0}),
        "\udcff",
    ],
)
def test_a_broken_file_of_facts_is_named(folder: Path, text: str) -> None:
    (folder / f"{_NAME}.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataFileError, match="expected the facts of a wheel") as error:
        ShippedFacts(folder).find(_file(_A))
    assert error.value.where == f"{_NAME}.json"


# Tables of exports


def _tables(folder: Path) -> tuple[ExportTable, ...]:
    return ShippedFacts(folder).tables


def _digests(*names: str) -> frozenset[bytes]:
    return frozenset(map(symbol_digest, names))


def test_tables_of_exports_say_what_is_in_each_release(folder: Path) -> None:
    data = format_exports(
        "torch",
        {
            "2.10.0": Exports(source="torch-2.10.0.whl", digests=_digests("old", "both")),
            "2.9.1": Exports(source="torch-2.9.1.whl", digests=_digests("old"), partial=True),
            "2.11.0": Exports(source="torch-2.11.0.whl", digests=_digests("new", "both")),
        },
    )
    (folder / "exports.bin").write_bytes(data)
    newest, middle, oldest = _tables(folder)
    assert [str(t.release) for t in (newest, middle, oldest)] == ["2.11.0", "2.10.0", "2.9.1"]
    assert [t.source for t in (newest, oldest)] == ["torch-2.11.0.whl", "torch-2.9.1.whl"]
    found = {
        str(table.release): [name in table for name in ("old", "both", "new", "nowhere")]
        for table in (newest, middle, oldest)
    }
    assert found == {
        "2.11.0": [False, True, True, False],
        "2.10.0": [True, True, False, False],
        # Of libraries that were not read nobody knows what is in them.
        "2.9.1": [True, False, False, True],
    }
    assert 5 not in newest


def test_a_table_without_masks_is_of_one_release() -> None:
    digests = b"".join(sorted(_digests("a", "b")))
    table = ExportTable(project="torch", release=Version("2.11"), source="x", digests=digests)
    assert ["a" in table, "b" in table, "c" in table] == [True, True, False]
    empty = ExportTable(project="torch", release=Version("2.11"), source="x", digests=b"")
    assert "a" not in empty


_HEAD: dict[str, Any] = {
    "project": "torch",
    "digests": 1,
    "releases": [{"release": "2.11.0", "source": "x", "partial": False}],
}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]\n",
        b"[" * 100_000,
        b"\xff\n",
        json.dumps(_HEAD).encode() + b"\n12345",
        json.dumps({**_HEAD, "digests": 1.0}).encode() + b"\n123451",
        json.dumps({**_HEAD, "digests": -1}).encode() + b"\n",
        json.dumps({**_HEAD, "releases": _HEAD["releases"] * 9}).encode() + b"\n123451",
        json.dumps({**_HEAD, "releases": [{}]}).encode() + b"\n123451",
        json.dumps({**_HEAD, "releases": [5]}).encode() + b"\n123451",
        json.dumps({**_HEAD, "releases": [{**_HEAD["releases"][0], "release": "new"}]}).encode()
        + b"\n123451",
        json.dumps({"digests": 1, "releases": _HEAD["releases"]}).encode() + b"\n123451",
    ],
)
def test_a_broken_table_of_exports_is_named(folder: Path, data: bytes) -> None:
    (folder / "exports.bin").write_bytes(data)
    with pytest.raises(DataFileError, match="expected tables of exports"):
        _ = _tables(folder)


# Those that were kept


def test_kept_facts_come_back_for_the_same_hash_wherever_the_wheel_is(client: Client) -> None:
    kept = KeptFacts(client)
    assert kept.find(_file(_A)) is None
    kept.keep(_file(_A), _facts("T2"))
    found = kept.find(_file(_A, url="https://right.test/"))
    assert isinstance(found, WheelFacts)
    assert (found.origin, found.tier) == ("kept", "T2")
    assert found.contents == _facts("T2").contents
    assert kept.find(_file(_B)) is None


@pytest.mark.parametrize("claims", [(), (_A, _B)])
def test_facts_of_a_wheel_without_one_hash_are_not_kept(
    client: Client, claims: tuple[str, ...]
) -> None:
    kept = KeptFacts(client)
    kept.keep(_file(*claims), _facts())
    kept.keep_failure(_file(*claims), "it is broken")
    for file in (_file(*claims), _file(_A), _file(_B)):
        assert kept.find(file) is None


def test_a_failure_is_kept_for_a_week_and_facts_for_years(client: Client, clock: _Clock) -> None:
    kept = KeptFacts(client)
    kept.keep_failure(_file(_A), "it is broken")
    kept.keep(_file(_B), _facts())
    assert kept.find(_file(_A)) == "it is broken"
    clock.now += 7 * 24 * 3600 + 1
    assert kept.find(_file(_A)) is None
    clock.now += 5 * 365 * 24 * 3600
    assert kept.find(_file(_B)) is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not packed",
        zlib.compress(b"{"),
        zlib.compress(b"5"),
        zlib.compress(b'"failure"'),
        zlib.compress(b'["failure"]'),
        zlib.compress(b"{}"),
        zlib.compress(b"\xff"),
        zlib.compress(b"[" * 100_000),
        zlib.compress(json.dumps(dump_contents(_facts().contents)).encode())[:-20],
        zlib.compress(bytes(65 * 1024 * 1024)),
    ],
)
def test_a_kept_file_that_cannot_be_used_is_as_none(client: Client, data: bytes) -> None:
    client.keep(f"facts of sha256 {_A} by reader 1", data, seconds=1e6)
    assert KeptFacts(client).find(_file(_A)) is None


def test_without_a_cache_nothing_is_kept() -> None:
    kept = KeptFacts(Client())
    kept.keep(_file(_A), _facts())
    assert kept.find(_file(_A)) is None


# The book


def test_of_shipped_and_kept_facts_the_deeper_count(folder: Path, client: Client) -> None:
    assert open_book(folder, client).of(_file(_B)) is None
    KeptFacts(client).keep(_file(_A), _facts("T2"))
    shipped = open_book(folder, client).of(_file(_A))
    assert shipped is not None
    assert (shipped.origin, shipped.tier) == ("shipped", "T4")
    (folder / f"{_NAME}.json").write_text(format_facts(_NAME, _A, _facts("T2")), "utf-8")
    same = open_book(folder, client).of(_file(_A))
    assert same is not None
    assert same.origin == "shipped"
    KeptFacts(client).keep(_file(_A), _facts("T3"))
    deeper = open_book(folder, client).of(_file(_A))
    assert deeper is not None
    assert (deeper.origin, deeper.tier) == ("kept", "T3")
    KeptFacts(client).keep_failure(_file(_B), "it is broken")
    assert open_book(folder, client).of(_file(_B)) is None


def test_a_book_looks_once_and_what_is_read_counts_from_then_on() -> None:
    looked: list[str] = []

    def find(file: ListedFile) -> WheelFacts | None:
        looked.append(file.url)
        return _facts("T2")

    book = FactBook(find=find)
    file = _file(_A)
    assert book.of(file) == book.of(_file(_A, url="https://right.test/"))
    assert len(looked) == 1
    assert book.read_now(file) is None
    book.add_failure(file, "it is broken")
    assert book.failure(file) == "it is broken"
    book.add(file, _facts("T4"))
    assert book.failure(file) is None
    for found in (book.of(file), book.read_now(file)):
        assert found is not None
        assert found.tier == "T4"


def test_wheels_without_one_hash_are_told_apart_by_their_address() -> None:
    book = FactBook()
    for claims in ((), (_A, _B)):
        book.add(_file(*claims, url="https://left.test/"), _facts())
        assert book.of(_file(*claims, url="https://left.test/")) is not None
        assert book.of(_file(*claims, url="https://right.test/")) is None
    assert book.of(_file(_A)) is None
