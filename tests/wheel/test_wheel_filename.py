"""File names of wheels: what they say, and names that lie or are too much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import Tag
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.wheel import parse_wheel_file
from cudalock.wheel.filename import split_variant_label


def test_a_name_is_read_into_its_parts() -> None:
    wheel = parse_wheel_file("torch-2.9.1+cu130-2abc-cp312-cp312-manylinux_2_28_x86_64.whl")
    assert (wheel.project, wheel.version) == ("torch", Version("2.9.1+cu130"))
    assert wheel.build == (2, "abc")
    assert wheel.tags == {Tag("cp312", "cp312", "manylinux_2_28_x86_64")}
    assert not wheel.any_platform
    assert str(wheel) == "torch-2.9.1+cu130-2abc-cp312-cp312-manylinux_2_28_x86_64.whl"


def test_a_compressed_tag_set_is_expanded() -> None:
    wheel = parse_wheel_file("nvtx-1-py2.py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl")
    assert len(wheel.tags) == 4
    assert wheel.build == ()


def test_a_pure_wheel_is_for_any_platform() -> None:
    assert parse_wheel_file("flashinfer_cubin-0.6.4-py3-none-any.whl").any_platform
    assert not parse_wheel_file("mixed-1-py3-none-any.win_amd64.whl").any_platform


@pytest.mark.parametrize(
    ("name", "build", "label"),
    [
        ("torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64-cu130_sm120.whl", (), "cu130_sm120"),
        ("torch-2.9.1-2abc-cp312-cp312-manylinux_2_28_x86_64-null.whl", (2, "abc"), "null"),
        ("torch-2.9.1-2-cp312-cp312-manylinux_2_28_x86_64.whl", (2, ""), None),
        ("torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64-12.8.whl", (), "12.8"),
    ],
)
def test_a_variant_label_follows_the_platform(
    name: str, build: tuple[int, str] | tuple[()], label: str | None
) -> None:
    wheel = parse_wheel_file(name)
    assert (wheel.build, wheel.variant_label) == (build, label)
    assert wheel.tags == {Tag("cp312", "cp312", "manylinux_2_28_x86_64")}
    assert split_variant_label(name)[1] == label


_LABELS = st.from_regex(r"[0-9a-z_.]{1,12}\Z", fullmatch=True)


@given(st.none() | st.integers(0, 99), st.none() | _LABELS)
def test_a_build_tag_and_a_label_are_told_apart(build: int | None, label: str | None) -> None:
    parts = ["torch", "2.9.1", *([] if build is None else [str(build)])]
    parts += ["cp312", "cp312", "linux_x86_64", *([] if label is None else [label])]
    wheel = parse_wheel_file(f"{'-'.join(parts)}.whl")
    assert wheel.build == (() if build is None else (build, ""))
    assert wheel.variant_label == label


def test_old_names_escape_their_hyphens() -> None:
    wheel = parse_wheel_file("Flash_Attn-2.8.3_post1-py3-none-any.whl")
    assert (wheel.project, wheel.version) == ("flash-attn", Version("2.8.3.post1"))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "torch.whl",
        "torch-2.9.1.tar.gz",
        "torch-2.9.1-cp312-cp312.whl",
        "torch-2.9.1-1-2-cp312-cp312-any.whl",
        "torch-2.9.1-1-2-cp312-cp312-any-a-b.whl",
        "torch-2.9.1-x1-cp312-cp312-any-cu130.whl",
        "torch-2.9.1-cp312-cp312-any-CU130.whl",
        "torch-2.9.1-cp312-cp312-any-.whl",
        "torch-2.9.1-cp312-cp312-any-cu130+x.whl",
        "torch-2.9.1-1-3cp-cp312-any-cu130.whl",
        "torch-two-cp312-cp312-any.whl",
        "-2.9.1-cp312-cp312-any.whl",
        "torch-2.9.1-cp312-cp312-.whl",
        "torch-2.9.1-cp312-cp312-an y.whl",
        "torch-2.9.1-cp312-cp312-any\n.whl",
        "../torch-2.9.1-cp312-cp312-any.whl",
        "a" * 300 + "-1-py3-none-any.whl",
    ],
)
def test_a_name_that_is_no_wheels_is_refused(name: str) -> None:
    with pytest.raises(WheelError, match="expected"):
        parse_wheel_file(name)


def test_a_tag_set_that_would_expand_to_very_many_is_refused() -> None:
    parts = ".".join(f"p{i}" for i in range(11))
    name = f"x-1-{parts}-{parts}-{parts}.whl"
    assert len(name) < 255
    with pytest.raises(WheelError, match="at most 1024 tags"):
        parse_wheel_file(name)


@given(st.text(alphabet="ab1.-_+", max_size=40))
def test_any_name_raises_only_our_error_or_is_read(text: str) -> None:
    try:
        wheel = parse_wheel_file(f"{text}.whl")
    except WheelError:
        return
    assert wheel.filename == f"{text}.whl"
    assert wheel.tags
