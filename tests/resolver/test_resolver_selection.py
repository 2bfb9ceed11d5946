"""Which candidate is better: by CUDA number, never by the text of a label."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from cudalock.cuda import CudaVersion
from cudalock.host import Target
from cudalock.resolver.selection import (
    candidate_key,
    release_distance,
    variant_key,
    virtual_key,
)
from cudalock.wheel import Knowledge, ListedFile, parse_wheel_file
from cudalock.wheel.evidence import Variant, conclude, observe_file

_TAGS = "cp312-cp312-manylinux_2_28_x86_64"
_TARGET = Target(python="3.12", platform="manylinux_2_28_x86_64", cuda=CudaVersion(13, 0))


def _listed(name: str, *, url: str = "https://wheels.test", yanked: bool = False) -> ListedFile:
    wheel = parse_wheel_file(name)
    return ListedFile(
        wheel=wheel, url=f"{url}/{name}", index="wheels", index_url=url, yanked=yanked
    )


def _key(file: ListedFile, rank: int = 0) -> tuple[object, ...]:
    variant = conclude(observe_file(file, Knowledge()), native=True)
    return candidate_key(file, variant, _TARGET, rank)


def test_candidates_are_ordered_from_the_worst_to_the_best() -> None:
    names = [
        f"x-1.0+cu130-{_TAGS}.whl",
        f"x-2.0.dev1+cu130-{_TAGS}.whl",
        f"x-2.0rc1+cu130-{_TAGS}.whl",
        f"x-2.0+whatever-{_TAGS}.whl",
        f"x-2.0+cu12-{_TAGS}.whl",
        f"x-2.0+cu13-{_TAGS}.whl",
        f"x-2.0+cu134-{_TAGS}.whl",
        f"x-2.0+cu131-{_TAGS}.whl",
        f"x-2.0+cu92-{_TAGS}.whl",
        f"x-2.0+cu126-{_TAGS}.whl",
        f"x-2.0+cu1210-{_TAGS}.whl",
        f"x-2.0+cu130-{_TAGS}.whl",
        f"x-2.0+cu130-9-{_TAGS}.whl",
        f"x-2.0+cu130-10-{_TAGS}.whl",
        f"x-2.0.post1-{_TAGS}.whl",
    ]
    keys = [_key(_listed(name)) for name in names]
    assert all(worse < better for worse, better in pairwise(keys))


def test_files_of_one_name_are_ordered_by_the_number_of_their_folder_then_by_a_settled_hash() -> (
    None
):
    name = f"x-2.0-{_TAGS}.whl"

    target = replace(_TARGET, cuda=CudaVersion(12, 10))

    def key(folder: str | None, *sha256: str) -> tuple[object, ...]:
        file = replace(_listed(name, url=f"https://w/{folder}"), folder=folder, sha256=sha256)
        variant = conclude(observe_file(file, Knowledge()), native=True)
        return candidate_key(file, variant, target, 0)

    one, two = "a" * 64, "b" * 64
    keys = [
        key(None, one),
        key("cu130", one),
        key("cu128", one),
        key("cu129", one),
        key("cu1210"),
        key("cu1210", one),
    ]
    assert keys == sorted(keys)
    assert key("cu129", one, two) < key("cu129", one)


def test_a_tag_counts_before_a_build_and_what_is_yanked_comes_last() -> None:
    plain, build = _listed(f"x-2.0-{_TAGS}.whl"), _listed(f"x-2.0-7-{_TAGS}.whl")
    assert _key(plain, rank=0) > _key(build, rank=1)
    yanked = _listed(f"x-2.0+cu130-{_TAGS}.whl", yanked=True)
    assert _key(yanked) < _key(_listed(f"x-2.0+cu126-{_TAGS}.whl"))
    assert _key(yanked) > _key(_listed(f"x-1.9-{_TAGS}.whl"))


_NAMES = st.builds(
    lambda version, label, build, url: (
        f"x-{version}{label}{build}-{_TAGS}.whl",
        url,
    ),
    st.sampled_from(["1.0", "1.0rc1", "2.0"]),
    st.sampled_from(["", "+cu130", "+cu13", "+cu126", "+x"]),
    st.sampled_from(["", "-1", "-1a"]),
    st.sampled_from(["https://one.test", "https://two.test"]),
)


@given(_NAMES, _NAMES)
def test_the_order_is_total(one: tuple[str, str], two: tuple[str, str]) -> None:
    first, second = _key(_listed(one[0], url=one[1])), _key(_listed(two[0], url=two[1]))
    assert (first < second) + (first > second) + (first == second) == 1
    assert (first == second) is (one == two)


def test_without_a_release_the_known_come_before_the_unknown() -> None:
    target = Target(python="3.12", platform="manylinux_2_28_x86_64", cpu=True)
    known = Variant(state="known", cuda=CudaVersion(13, 0), runtime=13)
    assert variant_key(known, target) > variant_key(Variant(state="unknown"), target)
    assert variant_key(Variant(state="none"), target) == variant_key(
        Variant(state="unknown"), target
    )


def test_a_release_is_near_by_being_the_same_then_older_then_newer() -> None:
    releases = ["13.1.0", "13.0.3", "12.9.4", "11.8", "13.2", "13.10", "14.0"]
    near = sorted(releases, key=lambda text: release_distance(Version(text), CudaVersion(13, 1)))
    assert near == releases


@pytest.mark.parametrize(
    "values", [["2.9", "2.11", "2.11.0.dev1", "2.10"], ["13.0", "12.8", "13.10", "13.9"]]
)
def test_values_of_a_virtual_package_are_ordered_as_versions(values: list[str]) -> None:
    assert sorted(values, key=virtual_key) == sorted(values, key=Version)
