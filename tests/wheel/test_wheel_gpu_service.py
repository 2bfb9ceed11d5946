"""What a wheel means for a GPU: by its bytes, by claims, and by both; each predicate both ways."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from contents_builder import make_contents
from cudalock.cuda import CudaVersion, parse_compute_capability
from cudalock.wheel.cuda_parts import RuntimeLibrary, SharedLibrary
from cudalock.wheel.device_code import DeviceCode, Library, parse_image
from cudalock.wheel.evidence import Variant
from cudalock.wheel.gpu_service import GpuService, gpu_service
from cudalock.wheel.knowledge import Knowledge, ProjectMark
from cudalock.wheel.wheel_facts import WheelFacts

_SHARED = (
    SharedLibrary(stem="libcudart", providers=("runtime",), follows_cuda=True, source="x"),
    SharedLibrary(stem="libcupti", providers=("cupti",), follows_cuda=True, source="x"),
)
_KNOWLEDGE = Knowledge(
    shared_libraries=_SHARED,
    runtime_libraries=(RuntimeLibrary(project="cupti", major=13, source="x"),),
    marks=(
        ProjectMark(kind="compiles", project="jit", value="", source="x"),
        ProjectMark(kind="optional-kernels", project="extra", value="", source="x"),
    ),
)
_DRIVER = CudaVersion(13, 1)


def _library(path: str, *code: str, **more: object) -> dict[str, Any]:
    return {"path": path, "code": code, **more}


def _claim(as_data: bool = False, **libraries: Sequence[str]) -> DeviceCode:
    return DeviceCode(
        libraries=tuple(
            Library(name="*" if name == "all" else name, images=tuple(map(parse_image, images)))
            for name, images in libraries.items()
        ),
        source="a list",
        as_data=as_data,
    )


def _service(
    libraries: Sequence[Mapping[str, Any]] | None,
    sm: str = "12.0",
    *,
    claim: DeviceCode | None = None,
    project: str = "kernel",
    driver: CudaVersion | None = _DRIVER,
    runtime: int | None = None,
    **table: object,
) -> GpuService | None:
    facts = None
    if libraries is not None:
        contents = make_contents({"libraries": libraries, **table})
        facts = WheelFacts(filename="left.whl", contents=contents)
    return gpu_service(
        Variant(state="known", device_code=claim, facts=facts, runtime=runtime),
        parse_compute_capability(sm),
        driver_cuda=driver,
        knowledge=_KNOWLEDGE,
        project=project,
    )


def _served(*arguments: Any, **more: Any) -> dict[str, str]:  # noqa: ANN401 - those of _service
    service = _service(*arguments, **more)
    return {} if service is None else {each.name: each.served for each in service.libraries}


@pytest.mark.parametrize(
    ("code", "sm", "served"),
    [
        ("sm_120", "12.0", "yes"),
        ("sm_120", "12.1", "yes"),
        ("sm_121", "12.0", "none"),
        ("sm_120a", "12.0", "yes"),
        ("sm_120a", "12.1", "none"),
        ("sm_120f", "12.1", "yes"),
        ("sm_100f", "10.3", "yes"),
        ("sm_100f", "12.0", "none"),
        ("sm_80", "8.6", "yes"),
        ("sm_80", "8.9", "yes"),
        ("sm_80", "9.0", "none"),
        ("compute_80@9.0", "12.0", "yes"),
        ("compute_120@9.2", "12.0", "none"),
        ("compute_120a@9.0", "12.1", "none"),
    ],
)
def test_one_library_and_one_device(code: str, sm: str, served: str) -> None:
    assert _served([_library("a.so", code)], sm) == {"a.so": served}


def test_ptx_without_a_known_driver_is_not_known_to_serve() -> None:
    assert _served([_library("a.so", "compute_80@9.0")], driver=None) == {"a.so": "unknown"}


def test_libraries_are_judged_one_by_one_and_counted() -> None:
    service = _service(
        [
            _library("flash.so", "sm_80 sm_90a", "sm_90a"),
            _library("common.so", "sm_120a", "sm_120a"),
            _library("mixed.so", "sm_120a", "sm_90a"),
            _library("plain.so"),
        ]
    )
    assert service is not None
    told = {each.name: (each.served, each.counted) for each in service.libraries}
    assert told == {
        "flash.so": ("none", "0 of 2"),
        "common.so": ("yes", "2 of 2"),
        "mixed.so": ("part", "1 of 2"),
    }
    assert (service.read, service.as_data, service.nothing, service.serves) == (
        True,
        False,
        False,
        True,
    )
    assert [each.name for each in service.unserved] == ["flash.so"]
    assert service.unserved[0].holds == "sm_80 and sm_90a"
    assert service.holds == "sm_80, sm_90a and sm_120a"
    assert service.source == "read from left.whl"


def test_where_no_library_serves_it_is_nothing() -> None:
    service = _service([_library("a.so", "sm_90a"), _library("b.so", "sm_80")])
    assert service is not None
    assert service.nothing
    assert not service.serves


def test_without_device_code_there_is_nothing_to_say() -> None:
    assert _service([_library("a.so")]) is None
    assert _service([]) is None
    assert _service(None) is None
    assert _service(None, claim=_claim()) is None


def test_a_library_read_in_part_proves_nothing_missing() -> None:
    head = _library("a.so", "sm_90", seen="head")
    assert _served([head], tier="T2") == {"a.so": "unknown"}
    assert _served([_library("a.so", seen="head")], tier="T2") == {"a.so": "unknown"}
    assert _served([_library("a.so", "sm_120", seen="part")], tier="T3") == {"a.so": "yes"}
    unknown = _service([head], tier="T2")
    assert unknown is not None
    assert [each.name for each in unknown.undecided] == ["a.so"]
    assert not unknown.nothing


# Builds of one library


def test_any_build_for_another_gpu_may_be_the_one_that_is_loaded() -> None:
    builds = [_library("sm90/x.so", "sm_90a"), _library("sm100/x.so", "sm_100a sm_120a")]
    assert _served(builds) == {"sm100/x.so": "yes"}
    assert _served(builds[:1]) == {"sm90/x.so": "none"}
    # One that was not seen to its end may be the one.
    unread = [builds[0], _library("sm120/x.so", seen="head")]
    assert _served(unread, tier="T4") == {"sm120/x.so": "unknown"}


def test_of_builds_for_several_cuda_majors_only_the_set_s_counts() -> None:
    builds = [
        _library("x_cu12.so", "sm_90", needed=["libcudart.so.12"]),
        _library("x_cu13.so", "sm_120", needed=["libcudart.so.13"]),
    ]
    assert _served(builds, runtime=12) == {"x_cu12.so": "none"}
    assert _served(builds, runtime=13) == {"x_cu13.so": "yes"}


# Libraries that say nothing of their wheel


@pytest.mark.parametrize("name", ["libcupti.so.13", "libcupti-3eda8113.so.13"])
def test_a_library_of_cuda_that_is_brought_along_is_left_out(name: str) -> None:
    profiler = _library(f"left/{name}", "sm_50 sm_90")
    assert _service([profiler]) is None
    assert _served([profiler, _library("a.so", "sm_120")]) == {"a.so": "yes"}
    # By its soname too, whatever the file is called.
    assert _service([_library("left/p.so", "sm_50", soname="libcupti.so.13")]) is None


def test_cuda_s_own_projects_are_not_judged() -> None:
    assert _service([_library("lib/libcupti.so.13", "sm_50")], project="cupti") is None
    assert _service(None, claim=_claim(all=["sm_50"]), project="cupti") is None


def test_what_compiles_on_the_machine_needs_none_of_what_it_carries() -> None:
    assert _service([_library("a.so", "sm_90")], project="jit") is None
    assert _served([_library("a.so", "sm_120")], project="jit") == {"a.so": "yes"}
    assert _service([], project="jit") is None


def test_kernels_that_are_passed_over_are_as_data() -> None:
    service = _service([_library("a.so", "sm_90a")], project="extra")
    assert service is not None
    assert (service.as_data, service.nothing) == (True, True)


def test_bare_cubins_are_one_unit_and_files_are_data() -> None:
    assert _served([_library("a.so", bare=["90", "120"])]) == {"a.so": "yes"}
    assert _served([_library("a.so", bare=["90"])]) == {"a.so": "none"}
    data = _service([_library("a.so")], files={"sm_100a": 3, "sm_103a": 1})
    assert data is not None
    assert (data.as_data, data.nothing, data.libraries[0].units) == (True, True, 4)
    assert data.holds == "sm_100a and sm_103a"
    named = _service([], files={"sm_100a": 3}, named=True, tier="T2")
    assert named is not None
    assert [each.served for each in named.libraries] == ["unknown"]
    # Beside libraries with code of their own they are not what is judged.
    assert _served([_library("a.so", "sm_120")], files={"sm_100a": 3}) == {"a.so": "yes"}


# Claims


def test_a_claim_counts_while_nothing_was_read() -> None:
    service = _service(None, claim=_claim(one=["sm_90"], two=["sm_120", "compute_80"]))
    assert service is not None
    assert {e.name: (e.served, e.counted) for e in service.libraries} == {
        "one": ("none", ""),
        "two": ("yes", ""),
    }
    assert (service.read, service.source) == (False, "a list")
    assert service.libraries[1].pieces == ("sm_120", "compute_80")
    ptx = _served(None, claim=_claim(all=["compute_80"]))
    assert ptx == {"*": "unknown"}
    assert _served(None, claim=_claim(all=["compute_80@9.0"])) == {"*": "yes"}


def test_the_whole_wheel_outranks_a_claim_both_ways() -> None:
    assert _served([_library("a.so", "sm_90")], claim=_claim(all=["sm_120"])) == {"a.so": "none"}
    assert _served([_library("a.so", "sm_120")], claim=_claim(all=["sm_90"])) == {"a.so": "yes"}
    assert _service([_library("a.so")], claim=_claim(all=["sm_90"])) is None


def test_heads_that_tell_nothing_leave_a_claim_as_it_is() -> None:
    head = [_library("a.so", seen="head")]
    for sm, served in (("12.0", "yes"), ("9.0", "none")):
        service = _service(head, sm, claim=_claim(all=["sm_120"]), tier="T2")
        assert service is not None
        assert (service.read, [e.served for e in service.libraries]) == (False, [served])
    assert _served([], claim=_claim(all=["sm_120"]), tier="T2", files={"sm_90": 1}) == {
        "its files of device code": "none"
    }


def test_a_library_that_was_read_outranks_what_is_claimed_of_it() -> None:
    libraries = [
        _library("left/big.so", "sm_90", seen="head"),
        _library("left/small.abi3.so", "sm_80", seen="whole"),
    ]
    claim = _claim(big=["sm_120"], small=["sm_120"])
    service = _service(libraries, claim=claim, tier="T2")
    assert service is not None
    assert {e.name: e.served for e in service.libraries} == {
        "left/small.abi3.so": "none",
        "big": "yes",
    }
    assert not service.read
    assert service.source == "read from left.whl, the rest by a list"


def test_what_was_seen_to_serve_outranks_a_claim_that_nothing_does() -> None:
    libraries = [
        _library("a.so", "sm_120", seen="part"),
        _library("b.so", "sm_90", seen="head"),
    ]
    assert _served(libraries, claim=_claim(all=["sm_90"]), tier="T3") == {
        "a.so": "yes",
        "b.so": "unknown",
    }


def test_when_each_library_is_decided_nothing_is_left_to_a_claim() -> None:
    libraries = [
        _library("a.so", "sm_120", seen="part"),
        _library("b.so", "sm_90", seen="whole"),
    ]
    service = _service(libraries, claim=_claim(all=["sm_120"]), tier="T3")
    assert service is not None
    assert (service.read, [e.served for e in service.libraries]) == (True, ["yes", "none"])


def test_damaged_libraries_are_not_loaded_and_not_judged() -> None:
    contents = make_contents({"libraries": [_library("a.so", "sm_120"), _library("b.so")]})
    object.__setattr__(contents.libraries[1], "kind", "damaged")
    facts = WheelFacts(filename="left.whl", contents=contents)
    service = gpu_service(
        Variant(state="known", facts=facts),
        parse_compute_capability("12.0"),
        driver_cuda=_DRIVER,
        knowledge=_KNOWLEDGE,
        project="kernel",
    )
    assert service is not None
    assert [each.name for each in service.libraries] == ["a.so"]
