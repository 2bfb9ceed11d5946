"""File names, metadata and the quick look at tags: bounded, typed, and right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import Tag

from cudalock.cuda import CudaVersion
from cudalock.errors import CudalockError, WheelError
from cudalock.wheel import (
    CoreMetadata,
    Knowledge,
    ListedFile,
    parse_core_metadata,
    parse_wheel_file,
)
from cudalock.wheel.evidence import conclude, observe_file, observe_metadata
from cudalock.wheel.knowledge import RuntimeLibrary, Toolkit, ToolkitPart
from cudalock.wheel.names import parse_project_name, parse_requirement, parse_version
from cudalock.wheel.tag_filter import TagFilter

_KNOWLEDGE = Knowledge(
    toolkits=(Toolkit(project="kit", source="s"),),
    toolkit_parts=(
        ToolkitPart(project="kit-runtime", own_number=False, source="s"),
        ToolkitPart(project="kit-blas", own_number=True, source="s"),
    ),
    runtime_libraries=(RuntimeLibrary(project="kit-nccl-cu12", major=12, source="s"),),
)
_LINUX = {"sys_platform": "linux", "platform_system": "Linux"}


def _file(filename: str, folder: str | None = None) -> ListedFile:
    wheel = parse_wheel_file(filename)
    return ListedFile(
        wheel=wheel, url=f"https://x.test/{filename}", index="i", index_url="https://x.test",
        folder=folder,
    )  # fmt: skip


def test_a_file_name_says_project_version_build_and_tags() -> None:
    wheel = parse_wheel_file("Left_Right-2.9.1+cu130-3-cp312-cp312-manylinux_2_17_x86_64.any.whl")
    assert (wheel.project, str(wheel.version)) == ("left-right", "2.9.1+cu130")
    assert wheel.build == (3, "")
    assert Tag("cp312", "cp312", "any") in wheel.tags
    assert not wheel.any_platform


@pytest.mark.parametrize(
    "name",
    [
        "left-1.0.tar.gz",
        "left-1.0-py3-none.whl",
        "left-x-py3-none-any.whl",
        "left-1.0-b-py3-none-any.whl",
        "t\u043erch-1.0-py3-none-any.whl",
        "torch-2.11.0-cp311-cp311-a\x1b[31m.whl",
        f"left-{'1' * 200}-py3-none-any.whl",
        f"{'l' * 300}-1.0-py3-none-any.whl",
    ],
)
def test_a_name_that_is_no_wheels_is_refused(name: str) -> None:
    with pytest.raises(WheelError):
        parse_wheel_file(name)


@given(st.text(max_size=300))
def test_any_text_is_a_name_or_a_typed_error(text: str) -> None:
    for parse in (parse_wheel_file, parse_project_name, parse_version, parse_requirement):
        try:
            parse(text)
        except CudalockError as error:
            assert "\x1b" not in str(error)


def test_metadata_is_read_up_to_the_first_empty_line() -> None:
    data = (
        b"Metadata-Version: 2.1\r\nName: Left\r\nVersion: 1.0\r\nRequires-Python: >=3.9\r\n"
        b"Requires-Dist: right (>=1) ;\r\n  python_version > '3'\r\nProvides-Extra: Cu_13\r\n"
        b"\r\nRequires-Dist: description\r\n"
    )
    metadata = parse_core_metadata(data)
    assert [r.name for r in metadata.requires_dist] == ["right"]
    assert metadata.provides_extra == frozenset({"cu-13"})
    assert str(metadata.requires_python) == ">=3.9"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Name: left\n",
        b"Name: left\nVersion: 1.0\nVersion: 2.0\n",
        b"Name: left\nVersion: 1.0\nRequires-Dist: right ==\n",
        b"Name: left\nVersion: 1.0\nRequires-Python: three\n",
        b"  folded: first\n",
        b"no colon\n",
        b"\xff\xfe",
        b"Name: left\nVersion: 1.0\nX: " + b"x" * (4 * 1024 * 1024),
        b"Name: left\nVersion: 1.0\n" + b"X: y\n" * 20_001,
    ],
)
def test_metadata_that_cannot_be_read_is_an_error_that_names_the_place(data: bytes) -> None:
    with pytest.raises(WheelError) as caught:
        parse_core_metadata(data, where="https://x.test/left.whl")
    assert caught.value.where == "https://x.test/left.whl"


@given(st.binary(max_size=400))
def test_any_bytes_are_metadata_or_a_typed_error(data: bytes) -> None:
    try:
        parse_core_metadata(data)
    except WheelError:
        pass


def test_a_requirement_on_a_runtime_library_outranks_the_label() -> None:
    file = _file("left-1.0+cu128-cp312-cp312-linux_x86_64.whl")
    metadata = CoreMetadata(
        project="left",
        version=file.wheel.version,
        requires_dist=(parse_requirement("kit[runtime]==13.0.2"),),
    )
    seen = observe_file(file, _KNOWLEDGE) + observe_metadata(metadata, _KNOWLEDGE, _LINUX)
    variant = conclude(seen, native=True)
    assert variant.cuda == CudaVersion(major=13, minor=0)
    assert variant.disagreement


def test_a_requirement_that_does_not_apply_here_says_nothing() -> None:
    metadata = CoreMetadata(
        project="left",
        version=parse_version("1.0"),
        requires_dist=(parse_requirement("kit-nccl-cu12==2 ; platform_system == 'Windows'"),),
    )
    assert observe_metadata(metadata, _KNOWLEDGE, _LINUX) == ()


def test_a_parts_own_number_is_no_release_and_its_major_still_counts() -> None:
    metadata = CoreMetadata(
        project="left",
        version=parse_version("1.0"),
        requires_dist=(
            parse_requirement("kit-blas==13.1.0.3"),
            parse_requirement("kit-nccl-cu12==2.28.9"),
        ),
    )
    (seen,) = observe_metadata(metadata, _KNOWLEDGE, _LINUX)
    assert (seen.major, seen.cuda) == (12, None)


def test_a_path_or_a_name_alone_never_decides() -> None:
    file = _file("left_cu12-1.0-cp312-cp312-linux_x86_64.whl", folder="cu130")
    variant = conclude(observe_file(file, _KNOWLEDGE), native=True)
    assert variant.state == "unknown"
    assert {observation.kind for observation in variant.evidence} == {"path", "name"}
    assert conclude((), native=False).state == "none"


@given(st.lists(st.sampled_from(["py3", "cp312", "CP312", "none", "any", "abi3", "x"]), max_size=9))
def test_the_quick_look_never_turns_away_a_wheel_that_fits(parts: list[str]) -> None:
    tags = [Tag("cp312", "cp312", "linux_x86_64"), Tag("py3", "none", "any")]
    cut = [".".join(parts[n::3]) or "py3" for n in range(3)]
    name = f"left-1.0-{cut[0]}-{cut[1]}-{cut[2]}.whl"
    fits = any(tag in tags for tag in parse_wheel_file(name).tags)
    assert TagFilter(tags).admits(name) or not fits


def test_the_quick_look_turns_away_what_cannot_fit_and_leaves_the_rest_to_the_reader() -> None:
    look = TagFilter([Tag("cp312", "cp312", "manylinux_2_28_x86_64"), Tag("py3", "none", "any")])
    assert look.admits("left-1.0-py2.py3-none-any.whl")
    assert look.admits("no-wheel.txt")
    assert not look.admits("left-1.0-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert not look.admits("left-1.0-cp312-cp312-win_amd64.whl")
    assert look == TagFilter(reversed([*look._tags]))
