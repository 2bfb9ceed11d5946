"""The comments a person adds to a lock outlive the next lock."""

import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import locked_package
from cudalock.lock import Lock, format_lock, merge_comments

LOCK = Lock(
    extras=("cu128",),
    packages=(
        locked_package(marker="'cu128' not in extras", dependencies=(("right", "2.0"),)),
        locked_package(version="1.0+cu128", marker="'cu128' in extras"),
        locked_package("mid", "1", tool={"runtime": 13}),
        locked_package("right", "2.0"),
    ),
    tool={"target": {"sm": ["12.0"]}},
)
TEXT = format_lock(LOCK)
WHEEL = "right-2.0-py3-none-any.whl"


def merge(old: str, new: str) -> str:
    """Merge, and check what holds of every merge."""
    merged = merge_comments(old, new)
    assert merge_comments(merged, new) == merged
    assert tomllib.loads(merged) == tomllib.loads(new)
    return merged


def without(name: str) -> str:
    kept = tuple(
        replace(package, dependencies=()) for package in LOCK.packages if package.name != name
    )
    return format_lock(replace(LOCK, packages=kept))


def changed(name: str, version: str) -> str:
    packages = tuple(
        locked_package(name, version) if package.name == name else replace(package, dependencies=())
        for package in LOCK.packages
    )
    return format_lock(replace(LOCK, packages=packages))


COMMENTED = (
    TEXT.replace("lock-version", "# header one\n\n  # header two\nlock-version")
    .replace("extras =", "# why the extras\nextras =")
    .replace('name = "mid"', '# the name\n# of mid\nname = "mid" # tail of mid')
    .replace(
        '[[packages]]\nname = "right"', '# above right\n\n[[packages]]   # at right\nname = "right"'
    )
    .replace(f'    {{name = "{WHEEL}"', f'    # above the wheel\n    {{name = "{WHEEL}"')
    .replace(
        '    {name = "right", version = "2.0"},', '    {name = "right", version = "2.0"}, # dep'
    )
    .replace("[packages.tool.cudalock]", "# evidence\n[packages.tool.cudalock]  # table")
    .replace('sm = ["12.0"]', 'sm = ["12.0"] # "all" [eight]\n# the end\n')
)


def test_an_unchanged_lock_keeps_every_byte() -> None:
    assert merge(COMMENTED, TEXT) == COMMENTED


def test_a_lock_without_comments_is_the_new_one() -> None:
    assert merge_comments("", TEXT) == TEXT
    assert merge_comments("x = 1", TEXT) == TEXT
    assert merge(TEXT, without("mid")) == without("mid")


def test_comments_go_with_their_package() -> None:
    merged = merge(COMMENTED, without("right"))
    assert "above right" not in merged
    assert "above the wheel" not in merged
    assert '# the name\n# of mid\nname = "mid" # tail of mid\n' in merged


def test_a_new_version_keeps_what_stands_above_and_drops_what_stood_beside() -> None:
    text = TEXT.replace(
        'version = "2.0"\nrequires', '# pinned\nversion = "2.0" # for left\nrequires'
    )
    merged = merge(text, changed("right", "3.0"))
    assert '# pinned\nversion = "3.0"\n' in merged
    assert "for left" not in merged


def test_a_comment_on_a_file_that_is_gone_moves_to_the_list_of_files() -> None:
    merged = merge(COMMENTED, changed("right", "3.0"))
    assert '# above the wheel\nwheels = [\n    {name = "right-3.0' in merged


def test_a_comment_on_a_key_that_is_gone_moves_to_its_entry() -> None:
    merged = merge(COMMENTED, changed("mid", "1"))
    assert '\n# evidence\n[[packages]]\n# the name\n# of mid\nname = "mid" # tail of mid' in merged


def test_a_comment_on_a_setting_that_is_gone_moves_to_the_top() -> None:
    lock = replace(LOCK, extras=(), tool={}, packages=LOCK.packages[2:])
    merged = merge(COMMENTED, format_lock(lock))
    assert merged.splitlines()[:6] == [
        "# Made by cudalock; installs with pip >= 26.1, uv and pdm.",
        "# header one",
        "",
        "  # header two",
        "# why the extras",
        'lock-version = "1.0"',
    ]


def test_entries_of_one_name_are_told_apart_by_marker() -> None:
    text = TEXT.replace('version = "1.0+cu130"', '# of cu130\nversion = "1.0+cu130"')
    packages = (replace(LOCK.packages[0], version="0.9+cu130", wheels=()), *LOCK.packages[1:])
    packages = (locked_package(version="0.9+cu130", marker=packages[0].marker), *packages[1:])
    merged = merge(text, format_lock(replace(LOCK, packages=packages)))
    assert '# of cu130\nversion = "0.9+cu130"' in merged


def test_our_own_line_is_renewed_where_it_stands() -> None:
    old = TEXT.replace(
        TEXT.splitlines()[0], "# mine\n# Made by cudalock 0.0; old words\n# mine too"
    )
    assert merge(old, TEXT).splitlines()[:3] == ["# mine", TEXT.splitlines()[0], "# mine too"]


def test_the_first_line_of_code_may_have_been_another() -> None:
    old = "# top\nextras = []\n# version\nlock-version = '1.0'\n"
    assert merge(old, TEXT).splitlines()[:4] == [
        TEXT.splitlines()[0],
        "# top",
        "# version",
        'lock-version = "1.0"',
    ]


def test_a_sign_inside_a_string_is_no_comment() -> None:
    old = TEXT.replace(
        "[tool.cudalock.target]",
        '[tool.cudalock]\na = "# no\\" # no"\nb = \'# no\'\nc = """\n# no\n\\""" # no\n""" # tail\n'
        "d = '''# no\n# no'''\n# yes\n[tool.cudalock.target]",
    )
    merged = merge(old, TEXT)
    assert merged == TEXT.replace(
        "[tool.cudalock.target]", "# yes\n[tool.cudalock.target]"
    ).replace("\n\n# yes", "\n# yes")


def test_windows_line_ends_and_spaces_at_the_end_become_ours() -> None:
    assert merge(COMMENTED.replace("\n", "  \r\n"), TEXT) == COMMENTED


def test_a_comment_that_toml_forbids_is_dropped() -> None:
    old = TEXT.replace("extras =", "# bell\x07\n# kept\tü\nextras =").replace(
        '"2.0"\n', '"2.0" # \ud800\n'
    )
    merged = merge(old, TEXT)
    assert "# kept\tü\nextras" in merged
    assert "bell" not in merged
    assert merged.encode()


@pytest.mark.parametrize(
    "text",
    [
        "# only\n",
        "#",
        "\n# a\n\n",
        "]]]] # x",
        '"""\n# x',
        "a = '# x",
        "[[packages]] # x",
        "\xa0# a space to Unicode, none to TOML",
        f"\nlock-version = '1.0'\n{TEXT.splitlines()[0]}",
    ],
)
def test_an_old_text_that_is_no_lock_does_no_harm(text: str) -> None:
    merge(text, TEXT)


_PIECES = [
    *TEXT.splitlines(keepends=True),
    "# one\n",
    "  # two",
    "\n",
    "]",
    "[",
    '"',
    "'''",
    '"""',
    "\\",
    "=",
]


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=3)), max_size=40).map("".join))
def test_any_old_text_leaves_the_data_alone(old: str) -> None:
    merge(old, TEXT)


@given(st.data())
def test_comments_between_any_lines_come_back_byte_for_byte(data: st.DataObject) -> None:
    lines = TEXT.splitlines()
    for number in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(1, len(lines)))
        lines.insert(place, f"{data.draw(st.sampled_from(['', '    ']))}# comment {number}")
        end = data.draw(st.integers(1, len(lines) - 1))
        if lines[end] and "#" not in lines[end]:
            lines[end] += f"  # tail {number}"
    old = "\n".join(lines) + "\n"
    assert merge(old, TEXT) == old
