"""What a page and the metadata are evidence of, and how observations become a variant."""

from dataclasses import replace

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.cuda import CudaVersion
from cudalock.errors import WheelError
from cudalock.wheel import CoreMetadata, Knowledge, ListedFile, parse_wheel_file
from cudalock.wheel.build_facts import Architectures
from cudalock.wheel.cuda_parts import CudaNumber, RuntimeLibrary, Toolkit, ToolkitPart
from cudalock.wheel.device_code import DeviceCode, Library, parse_image
from cudalock.wheel.evidence import (
    Variant,
    add_device_code,
    conclude,
    marker_holds,
    may_hold_code,
    observe_file,
    observe_metadata,
    observe_part,
)

_LINUX = {"sys_platform": "linux", "python_version": "3.12"}
_WINDOWS = {"sys_platform": "win32", "python_version": "3.12"}
_TAGS = "cp312-cp312-manylinux_2_28_x86_64"
_KNOWLEDGE = Knowledge(
    runtime_libraries=(
        RuntimeLibrary(project="cupy-cuda12x", major=12, source="its name"),
        RuntimeLibrary(project="nvidia-cuda-runtime-cu12", major=12, source="its name"),
        RuntimeLibrary(
            project="nvidia-cublas",
            major=13,
            versions=SpecifierSet(">=13.0,<14"),
            source="cuda-toolkit 13",
        ),
        RuntimeLibrary(
            project="nvidia-cuda-nvcc",
            major=13,
            versions=SpecifierSet(">=13.0,<14"),
            source="cuda-toolkit 13",
        ),
    ),
    toolkits=(Toolkit(project="cuda-toolkit", source="NVIDIA"),),
    toolkit_parts=(
        ToolkitPart(project="nvidia-cuda-nvcc", own_number=False, source="NVIDIA"),
        ToolkitPart(project="nvidia-cublas", own_number=True, source="NVIDIA"),
        ToolkitPart(project="nvidia-cuda-runtime-cu12", own_number=False, source="NVIDIA"),
    ),
    cuda_numbers=(CudaNumber(project="cuda-python", source="NVIDIA"),),
)


def _file(name: str, folder: str | None = None) -> ListedFile:
    return ListedFile(
        wheel=parse_wheel_file(name),
        url=f"https://wheels.test/{name}",
        index="wheels",
        index_url="https://wheels.test/",
        folder=folder,
    )


def _metadata(*requires: str) -> CoreMetadata:
    return CoreMetadata(
        project="x",
        version=Version("1"),
        requires_dist=tuple(Requirement(text) for text in requires),
    )


def _seen(name: str, folder: str | None = None) -> list[tuple[str, int | None, str]]:
    observations = observe_file(_file(name, folder), _KNOWLEDGE)
    return [(o.kind, o.major, str(o.cuda)) for o in observations]


def test_a_page_shows_label_folder_name_and_what_knowledge_says() -> None:
    assert _seen(f"torch-2.9.1+cu130-{_TAGS}.whl", "cu130") == [
        ("label", 13, "13.0"),
        ("path", 13, "13.0"),
    ]
    assert _seen(f"cupy_cuda12x-13.6.0-{_TAGS}.whl") == [
        ("knowledge", 12, "None"),
        ("name", 12, "None"),
    ]
    assert _seen(f"cuda_python-13.0.3-{_TAGS}.whl") == [("knowledge", 13, "None")]
    assert _seen(f"flash_attn-2.8.3+cu12torch2.8-{_TAGS}.whl") == [("label", 12, "None")]
    assert _seen(f"torch-2.9.1-{_TAGS}.whl", "cpu") == []


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        (f"x_cu12-1-{_TAGS}.whl", None),
        (f"x-1-{_TAGS}.whl", "cu128"),
        (f"x_cuda11x-1-{_TAGS}.whl", "cu118"),
    ],
)
def test_a_folder_or_the_suffix_of_a_name_never_decides(name: str, folder: str | None) -> None:
    observations = observe_file(_file(name, folder), Knowledge())
    assert observations
    variant = conclude(observations, native=True)
    assert (variant.state, variant.runtime, variant.cuda) == ("unknown", None, None)
    assert variant.decisive is None
    assert not variant.disagreement
    assert variant.evidence == observations


def test_a_wheel_of_pure_python_that_nothing_speaks_of_is_built_for_no_cuda() -> None:
    assert conclude((), native=False) == Variant(state="none")
    assert conclude((), native=True) == Variant(state="unknown")


def test_the_libraries_a_wheel_requires_are_the_strongest_evidence() -> None:
    metadata = _metadata("nvidia-cuda-runtime-cu12==12.6.77")
    observations = observe_file(_file(f"x-1+cu130-{_TAGS}.whl", "cu130"), _KNOWLEDGE)
    observations += observe_metadata(metadata, _KNOWLEDGE, _LINUX)
    variant = conclude(observations, native=True)
    assert [o.kind for o in variant.evidence] == ["requires-dist", "label", "path"]
    assert (variant.state, variant.runtime, variant.cuda) == ("known", 12, CudaVersion(12, 6))
    assert variant.disagreement


def test_the_release_comes_from_whoever_names_it_for_the_major_that_decides() -> None:
    label = observe_file(_file(f"x-1+cu128-{_TAGS}.whl"), _KNOWLEDGE)
    required = observe_metadata(_metadata("cupy-cuda12x"), _KNOWLEDGE, _LINUX)
    assert conclude(required + label, native=True).cuda == CudaVersion(12, 8)
    assert not conclude(required + label, native=True).disagreement
    assert conclude(required, native=True).cuda is None


@pytest.mark.parametrize(
    ("requires", "seen"),
    [
        ("cuda-toolkit[cudart]==13.0.2", [(13, "13.0")]),
        ("cuda-toolkit==13.0.*", [(13, "13.0")]),
        ("cuda-toolkit>=13.0", []),
        ("cuda-toolkit==13.*", []),
        ("cuda-toolkit==1!13.0", []),
        ("nvidia-cuda-nvcc==13.0.88", [(13, "13.0")]),
        ("nvidia-cuda-runtime-cu12", [(12, "None")]),
        ("nvidia-cublas==13.1.0.3.*", [(13, "None")]),
        ("nvidia-cublas>=13.0,<13.5", [(13, "None")]),
        # Nobody has said of which CUDA a release 14 would be.
        ("nvidia-cublas", []),
        ("nvidia-cublas==14.0.*", []),
        ("nvidia-cuda-nvcc>=13.0", []),
        ("numpy==1.26", []),
        ("nvidia-cuda-runtime-cu12; sys_platform == 'win32'", []),
        ("nvidia-cuda-runtime-cu12; extra == 'cuda'", []),
    ],
)
def test_a_requirement_is_evidence_where_all_it_admits_is_of_one_cuda(
    requires: str, seen: list[tuple[int, str]]
) -> None:
    observations = observe_metadata(_metadata(requires), _KNOWLEDGE, _LINUX)
    assert [(o.major, str(o.cuda)) for o in observations] == seen


def test_one_observation_a_release_is_shown_and_the_named_release_first() -> None:
    metadata = _metadata(
        "nvidia-cuda-runtime-cu12", "cupy-cuda12x", "cuda-toolkit==12.8.1", "cuda-toolkit==12.8.0"
    )
    observations = observe_metadata(metadata, _KNOWLEDGE, _LINUX)
    assert [str(o.cuda) for o in observations] == ["12.8", "None"]
    assert observations[0].text == "Requires-Dist cuda-toolkit==12.8.0"


def test_what_is_required_on_another_system_says_nothing_here() -> None:
    metadata = _metadata("nvidia-cuda-runtime-cu12; sys_platform == 'linux'")
    assert observe_metadata(metadata, _KNOWLEDGE, _LINUX)
    assert observe_metadata(metadata, _KNOWLEDGE, _WINDOWS) == ()


def test_a_part_is_of_the_newest_of_its_releases_that_is_not_above_the_target() -> None:
    releases = [CudaVersion(13, 0), CudaVersion(13, 1), CudaVersion(13, 3)]
    assert observe_part("x", releases, "s", CudaVersion(13, 2)).cuda == CudaVersion(13, 1)
    assert observe_part("x", releases, "s", CudaVersion(12, 9)).cuda == CudaVersion(13, 3)
    assert observe_part("x", releases, "s", None).cuda == CudaVersion(13, 3)


def test_the_unread_part_of_a_label_is_shown_and_decides_nothing() -> None:
    observations = observe_file(_file(f"x-1+cu130.fastpath-{_TAGS}.whl"), Knowledge())
    variant = conclude(observations, native=True)
    assert (variant.state, variant.cuda) == ("known", CudaVersion(13, 0))
    assert [o.text for o in variant.evidence if not o.decides] == [
        "label +cu130.fastpath, of which `fastpath` is unread"
    ]
    assert not variant.disagreement
    [alone] = observe_file(_file(f"x-1+fastpath-{_TAGS}.whl"), Knowledge())
    assert conclude((alone,), native=True).state == "unknown"


def test_a_wheel_may_hold_code_by_its_tags_or_by_a_label_nobody_understands() -> None:
    assert may_hold_code(_file(f"x-1-{_TAGS}.whl"))
    assert may_hold_code(_file("x-1+fastpath-py3-none-any.whl"))
    for name in ("x-1", "x-1+cpu", "x-1+cu130.fastpath", "x-1+g1a2b3c4"):
        assert not may_hold_code(_file(f"{name}-py3-none-any.whl"))


def test_device_code_is_taken_from_knowledge_before_the_label() -> None:
    code = DeviceCode(libraries=(Library(name="*", images=(parse_image("sm_80"),)),), source="s")
    knowledge = Knowledge(
        architectures=(
            Architectures(project="x", versions=SpecifierSet("==1"), code=code, source="s"),
        )
    )

    def held(name: str) -> tuple[list[str], list[str]]:
        file = _file(f"{name}-{_TAGS}.whl")
        variant = conclude(observe_file(file, knowledge), native=True)
        variant = add_device_code(variant, file, knowledge, machine="x86_64")
        images = variant.device_code.images if variant.device_code is not None else ()
        return [str(image) for image in images], [
            f"{o.kind}: {o.text} ({o.source})" for o in variant.evidence if not o.decides
        ]

    assert held("x-1+cu128sm120") == (["sm_80"], ["knowledge: holds sm_80 (s)"])
    assert held("x-2+cu128sm120") == (
        ["sm_120"],
        ["label: holds sm_120 (label +cu128sm120)"],
    )
    assert held("x-2+cu128") == ([], [])


def test_markers_hold_with_and_without_an_extra() -> None:
    plain, extra = Requirement("x"), Requirement("x; extra == 'a'")
    assert marker_holds(plain, _LINUX)
    assert not marker_holds(plain, _LINUX, "a")
    assert not marker_holds(extra, _LINUX)
    assert marker_holds(extra, _LINUX, "a")
    assert not marker_holds(extra, _LINUX, "b")


@pytest.mark.parametrize("marker", ["sys_platform ~= '1.0'", "'x' in extras"])
def test_a_marker_that_means_nothing_is_our_error(marker: str) -> None:
    with pytest.raises(WheelError, match="expected a marker that can be evaluated"):
        marker_holds(Requirement(f"x; {marker}"), _LINUX)


def test_a_listed_file_answers_with_its_name_and_compares_without_metadata() -> None:
    file = _file(f"x-1-{_TAGS}.whl")
    assert file.filename == f"x-1-{_TAGS}.whl"
    assert replace(file, metadata=_metadata("y")) == file
