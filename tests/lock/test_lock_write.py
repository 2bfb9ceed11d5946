"""Writing a lock: the bytes, their order, and what is refused before there are any."""

import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.pylock import Pylock

from builders import locked_package, locked_wheel
from cudalock.lock import (
    Lock,
    LockedWheel,
    MissingHashError,
    TomlValue,
    UnwritableLockError,
    format_lock,
    parse_lock,
)

SHA = "ab" * 32

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_plain = st.recursive(
    st.one_of(_texts, st.booleans(), st.integers(-(2**63), 2**63 - 1)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_texts, inner, max_size=4)
    ),
    max_leaves=12,
)
_tools = st.dictionaries(_texts, _plain, max_size=5)


def two_targets() -> Lock:
    return Lock(
        requires_python=">=3.12",
        environments=("sys_platform == 'linux' and platform_machine == 'x86_64'",),
        extras=("cu128",),
        dependency_groups=("default",),
        packages=(
            locked_package(
                marker="'cu128' not in extras",
                dependencies=(("right", "2.0"),),
                tool={
                    "left-1.0+cu130-py3-none-any.whl": {
                        "hash": "claimed",
                        "runtime": 13,
                        "evidence": [
                            "label `+cu130`",
                            {"kind": "NEEDED", "text": "libcudart.so.13"},
                        ],
                    }
                },
            ),
            locked_package(version="1.0+cu128", marker="'cu128' in extras"),
            locked_package("right", "2.0"),
        ),
        tool={"target": {"driver": "590.48.01", "sm": ["12.0"]}},
    )


def test_a_lock_reads_like_this() -> None:
    # hushh-labs/hushh-research#6584: an export that loses the index of a labelled wheel is of no use.
    assert format_lock(two_targets()) == (
        f"""\
# Made by cudalock; installs with pip >= 26.1, uv and pdm.
lock-version = "1.0"
environments = [
    "sys_platform == 'linux' and platform_machine == 'x86_64'",
]
requires-python = ">=3.12"
extras = ["cu128"]
dependency-groups = ["default"]
created-by = "cudalock"

[[packages]]
name = "left"
version = "1.0+cu128"
marker = "'cu128' in extras"
requires-python = ">=3.10"
index = "https://example.org/whl/cu130/"
wheels = [
    {{name = "left-1.0+cu128-py3-none-any.whl", url = "https://example.org/whl/cu130/left-1.0%2Bcu128-py3-none-any.whl", size = 1024, hashes = {{sha256 = "{SHA}"}}}},
]

[[packages]]
name = "left"
version = "1.0+cu130"
marker = "'cu128' not in extras"
requires-python = ">=3.10"
dependencies = [
    {{name = "right", version = "2.0"}},
]
index = "https://example.org/whl/cu130/"
wheels = [
    {{name = "left-1.0+cu130-py3-none-any.whl", url = "https://example.org/whl/cu130/left-1.0%2Bcu130-py3-none-any.whl", size = 1024, hashes = {{sha256 = "{SHA}"}}}},
]

[packages.tool.cudalock."left-1.0+cu130-py3-none-any.whl"]
evidence = ["label `+cu130`", {{kind = "NEEDED", text = "libcudart.so.13"}}]
hash = "claimed"
runtime = 13

[[packages]]
name = "right"
version = "2.0"
requires-python = ">=3.10"
index = "https://example.org/whl/cu130/"
wheels = [
    {{name = "right-2.0-py3-none-any.whl", url = "https://example.org/whl/cu130/right-2.0-py3-none-any.whl", size = 1024, hashes = {{sha256 = "{SHA}"}}}},
]

[tool.cudalock.target]
driver = "590.48.01"
sm = ["12.0"]
"""
    )


def test_the_order_of_the_values_changes_no_byte() -> None:
    lock = replace(two_targets(), extras=("cu128", "cu126"))
    expected = format_lock(lock)
    for packages in permutations(lock.packages):
        shuffled = replace(lock, packages=packages, extras=("cu126", "cu128"))
        assert format_lock(shuffled) == expected


def test_packaging_takes_what_is_written() -> None:
    pylock = Pylock.from_dict(tomllib.loads(format_lock(two_targets())))
    pylock.validate()
    assert [str(package.version) for package in pylock.packages] == [
        "1.0+cu128",
        "1.0+cu130",
        "2.0",
    ]


def test_an_empty_lock_is_a_lock() -> None:
    text = format_lock(Lock())
    assert parse_lock(text, where="pylock.toml") == Lock()
    Pylock.from_dict(tomllib.loads(text))


def test_what_is_not_known_is_left_out() -> None:
    wheel = LockedWheel(
        name="left-1.0-py3-none-any.whl",
        path="wheels/left-1.0-py3-none-any.whl",
        hashes={"sha256": SHA},
    )
    package = replace(
        locked_package(version="1.0", wheels=(wheel,), dependencies=(("left", None),)),
        requires_python=None,
        index=None,
    )
    written = tomllib.loads(format_lock(Lock(packages=(package,))))["packages"]
    assert written == [
        {
            "name": "left",
            "version": "1.0",
            "dependencies": [{"name": "left"}],
            "wheels": [{"name": wheel.name, "path": wheel.path, "hashes": {"sha256": SHA}}],
        }
    ]


def test_times_are_written_in_utc() -> None:
    times = [datetime(2025, 10, 1, 12, tzinfo=UTC), datetime(1, 1, 1, 0, 0, 0, 5, tzinfo=UTC)]
    for time in times:
        wheel = replace(locked_wheel(), upload_time=time)
        text = format_lock(Lock(packages=(locked_package(wheels=(wheel,)),)))
        assert tomllib.loads(text)["packages"][0]["wheels"][0]["upload-time"] == time


@pytest.mark.parametrize(
    "time",
    [
        datetime(2025, 1, 1, tzinfo=UTC).replace(tzinfo=None),
        datetime(2025, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_a_time_that_is_not_in_utc_is_refused(time: datetime) -> None:
    wheel = replace(locked_wheel(), upload_time=time)
    with pytest.raises(UnwritableLockError, match=r"upload-time: expected a time in UTC"):
        format_lock(Lock(packages=(locked_package(wheels=(wheel,)),)))


def test_a_wheel_without_sha256_is_named_and_refused() -> None:
    wheel = replace(locked_wheel(), hashes={"md5": "ab" * 16})
    with pytest.raises(MissingHashError, match=r"`left-1\.0\+cu130-py3-none-any\.whl`") as caught:
        format_lock(Lock(packages=(locked_package(wheels=(wheel,)),)))
    assert (caught.value.package, caught.value.wheel) == ("left", wheel.name)
    assert (caught.value.exit_code, caught.value.flag) == (3, "--hash-missing")


def test_what_the_reader_would_refuse_is_not_written() -> None:
    wheel = replace(locked_wheel(), url="http://example.org/left-1.0%2Bcu130-py3-none-any.whl")
    lock = Lock(packages=(locked_package(wheels=(wheel,)),))
    with pytest.raises(UnwritableLockError) as caught:
        format_lock(lock)
    assert [fault.path for fault in caught.value.faults] == ["packages[0].wheels[0].url"]
    assert str(caught.value) == str(caught.value.faults[0])
    text = format_lock(lock, insecure_hosts={"example.org"})
    assert parse_lock(text, where="x", insecure_hosts={"example.org"}) == lock


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (
            {"x": "\ud800"},
            r"tool\.cudalock\.x: expected Unicode text, found a lone surrogate in `\\ud800`",
        ),
        ({"\udfff": 1}, "lone surrogate"),
        ({"x": 1.5}, "found float"),
        ({"x": None}, "found NoneType"),
        ({"x": b"bytes"}, "found bytes"),
        ({"x": 2**63}, "integer of 64 bits"),
        ({1: 2}, "expected string keys, found int"),
        (
            {"x": ["https://token@example.org/"]},
            r"tool\.cudalock\.x\[0\]: expected text without credentials",
        ),
    ],
)
def test_tool_data_that_toml_cannot_carry_is_refused(
    tool: dict[str, TomlValue], message: str
) -> None:
    with pytest.raises(UnwritableLockError, match=message):
        format_lock(Lock(tool=tool))


def test_tool_data_nested_without_end_is_refused() -> None:
    deep: TomlValue = 1
    for _ in range(40):
        deep = {"x": deep}
    with pytest.raises(UnwritableLockError, match="expected at most 32 levels"):
        format_lock(Lock(tool={"x": deep}))


def test_a_surrogate_in_any_text_is_refused() -> None:
    broken = [
        Lock(created_by="\ud800"),
        Lock(dependency_groups=("\ud800",)),
        Lock(environments=("os_name == '\ud800'",)),
        Lock(packages=(locked_package(marker="os_name == '\ud800'"),)),
    ]
    for lock in broken:
        with pytest.raises(UnwritableLockError, match=r"lone surrogate|expected a marker"):
            format_lock(lock)


def test_long_lists_are_written_one_a_line() -> None:
    extras = tuple(f"extra-number-{number:03}" for number in range(20))
    tool: dict[str, TomlValue] = {
        "names": list(extras),
        "nothing": {},
        "nested": {"deep": {"a": list(extras)}},
    }
    text = format_lock(Lock(extras=extras, tool=tool))
    assert max(map(len, text.splitlines())) < 80
    assert parse_lock(text, where="x") == Lock(extras=extras, tool=tool)


@given(tool=_tools, evidence=_tools, creator=_texts.filter(bool))
def test_any_text_in_any_free_field_comes_back(
    tool: dict[str, TomlValue], evidence: dict[str, TomlValue], creator: str
) -> None:
    lock = Lock(
        created_by=creator,
        packages=(locked_package(tool=evidence or None), locked_package("right", "2.0")),
        tool=tool,
    )
    text = format_lock(lock)
    back = parse_lock(text, where="pylock.toml")
    assert back == lock
    assert format_lock(back) == text
    assert text.endswith("\n")
    assert not set(text) & set(map(chr, [*range(10), *range(11, 32), *range(0x7F, 0xA0), 0x202E]))


def test_locks_can_be_hashed() -> None:
    assert len({two_targets(), two_targets()}) == 1
