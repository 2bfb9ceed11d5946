"""What libraries say of the CUDA they load: names that tell, names that do not, and builds of one library."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from contents_builder import make_contents
from cudalock.wheel.byte_evidence import (
    builds_for,
    builds_of_libraries,
    cuda_major_of,
    installed_libraries,
    names_a_torch,
    observe_bytes,
    speaks_of_cuda,
    split_soname,
)
from cudalock.wheel.cuda_parts import SharedLibrary
from cudalock.wheel.evidence import Observation
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.wheel_facts import WheelFacts

_NUMBERS: dict[str, tuple[tuple[int, int], ...]] = {
    "libcudart": (),
    "libnvrtc-builtins": (),
    "libnvjpeg": (),
    "libcufft": ((10, 11), (11, 12), (12, 13)),
    "libcusparse": ((11, 11),),
    "libcufile": ((0, 12),),
    "libnccl": (),
}
_FOLLOWING = {"libcudart", "libnvrtc-builtins", "libnvjpeg"}
_KNOWLEDGE = Knowledge(
    shared_libraries=tuple(
        SharedLibrary(
            stem=stem,
            providers=(stem.removeprefix("lib"),),
            follows_cuda=stem in _FOLLOWING,
            numbers=numbers,
            source="x",
        )
        for stem, numbers in _NUMBERS.items()
    )
)


@pytest.mark.parametrize(
    ("name", "stem", "number"),
    [
        ("libcudart.so.13", "libcudart", 13),
        ("libcudart.so.11.0", "libcudart", 11),
        ("libcudart.so", "libcudart", None),
        # A repair tool marks its copies in two ways.
        ("libcudart.3eda8113.so.13", "libcudart", 13),
        ("libnvjpeg-1a359ba7.so.13.0.1.86", "libnvjpeg", 13),
        ("libnvrtc-builtins-3eda8113.so.13.0", "libnvrtc-builtins", 13),
        ("libnvrtc-builtins.so.13.0", "libnvrtc-builtins", 13),
        ("libcublasLt.so.12", "libcublasLt", 12),
        ("libx.so.1234567", "libx", None),
        ("_C.cpython-312-x86_64-linux-gnu.so", "_C.cpython-312-x86_64-linux-gnu.so", None),
        ("cudart64_12.dll", "cudart64_12.dll", None),
        ("libcudart.so.13\n", "libcudart.so.13\n", None),
        ("", "", None),
    ],
)
def test_a_name_is_taken_apart(name: str, stem: str, number: int | None) -> None:
    assert split_soname(name) == (stem, number)


@pytest.mark.parametrize(
    ("name", "major"),
    [
        ("libcudart.so.13", 13),
        ("libcudart.so.14", 14),
        ("libcudart.so.11.0", 11),
        ("libcudart.so", None),
        ("libnvjpeg-1a359ba7.so.13.0.1.86", 13),
        # Numbers of their own: 12 is CUDA 13, is any, is unheard of.
        ("libcufft.so.12", 13),
        ("libcufft.so.11", 12),
        ("libcufft.so.99", None),
        ("libcufft.so", None),
        ("libcusparse.so.12", None),
        ("libcusparse.so.11", 11),
        ("libcufile.so.0", 12),
        ("libnccl.so.2", None),
        ("libcuda.so.1", None),
        ("libssl.so.12", None),
    ],
)
def test_a_number_is_the_cuda_major_only_where_it_is_known_to_be(
    name: str, major: int | None
) -> None:
    assert cuda_major_of(name, _KNOWLEDGE) == major


def _observe(
    libraries: Sequence[Mapping[str, Any]], wanted: int | None = 13
) -> tuple[Observation, ...]:
    facts = WheelFacts(filename="left.whl", contents=make_contents({"libraries": libraries}))
    return observe_bytes(facts, _KNOWLEDGE, wanted=wanted)


def _told(libraries: Sequence[Mapping[str, Any]], wanted: int | None = 13) -> int | None:
    (seen,) = _observe(libraries, wanted)
    return seen.major


def _library(path: str, *needed: str, **more: object) -> dict[str, Any]:
    return {"path": path, "needed": needed, **more}


def test_what_a_library_needs_tells_its_runtime_and_where() -> None:
    (seen,) = _observe([_library("left/_C.so", "libc.so.6", "libcudart.so.13", "libcufft.so.12")])
    assert (seen.kind, seen.major, seen.cuda) == ("needed", 13, None)
    # The library that knowledge names first is shown.
    assert (seen.text, seen.source) == ("NEEDED libcudart.so.13", "left/_C.so in left.whl")
    assert seen.decides


def test_without_the_runtime_another_library_tells() -> None:
    (seen,) = _observe([_library("left/_C.so", "libcufft.so.11", "libcusparse.so.12")])
    assert (seen.major, seen.text) == (12, "NEEDED libcufft.so.11")


@pytest.mark.parametrize(
    "libraries",
    [
        [],
        [_library("left/_C.so")],
        # Linked statically, or by names whose number tells nothing.
        [_library("left/_C.so", "libcusparse.so.12", "libnccl.so.2", "libcuda.so.1")],
        # Libraries of CUDA that a wheel brings along.
        [_library("left/libnvjpeg.so.12", "libcudart.so.12", soname="libnvjpeg.so.12")],
        [_library("left.libs/libnvjpeg-1a359ba7.so.12", "libcudart.so.12")],
    ],
)
def test_what_tells_nothing_is_not_guessed(libraries: Sequence[Mapping[str, Any]]) -> None:
    assert _observe(libraries) == ()


def test_a_copy_of_the_runtime_tells_what_the_wheel_was_built_with() -> None:
    grafted = [
        _library("left/_C.so", "libcudart.so.13"),
        _library("left/image.so", "libcudart.3eda8113.so.13"),
        _library("left.libs/libcudart.3eda8113.so.13"),
    ]
    assert _told(grafted) == 13
    assert _told(grafted[1:]) == 13


def test_libraries_of_two_majors_leave_it_open_and_it_is_said() -> None:
    mixed = [_library("left/a.so", "libcudart.so.12"), _library("left/b.so", "libcudart.so.13")]
    (seen,) = _observe(mixed)
    assert (seen.major, seen.decides) == (None, False)
    assert seen.text == (
        "libraries of several CUDA majors: NEEDED libcudart.so.12 (left/a.so), "
        "NEEDED libcudart.so.13 (left/b.so)"
    )
    assert _told([_library("left/a.so", "libcudart.so.12", "libcudart.so.13")]) is None
    # Others that agree with each other do not settle it.
    assert _told([*mixed, _library("left/c.so", "libcudart.so.13")]) is None


_BUILDS = [
    _library("left/lib_cuda118.so", "libcudart.so.11.0"),
    _library("left/lib_cuda126.so", "libcudart.so.12"),
    _library("left/lib_cuda130.so", "libcudart.so.13"),
    _library("left/lib_cpu.so"),
]


@pytest.mark.parametrize(("wanted", "major"), [(11, 11), (12, 12), (13, 13), (14, 13), (None, 13)])
def test_of_builds_for_several_majors_the_target_s_counts(wanted: int | None, major: int) -> None:
    (seen,) = _observe(_BUILDS, wanted)
    assert seen.major == major
    assert seen.text == "carries builds for CUDA 11, 12, 13"


def test_builds_and_a_library_beside_them_leave_what_both_load() -> None:
    assert _told([*_BUILDS, _library("left/more.so", "libcudart.so.12")]) == 12
    assert _told([*_BUILDS, _library("left/more.so", "libcudart.so.14")]) is None


@pytest.mark.parametrize(
    ("paths", "groups"),
    [
        (["a/x_cuda118.so", "a/x_cuda130.so"], 1),
        (["a/x_cuda11.8.so", "a/x_cuda13.0.so"], 1),
        (["a/x_cu12.so", "a/x_cu13.so"], 1),
        (["a/sm90/ops.so", "a/sm100/ops.so"], 1),
        (["a/x_sm_90a.so", "a/x_sm_120a.so"], 1),
        (["a/x_torch29-cuda.so", "a/x_torch210-cuda.so"], 1),
        (["a/x_torch2.9.so", "a/x_torch2.10.so"], 1),
        (["a/x_cuda118.so", "a/y_cuda130.so"], 2),
        (["a/x_cuda118.so", "a/x.so"], 2),
        (["a/ops1.so", "a/ops2.so"], 2),
        (["a/wasm32.so", "a/wasm64.so"], 2),
        (["a/_fa2_C.so", "a/_fa3_C.so"], 2),
    ],
)
def test_paths_that_differ_in_such_a_number_alone_are_builds_of_one(
    paths: Sequence[str], groups: int
) -> None:
    found = builds_of_libraries(make_contents({"libraries": [_library(p) for p in paths]}))
    assert len(found) == groups
    assert sorted(library.path for group in found for library in group) == sorted(paths)


def test_copies_under_other_names_are_left_out() -> None:
    contents = make_contents({"libraries": [_library("a/x.so"), _library("a/x.so.0")]})
    second = contents.libraries[1]
    object.__setattr__(second, "copy_of", "a/x.so")
    assert [[lib.path for lib in group] for group in builds_of_libraries(contents)] == [["a/x.so"]]


def test_of_builds_those_of_a_major_are_loaded_else_those_that_do_not_tell() -> None:
    def loaded(libraries: Sequence[Mapping[str, Any]], major: int | None) -> list[str]:
        (group,) = builds_of_libraries(make_contents({"libraries": libraries}))
        return [library.path for library in builds_for(group, major, _KNOWLEDGE)]

    builds = [
        _library("x_cu12.so", "libcudart.so.12"),
        _library("x_cu13.so", "libcudart.so.13"),
        _library("x_cu14.so"),
    ]
    assert loaded(builds, 12) == ["x_cu12.so"]
    assert loaded(builds, 14) == ["x_cu14.so"]
    assert loaded(builds, None) == ["x_cu14.so"]
    assert loaded(builds[:2], 14) == ["x_cu12.so", "x_cu13.so"]


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("left/addon_torch29-cpu.so", True),
        ("left/x_torch2.9.so", True),
        ("left/x_TORCH_2_cuda.so", True),
        ("torch/lib/libtorch.so", False),
        ("left/x_cuda130.so", False),
        ("left/mytorch29.so", False),
    ],
)
def test_a_library_named_after_a_torch_is_told(path: str, named: bool) -> None:
    assert names_a_torch(path) is named


def test_native_files_are_told_by_where_they_are_installed() -> None:
    contents = make_contents(
        {
            "libraries": [
                _library("nvidia/x/lib/libx.so.2", bytes=7),
                _library("left-1.0.data/purelib/left/a.so"),
                _library("left-1.0.data/platlib/left/b.so"),
                # Not among the modules: nothing to be overwritten there.
                _library("left-1.0.data/scripts/c.so"),
                _library("left-1.0.data/data/lib/d.so"),
            ]
        }
    )
    assert dict(installed_libraries(contents)) == {
        "nvidia/x/lib/libx.so.2": (7, 100),
        "left/a.so": (1, 100),
        "left/b.so": (1, 100),
    }


@pytest.mark.parametrize(
    ("table", "speaks"),
    [
        ({}, False),
        ({"libraries": [_library("a.so", "libc.so.6")]}, False),
        ({"libraries": [_library("a.so", "libcudart.so.13")]}, True),
        # Its number tells no major, and yet it is CUDA's.
        ({"libraries": [_library("a.so", "libnccl.so.2")]}, True),
        ({"libraries": [_library("a.so", code=["sm_120"])]}, True),
        ({"libraries": [_library("a.so", bare=["90"])]}, True),
        ({"libraries": [_library("a.so", torch=["torch_x"])]}, True),
        ({"files": {"sm_100a": 1}}, True),
    ],
)
def test_what_has_to_do_with_cuda_or_torch_is_told(table: Mapping[str, Any], speaks: bool) -> None:
    assert speaks_of_cuda(make_contents(table), _KNOWLEDGE) is speaks
