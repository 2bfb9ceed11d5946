import pytest
from packaging.markers import Marker
from packaging.tags import Tag, cpython_tags, parse_tag

from cudalock.cuda import CudaVersion
from cudalock.host import Target, every_release, marker_environment, supported_tags


def _target(python: str = "3.12", platform: str = "manylinux_2_34_x86_64", **rest: bool) -> Target:
    return Target(python=python, platform=platform, **rest)  # type: ignore[arg-type]  # flags only.


def _accepts(target: Target, tag: str) -> bool:
    return not parse_tag(tag).isdisjoint(supported_tags(target))


def test_a_minor_python_stands_for_its_first_release_in_markers() -> None:
    environment = marker_environment(_target("3.12"))
    assert environment["python_version"] == "3.12"
    assert environment["python_full_version"] == "3.12.0"
    assert marker_environment(_target("3.12.4"))["python_full_version"] == "3.12.4"
    assert marker_environment(_target("3.12.4"))["python_version"] == "3.12"


@pytest.mark.parametrize(
    ("platform", "marker", "holds"),
    [
        ("manylinux_2_28_x86_64", "sys_platform == 'linux' and platform_machine == 'x86_64'", True),
        ("manylinux_2_28_aarch64", "platform_machine == 'aarch64'", True),
        ("manylinux_2_28_x86_64", "platform_system == 'Linux' and os_name == 'posix'", True),
        ("win_amd64", "sys_platform == 'win32' and platform_machine == 'AMD64'", True),
        ("win_amd64", "platform_system == 'Windows' and os_name == 'nt'", True),
        ("win_amd64", "sys_platform == 'linux'", False),
        ("manylinux_2_28_x86_64", "platform_python_implementation == 'CPython'", True),
        ("manylinux_2_28_x86_64", "implementation_name == 'pypy'", False),
        ("manylinux_2_28_x86_64", "python_version < '3.13'", True),
    ],
)
def test_markers_hold_on_the_target_and_not_on_the_host(
    platform: str, marker: str, holds: bool
) -> None:
    environment = marker_environment(_target(platform=platform))
    assert Marker(marker).evaluate(environment) is holds


def test_every_marker_variable_of_the_standard_has_a_value() -> None:
    assert set(marker_environment(_target())) == {
        "implementation_name",
        "implementation_version",
        "os_name",
        "platform_machine",
        "platform_python_implementation",
        "platform_release",
        "platform_system",
        "platform_version",
        "python_full_version",
        "python_version",
        "sys_platform",
    }


@pytest.mark.parametrize(
    ("tag", "accepted"),
    [
        ("cp312-cp312-manylinux_2_34_x86_64", True),
        ("cp312-cp312-manylinux_2_28_x86_64", True),
        ("cp312-cp312-manylinux_2_35_x86_64", False),
        ("cp310-abi3-manylinux2014_x86_64", True),
        ("cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp313-abi3-manylinux2014_x86_64", False),
        ("cp311-cp311-manylinux_2_28_x86_64", False),
        ("cp312-cp312-manylinux_2_28_aarch64", False),
        ("cp312-cp312-linux_x86_64", True),
        ("py3-none-any", True),
        ("py2.py3-none-manylinux1_x86_64", True),
        ("cp312-cp312-win_amd64", False),
        ("cp312-cp312t-manylinux_2_28_x86_64", False),
    ],
)
def test_a_wheel_tag_is_accepted_as_pip_would(tag: str, accepted: bool) -> None:
    assert _accepts(_target(), tag) is accepted


def test_a_free_threaded_python_takes_its_own_abi_and_no_abi3() -> None:
    target = _target("3.13", free_threaded=True)
    assert _accepts(target, "cp313-cp313t-manylinux_2_28_x86_64")
    assert not _accepts(target, "cp313-cp313-manylinux_2_28_x86_64")
    assert not _accepts(target, "cp310-abi3-manylinux_2_28_x86_64")
    assert _accepts(target, "py3-none-any")


def test_tags_come_best_first_and_each_once() -> None:
    tags = supported_tags(_target())
    assert tags[0] == Tag("cp312", "cp312", "manylinux_2_34_x86_64")
    assert tags[-1].platform == "any"
    assert len(set(tags)) == len(tags)
    windows = supported_tags(_target(platform="win_amd64"))
    assert windows[: len(list(cpython_tags((3, 12), ["cp312"], ["win_amd64"])))] == tuple(
        cpython_tags((3, 12), ["cp312"], ["win_amd64"])
    )


def test_the_patch_release_changes_no_tag() -> None:
    assert supported_tags(_target("3.12.4")) is supported_tags(_target("3.12"))


def test_a_target_says_which_system_and_machine_it_is() -> None:
    assert _target().is_linux
    assert _target().machine == "x86_64"
    assert _target(platform="manylinux_2_28_aarch64").machine == "aarch64"
    assert not _target(platform="win_amd64").is_linux


def test_every_release_that_the_driver_runs_is_listed_newest_first() -> None:
    target = Target(python="3.12", platform="win_amd64", driver_cuda=CudaVersion(major=12, minor=5))
    told = [str(release) for release in every_release(target)]
    assert told[:7] == ["12.5", "12.4", "12.3", "12.2", "12.1", "12.0", "11.8"]
    assert told[-1] == "11.0"


def test_the_release_of_the_driver_is_listed_where_no_table_has_its_toolkit() -> None:
    target = Target(python="3.12", platform="win_amd64", driver_cuda=CudaVersion(major=12, minor=7))
    assert [str(release) for release in every_release(target)][:3] == ["12.7", "12.6", "12.5"]


def test_of_a_driver_that_is_not_known_every_release_is_listed() -> None:
    target = Target(python="3.12", platform="win_amd64")
    assert every_release(target)[0].major == 13
