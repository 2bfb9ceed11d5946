"""What a wheel demands of the machine, and when the machine says no."""

from dataclasses import replace

import pytest

from cudalock.cuda import (
    CudaVersion,
    driver_cuda,
    parse_compute_capability,
    parse_cuda_version,
    parse_driver_version,
)
from cudalock.host import Origin, Target
from cudalock.resolver.demands import (
    Demand,
    Violation,
    gpu_violations,
    make_pins,
    toolkit_demand,
    variant_violations,
)
from cudalock.resolver.facts import FactKind
from cudalock.wheel.device_code import DeviceCode, Library, parse_image
from cudalock.wheel.evidence import Observation, Variant


def _target(
    cuda: str | None = "13.0",
    *,
    driver: str | None = None,
    runs: str | None = None,
    compat: str = "strict",
    sm: tuple[str, ...] = (),
    cpu: bool = False,
    platform: str = "manylinux_2_28_x86_64",
) -> Target:
    version = parse_driver_version(driver) if driver is not None else None
    known = parse_cuda_version(runs) if runs is not None else None
    if version is not None and known is None:
        known = driver_cuda(version).cuda
    return Target(
        python="3.12",
        platform=platform,
        driver=version,
        driver_cuda=known,
        cuda=parse_cuda_version(cuda) if cuda is not None and not cpu else None,
        cuda_compat="minor" if compat == "minor" else "strict",
        capabilities=tuple(parse_compute_capability(text) for text in sm),
        cpu=cpu,
        origins=(Origin(field="cuda", text="--cuda"),),
    )


def _variant(cuda: str | None, runtime: int | None = None) -> Variant:
    release = parse_cuda_version(cuda) if cuda is not None else None
    major = runtime if runtime is not None else release.major if release is not None else None
    if major is None:
        return Variant(state="unknown")
    seen = Observation(kind="label", text="label", source="x.whl", major=major, cuda=release)
    return Variant(state="known", cuda=release, runtime=major, evidence=(seen,))


def _violated(variant: Variant, target: Target) -> list[tuple[str, str]]:
    found = variant_violations("x", variant, make_pins(target))
    assert all(violation.fact.kind is FactKind.DEMAND for violation in found)
    return [(violation.package, violation.fact.detail) for violation in found]


def test_a_target_pins_what_is_known_of_it_and_says_who_told() -> None:
    facts = make_pins(_target("13.0", driver="590.48.01", sm=("12.0", "9.0"))).facts
    assert set(facts) == {"<cuda-runtime>", "<cuda>", "<driver>", "<gpu 12.0>", "<gpu 9.0>"}
    assert facts["<cuda>"].kind is FactKind.POLICY
    assert facts["<cuda-runtime>"].source == "--cuda"
    assert facts["<driver>"].source == "the target"
    assert set(make_pins(_target(None)).facts) == set()
    assert make_pins(_target(cpu=True)).facts["<cuda-runtime>"].detail == "the target has no CUDA"
    assert make_pins(_target(runs="13.1")).facts["<driver>"].detail.endswith("runs CUDA 13.1")


@pytest.mark.parametrize(
    ("cuda", "target", "violated"),
    [
        ("13.0", _target("13.0"), []),
        ("12.8", _target("12.9"), []),
        ("13.0", _target(None), []),
        ("12.8", _target("13.0"), ["<cuda-runtime>"]),
        ("13.1", _target("13.0"), ["<cuda>"]),
        ("13.1", _target("13.0", compat="minor"), []),
        ("12.8", _target("13.0", compat="minor"), ["<cuda-runtime>"]),
        ("13.0", _target(cpu=True), ["<cuda-runtime>"]),
        # The branch says what a driver runs: 570.211 is newer than 575.51 and runs 12.8 only.
        ("12.9", _target("12.9", driver="575.51.03"), []),
        ("12.9", _target("12.9", driver="570.211.01"), ["<driver>"]),
        ("12.9", _target("12.9", driver="570.211.01", compat="minor"), []),
        ("13.0", _target("13.0", driver="570.211.01", compat="minor"), ["<driver>"]),
        ("13.0", _target("13.0", driver="580.65.06"), []),
        # A driver known by the CUDA it runs alone.
        ("13.0", _target("13.0", runs="12.9"), ["<driver>"]),
        ("13.1", _target("13.1", runs="13.0"), ["<driver>"]),
        ("13.1", _target("13.1", runs="13.0", compat="minor"), []),
        ("13.0", _target("13.0", runs="13.0"), []),
        # Every GPU of the box counts by itself.
        ("13.0", _target("13.0", sm=("7.0", "12.0", "6.1")), ["<gpu 7.0>", "<gpu 6.1>"]),
        ("12.6", _target("12.8", sm=("12.0",)), []),
    ],
)
def test_a_variant_is_held_against_the_target(
    cuda: str, target: Target, violated: list[str]
) -> None:
    assert [package for package, _ in _violated(_variant(cuda), target)] == violated


def test_a_variant_of_which_only_the_major_is_known_is_held_to_the_major() -> None:
    assert _violated(_variant(None, 13), _target("13.0", driver="580.65.06")) == []
    assert _violated(_variant(None, 13), _target("13.0", runs="13.0")) == []
    assert _violated(_variant(None, 12), _target("13.0")) == [
        ("<cuda-runtime>", "is built for CUDA 12")
    ]
    assert _violated(_variant(None, 13), _target("13.0", driver="570.26")) == [
        ("<driver>", "is CUDA 13, which needs driver 580.65.06")
    ]


def test_what_is_unknown_demands_nothing() -> None:
    assert _violated(_variant(None), _target("13.0", driver="570.26", sm=("7.0",))) == []


def test_a_major_that_no_table_knows_needs_no_code() -> None:
    assert _violated(_variant("99.1"), _target("99.2")) == []
    assert _violated(_variant("99.1"), _target("99.2", driver="590.48.01")) == [
        ("<driver>", "is built for CUDA 99.1")
    ]
    assert _violated(_variant("99.1"), _target("99.2", runs="13.0")) == [("<driver>", "is CUDA 99")]


def test_windows_drivers_count_otherwise() -> None:
    target = _target("12.9", driver="528.33", platform="win_amd64", compat="minor")
    assert _violated(_variant("12.9"), target) == []


def test_no_wheel_of_a_major_serves_a_gpu_below_all_of_it() -> None:
    pins = make_pins(_target("13.1", sm=("7.0", "12.0")))
    assert [v.package for v in gpu_violations("x", pins)] == ["<gpu 7.0>"]
    assert gpu_violations("x", make_pins(_target(None, sm=("7.0",)))) == []
    assert gpu_violations("x", make_pins(_target(cpu=True, sm=("7.0",)))) == []
    assert gpu_violations("x", make_pins(_target("12.8", sm=("7.0",)))) == []


def _releases(*texts: str) -> list[CudaVersion]:
    return [parse_cuda_version(text) for text in texts]


def test_a_part_is_bound_to_the_releases_it_belongs_to() -> None:
    pins = make_pins(_target("13.1"))
    demand = toolkit_demand("nvcc", _releases("13.3", "13.0", "13.1", "12.9"), "s", pins)
    assert isinstance(demand, Demand)
    assert (demand.package, demand.values) == ("<cuda-toolkit>", frozenset({"13.0", "13.1"}))
    assert demand.fact.detail == "is a part of CUDA 12.9 and 13.0 and 13.1 and 13.3"


def test_a_part_of_a_newer_release_is_against_the_policy() -> None:
    found = toolkit_demand("nvcc", _releases("13.3"), "s", make_pins(_target("13.1")))
    assert isinstance(found, Violation)
    assert (found.package, found.pin.kind) == ("<cuda>", FactKind.POLICY)


@pytest.mark.parametrize("target", [_target("13.1", compat="minor"), _target(cpu=True)])
def test_parts_are_left_alone_under_minor_and_without_cuda(target: Target) -> None:
    assert toolkit_demand("nvcc", _releases("13.3"), "s", make_pins(target)) is None
    assert toolkit_demand("nvcc", [], "s", make_pins(_target("13.1"))) is None


def _holding(cuda: str | None, *, as_data: bool = False, **libraries: str) -> Variant:
    code = DeviceCode(
        libraries=tuple(
            Library(name=name, images=tuple(parse_image(word) for word in text.split()))
            for name, text in libraries.items()
        ),
        source="read",
        as_data=as_data,
    )
    return replace(_variant(cuda), device_code=code)


@pytest.mark.parametrize(
    ("variant", "violated"),
    [
        (
            _holding("12.8", all="sm_80 sm_90"),
            [("<gpu 12.0>", "holds sm_80 and sm_90, nothing for sm_120")],
        ),
        (_holding(None, all="sm_80"), [("<gpu 12.0>", "holds sm_80, nothing for sm_120")]),
        (_holding("12.8", all="sm_80 sm_120"), []),
        (_holding("12.8", all="compute_90@8.7"), []),
        (
            _holding("12.8", all="compute_90@8.8"),
            [("<gpu 12.0>", "holds compute_90, nothing for sm_120")],
        ),
        # One library that serves the GPU is enough to lock; what lacks it is said of the set.
        (_holding("12.8", one="sm_80", two="sm_120a"), []),
        (_holding("12.8", as_data=True, all="sm_100a"), []),
        # Code that is known to be there outranks what the toolkit's table says of its release.
        (_holding("12.6", all="sm_120"), []),
    ],
)
def test_device_code_is_held_against_the_gpu(
    variant: Variant, violated: list[tuple[str, str]]
) -> None:
    assert _violated(variant, _target("12.8", driver="570.26", sm=("12.0",))) == violated


def test_a_release_that_cannot_make_code_for_the_gpu_is_the_reason_before_a_list() -> None:
    variant = _holding("13.0", all="sm_80")
    target = _target("13.0", driver="580.65.06", sm=("7.0",))
    assert _violated(variant, target) == [
        ("<gpu 7.0>", "is built for CUDA 13.0, which has no sm_70")
    ]


def test_each_gpu_of_the_box_must_be_served() -> None:
    variant = _holding("12.8", all="sm_80 sm_90a")
    target = _target("12.8", driver="570.26", sm=("8.0", "9.0", "10.0", "12.0"))
    assert [package for package, _ in _violated(variant, target)] == ["<gpu 10.0>", "<gpu 12.0>"]


def test_device_code_means_nothing_without_a_gpu() -> None:
    variant = replace(_holding("12.8", all="sm_80"), runtime=None, state="unknown")
    assert _violated(variant, _target(cpu=True, sm=("12.0",))) == []


def test_a_driver_that_is_not_known_runs_what_the_set_may_be_built_for_under_strict() -> None:
    assert make_pins(_target("13.0", driver="590.48.01")).driver_cuda == CudaVersion(13, 1)
    assert make_pins(_target("13.0")).driver_cuda == CudaVersion(13, 0)
    assert make_pins(_target("13.0", compat="minor")).driver_cuda is None


def test_builds_are_told_apart_by_the_machine_of_linux_and_windows_is_its_own() -> None:
    assert make_pins(_target()).machine == "x86_64"
    assert make_pins(_target(platform="manylinux_2_39_aarch64")).machine == "aarch64"
    assert make_pins(_target(platform="win_amd64")).machine == "win_amd64"
