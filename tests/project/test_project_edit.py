"""One table more in a file that a person wrote, and every other byte as it was."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import UsageError
from cudalock.project.edit import add_target

_VALUES = {"python": "3.12", "cuda": "13.0", "sm": ("12.0",)}

_FILES = {
    "empty": "",
    "plain": '[project]\nname = "x"\nversion = "1"\n',
    "no newline at the end": '[project]\nname = "x"',
    "comments and odd spacing": (
        "# top\n[project]   # here\nname='x'\n\n\n\ndependencies=[ 'a' ,\n   'b', # why\n]\n\n# end\n"
    ),
    "a tool table behind": '[project]\nname = "x"\n\n[tool.ruff]\nline-length = 100\n\n[other]\na = 1\n',
    "tools out of order": '[tool.a]\nx = 1\n[project]\nname = "x"\n[tool.b]\ny = 2\n',
    "targets that are there": (
        '[tool.cudalock]\nnightly = ["left"]  # kept\n\n[tool.cudalock.targets.old]\ncuda = "12.8"\n\n'
        "[tool.ruff]\nline-length = 99\n"
    ),
    "dotted keys": '[tool.cudalock]\ntargets.old.cuda = "12.8"\n\n[tool.z]\na = 1\n',
    "arrays of tables": '[[tool.uv.index]]\nname = "a"\n\n[[tool.uv.index]]\nname = "b"\n',
    "line ends of Windows": '[project]\r\nname = "x"\r\n\r\n[tool.ruff]\r\nline-length = 9\r\n',
}


def check_inserted(old: str, new: str) -> None:
    data = tomllib.loads(new)
    assert data["tool"]["cudalock"]["targets"].pop("new") == {
        "python": "3.12", "cuda": "13.0", "sm": ["12.0"],
    }  # fmt: skip
    assert any(new.startswith(old[:cut]) and new.endswith(old[cut:]) for cut in range(len(old) + 1))


@pytest.mark.parametrize("old", _FILES.values(), ids=_FILES.keys())
def test_every_byte_of_the_file_stays_where_it_was(old: str) -> None:
    new = add_target(old, "new", _VALUES, where="x")
    check_inserted(old, new)
    assert new.count("\r\n") == (new.count("\n") if "\r\n" in old else 0)
    assert add_target(new, "new", _VALUES, where="x") == new


_KEYS = st.text("abcdefgh-", min_size=1, max_size=6)
_TABLES = st.lists(st.sampled_from(
    ["[project]\nname = 'x'\n", "[tool.a]\nb = 1\n", "# a comment\n", "\n", "[tool.a.c]\nd = [1,\n 2]\n",
     "[tool.cudalock]\nrecorded = true\n", "[z]\n", "[[y]]\na = 1\n", "[tool.cudalock.targets.one]\nsm = ['9.0']\n"]
), unique=True, max_size=9).map("".join)  # fmt: skip


@given(_TABLES)
def test_any_order_of_tables_is_kept(old: str) -> None:
    try:
        tomllib.loads(old)
    except tomllib.TOMLDecodeError:
        return
    check_inserted(old, add_target(old, "new", _VALUES, where="x"))


def test_a_target_that_is_there_with_other_values_is_left_alone() -> None:
    old = '[tool.cudalock.targets.new]\ncuda = "12.8"\n'
    with pytest.raises(UsageError, match="expected no target `new` there"):
        add_target(old, "new", _VALUES, where="x")


@pytest.mark.parametrize(
    "old", ["tool = {}\n", "[tool]\ncudalock = {recorded = true}\n", "tool = 1\n", "[tool]\ncudalock = 1\n"]
)  # fmt: skip
def test_a_file_without_a_place_for_it_is_told(old: str) -> None:
    try:
        new = add_target(old, "new", _VALUES, where="x")
    except UsageError as error:
        assert "inline table" in error.message
    else:
        check_inserted(old, new)
