"""The CUDA tables are what their sources give, and each entry of them has a source."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scripts import cuda_tables

from cudalock.cuda import shipped_tables_text

ADDITIONS = cuda_tables.ADDITIONS.read_text(encoding="utf-8")


def table(text: str, name: str) -> dict[str, Any]:
    data: Any = tomllib.loads(text)
    for part in name.split("."):
        data = data.get(part, {})
    assert isinstance(data, dict)
    return data


def fed(name: str) -> Mapping[str, Any]:
    """Give the rows of a shipped table that are no additions, so must come from facts."""
    own = table(ADDITIONS, name)
    return {
        key: value for key, value in table(shipped_tables_text(), name).items() if key not in own
    }


@pytest.fixture
def facts() -> dict[str, Any]:
    """Give the facts, in the form they are recorded in, that the shipped tables rest on."""
    linux, windows = fed("toolkit_driver.linux"), fed("toolkit_driver.windows")
    floors, floors_windows = fed("floor.linux"), fed("floor.windows")
    return {
        "toolkit_driver": {
            "row": [
                {
                    "toolkit": toolkit,
                    "linux_min": driver,
                    "windows_min": windows.get(toolkit, "N/A (not bundled)"),
                }
                for toolkit, driver in linux.items()
            ]
        },
        "minor_version_compat": {
            "floor": [
                {
                    "major": int(major),
                    "linux": driver,
                    "windows": floors_windows.get(major, "none published"),
                }
                for major, driver in floors.items()
            ]
        },
        "driver_branch_cuda": {
            "branch": [
                {"branch": branch, "cuda": cuda} for branch, cuda in fed("branch.cuda").items()
            ]
        },
        "forward_compat": {
            "base_branches": [
                {"compat": cuda, "branches": list(map(int, branches.split()))}
                for cuda, branches in fed("forward.branches").items()
            ]
        },
        "ptx_isa_min_cuda": {"map": dict(fed("ptx.cuda"))},
        "ptxas_targets": {
            "toolkit": [
                {"toolkit": cuda, "sm": targets.split()}
                for cuda, targets in fed("targets.sm").items()
            ]
        },
        "families": {
            "f": {f"{n}f": members.split() for n, members in fed("family.members").items()},
            "alias": {
                f"{old}{suffix}": f"{new}{suffix}"
                for old, new in fed("alias.number").items()
                for suffix in ("", "a", "f")
            },
        },
    }


def test_the_shipped_tables_are_what_facts_and_additions_give(facts: dict[str, Any]) -> None:
    text, left = cuda_tables.generate(facts, ADDITIONS)
    assert text == shipped_tables_text()
    assert cuda_tables.differences(text, shipped_tables_text()) == []
    assert left == ["floor 13 windows: `none published` is no driver version"]


def test_facts_feed_most_of_each_table_they_feed() -> None:
    for name in cuda_tables.FED:
        assert fed(name), name


def test_every_entry_of_the_tables_has_a_source() -> None:
    assert cuda_tables.unsourced(shipped_tables_text()) == []


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("[branch.cuda]", "[branches.cuda]", ["branches.cuda.450"]),
        ("[branch]\nsource", "[branch]\nsauce", ["branch.sauce", "branch.cuda.450"]),
        ("[floor]\nsource = ", '[floor]\nsource = ""\nother = ', ["floor.source", "floor.other"]),
        ("[toolkit_driver]", "newest = 5\n[toolkit_driver]", ["newest"]),
        ("[toolkit_driver]", "[empty]\n[toolkit_driver]", ["empty"]),
    ],
)
def test_an_entry_without_a_source_is_found(old: str, new: str, missing: list[str]) -> None:
    text = shipped_tables_text().replace(old, new, 1)
    assert text != shipped_tables_text()
    assert set(missing) <= set(cuda_tables.unsourced(text))


def test_tables_without_a_source_are_not_written(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected a source for .*branch\.cuda\.450"):
        cuda_tables.generate(facts, ADDITIONS.replace("[branch]\nsource", "[branch]\nsauce"))


def test_a_new_row_of_the_facts_stands_in_its_place(facts: dict[str, Any]) -> None:
    facts["driver_branch_cuda"]["branch"].insert(0, {"branch": "625", "cuda": "13.6"})
    facts["ptx_isa_min_cuda"]["map"]["9.10"] = "13.10"
    text, _ = cuda_tables.generate(facts, ADDITIONS)
    assert '620 = "13.5"\n625 = "13.6"\n' in text
    assert '"9.5" = "13.5"\n"9.10" = "13.10"\n' in text
    assert cuda_tables.differences(text, shipped_tables_text()) == [
        "branch.cuda.625: the sources give '13.6', the tables nothing",
        "ptx.cuda.9.10: the sources give '13.10', the tables nothing",
    ]


def test_a_row_without_an_exact_value_is_told_and_not_taken(facts: dict[str, Any]) -> None:
    row = {"toolkit": "13.9", "linux_min": "R630 branch", "windows_min": "<=631.10"}
    facts["toolkit_driver"]["row"].append(row)
    text, left = cuda_tables.generate(facts, ADDITIONS)
    assert text == shipped_tables_text()
    assert "toolkit_driver 13.9 linux_min: `R630 branch` is no driver version" in left
    assert "toolkit_driver 13.9 windows_min: `<=631.10` is no driver version" in left


def test_an_alias_of_its_own_is_told(facts: dict[str, Any]) -> None:
    facts["families"]["alias"]["101a"] = "120a"
    _, left = cuda_tables.generate(facts, ADDITIONS)
    assert "alias 101a: `120a` does not follow from that of 101" in left


def test_facts_and_additions_may_not_contradict_each_other(facts: dict[str, Any]) -> None:
    facts["ptx_isa_min_cuda"]["map"]["1.2"] = "2.1"
    with pytest.raises(
        ValueError, match=r"ptx\.cuda\.1\.2: the facts say 2\.1, the additions 2\.0"
    ):
        cuda_tables.generate(facts, ADDITIONS)


def test_a_table_that_facts_feed_needs_its_heading(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected the headings targets\.sm"):
        cuda_tables.generate(facts, ADDITIONS.replace("[targets.sm]\n", ""))


_FACTS = """
[toolkit_driver]
row = [{ toolkit = "13.3", linux_min = "610.43.02", windows_min = "N/A" }]
[minor_version_compat]
floor = [{ major = 13, linux = "580.65.06", windows = "none" }]
[driver_branch_cuda]
branch = [{ branch = "580", cuda = "13.0" }]
[forward_compat]
base_branches = [{ compat = "13.0", branches = [570, 575] }]
[ptx_isa_min_cuda.map]
"9.0" = "13.0"
[ptxas_targets]
toolkit = [{ toolkit = "13.0", sm = ["75", "80"] }]
[families.f]
120f = ["12.0", "12.1"]
[families.alias]
101 = "110"
"""


def test_the_command_writes_checks_and_says_what_is_not_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts, tables = tmp_path / "facts.toml", tmp_path / "tables.toml"
    facts.write_text(_FACTS, encoding="utf-8")
    arguments = ["--facts", str(facts), "--tables", str(tables)]
    assert cuda_tables.main(arguments) == 0
    assert "not taken: floor 13 windows: `none`" in capsys.readouterr().err
    assert table(tables.read_text("utf-8"), "toolkit_driver.linux") == {"13.3.0": "610.43.02"}
    assert cuda_tables.main([*arguments, "--check"]) == 0
    assert capsys.readouterr().out == ""
    before = tables.read_text("utf-8").replace('"13.0" = "75 80"', '"13.0" = "75"')
    tables.write_text(before, encoding="utf-8")
    assert cuda_tables.main([*arguments, "--check"]) == 1
    assert capsys.readouterr().out == (
        "targets.sm.13.0: the sources give '75 80', the tables '75'\n"
    )
    assert tables.read_text("utf-8") == before
    tables.write_text(before.replace('"75"', '"75 80"') + "# mine\n", encoding="utf-8")
    assert cuda_tables.main([*arguments, "--check"]) == 1
    assert capsys.readouterr().out == "the comments or the order of the tables\n"


@pytest.mark.parametrize("text", ["[families", "", _FACTS.replace('"13.0" = ', "")])
def test_facts_of_another_form_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    facts, tables = tmp_path / "facts.toml", tmp_path / "tables.toml"
    facts.write_text(text.replace("branch = [", "branches = ["), encoding="utf-8")
    assert cuda_tables.main(["--facts", str(facts), "--tables", str(tables)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not tables.exists()
