import sys

import pytest
from packaging.tags import platform_tags

from cudalock.errors import UsageError
from cudalock.host.interpreter import parse_python
from cudalock.host.platforms import Platform, parse_platform


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("linux-x86_64", "manylinux_2_28_x86_64"),
        ("linux_x86_64", "manylinux_2_28_x86_64"),
        ("Linux-ARM64", "manylinux_2_28_aarch64"),
        ("linux-aarch64", "manylinux_2_28_aarch64"),
        ("manylinux_2_34_x86_64", "manylinux_2_34_x86_64"),
        ("manylinux_2_39_aarch64", "manylinux_2_39_aarch64"),
        ("manylinux2014_x86_64", "manylinux_2_17_x86_64"),
        ("manylinux1_x86_64", "manylinux_2_5_x86_64"),
        ("win-amd64", "win_amd64"),
        ("windows-x86_64", "win_amd64"),
        (" win_amd64 ", "win_amd64"),
    ],
)
def test_a_platform_becomes_its_most_demanding_tag(text: str, expected: str) -> None:
    assert str(parse_platform(text)) == expected
    assert str(parse_platform(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "macosx_14_0_arm64",
        "musllinux_1_2_x86_64",
        "linux-riscv64",
        "win-arm64",
        "manylinux_3_1_x86_64",
        "manylinux_2_4_x86_64",
        "manylinux1_aarch64",
        "manylinux_2_28_i686",
        "linux",
    ],
)
def test_a_platform_without_cuda_wheels_is_refused_with_the_forms_that_are_taken(text: str) -> None:
    with pytest.raises(UsageError, match=r"linux-x86_64.*manylinux_2_34_x86_64.*found"):
        parse_platform(text)


def test_older_names_stand_behind_the_tag_they_mean_and_the_bare_one_is_last() -> None:
    assert parse_platform("manylinux_2_18_aarch64").tags == (
        "manylinux_2_18_aarch64",
        "manylinux_2_17_aarch64",
        "manylinux2014_aarch64",
        "linux_aarch64",
    )
    assert parse_platform("manylinux_2_6_x86_64").tags == (
        "manylinux_2_6_x86_64",
        "manylinux_2_5_x86_64",
        "manylinux1_x86_64",
        "linux_x86_64",
    )
    assert parse_platform("win-amd64").tags == ("win_amd64",)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="compares with a Linux machine")
def test_the_tags_are_those_of_packaging_for_the_same_glibc() -> None:
    here = [tag for tag in platform_tags() if tag.startswith("manylinux")]
    if not here:
        pytest.skip("this Linux has no glibc")
    _, major, minor, machine = here[0].split("_", 3)
    platform = Platform(machine=machine, glibc=(int(major), int(minor)))
    assert list(platform.tags[:-1]) == here


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.12", "3.12"),
        ("3.12.4", "3.12.4"),
        ("3.13t", "3.13t"),
        ("3.14.0rc2", "3.14.0rc2"),
        ("cp312", "3.12"),
        ("cpython@3.12", "3.12"),
        ("python3.11", "3.11"),
        ("3.14+freethreaded", "3.14t"),
        ("3.012", None),
        ("3.1", None),
        ("2.7", None),
        ("3", None),
        ("312.4", None),
        ("3.12t", None),
        ("pypy3.10", None),
        ("3.12.4.5", None),
        ("٣.12", None),
        ("", None),
    ],
)
def test_a_python_is_a_version_of_cpython(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(UsageError, match="expected"):
            parse_python(text)
    else:
        assert str(parse_python(text)) == expected
