"""The quick look at tags turns away nothing that the full reading would keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import Tag

from cudalock.wheel import parse_wheel_file
from cudalock.wheel.tag_filter import TagFilter

_ACCEPTED = (
    Tag("cp312", "cp312", "manylinux_2_28_x86_64"),
    Tag("cp310", "abi3", "manylinux_2_17_x86_64"),
    Tag("py3", "none", "any"),
)
_PARTS = st.lists(
    st.sampled_from(["cp312", "CP312", "cp310", "py3", "abi3", "none", "any"]),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize(
    ("name", "admitted"),
    [
        ("torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl", True),
        ("torch-2.9.1-CP312-cp312-Manylinux_2_28_x86_64.WHL", True),
        ("torch-2.9.1-cp311.cp312-cp312-manylinux_2_28_x86_64.win_amd64.whl", True),
        ("torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl", False),
        ("torch-2.9.1-cp312-cp312-win_amd64.whl", False),
        ("torch-2.9.1-cp312-cp312t-manylinux_2_28_x86_64.whl", False),
        ("torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64-cu130_sm120.whl", True),
        ("torch-2.9.1-1-cp312-cp312-manylinux_2_28_x86_64-null.whl", True),
        ("torch-2.9.1-1-cp312-cp312-manylinux_2_28_x86_64.whl", True),
        ("torch-2.9.1-cp312-cp312-win_amd64-cu130_sm120.whl", False),
        ("torch-2.9.1-1-cp312-cp312-win_amd64-null.whl", False),
        ("no-wheel.tar.gz", True),
        ("short.whl", True),
    ],
)
def test_a_name_is_admitted_by_each_part_of_its_tags(name: str, *, admitted: bool) -> None:
    assert TagFilter(_ACCEPTED).admits(name) is admitted


def test_filters_of_the_same_tags_are_equal() -> None:
    assert TagFilter(_ACCEPTED) == TagFilter(reversed(_ACCEPTED))
    assert hash(TagFilter(_ACCEPTED)) == hash(TagFilter(reversed(_ACCEPTED)))
    assert TagFilter(_ACCEPTED) != TagFilter(_ACCEPTED[:1])
    assert TagFilter(_ACCEPTED) != _ACCEPTED


@given(
    _PARTS,
    _PARTS,
    st.sampled_from(["any", "manylinux_2_28_x86_64", "win_amd64"]),
    st.sampled_from(["", "-1"]),
    st.sampled_from(["", "-null", "-cu130", "-any"]),
)
def test_a_wheel_that_fits_is_never_turned_away(
    interpreters: list[str], abis: list[str], platform: str, build: str, label: str
) -> None:
    name = f"x-1{build}-{'.'.join(interpreters)}-{'.'.join(abis)}-{platform}{label}.whl"
    fits = not parse_wheel_file(name).tags.isdisjoint(_ACCEPTED)
    assert TagFilter(_ACCEPTED).admits(name) >= fits
