"""Forward compatibility is for data-centre GPUs, Linux and listed driver branches; else it is refused."""

import pytest

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    class_of,
    forward_branches,
    forward_releases,
    parse_cuda_version,
    parse_driver_version,
    shipped_tables,
)
from cudalock.errors import UsageError
from cudalock.host import (
    Detection,
    Gpu,
    Interpreter,
    Target,
    TargetOptions,
    compat_package,
    make_target,
    marker_environment,
)

_HERE = Interpreter(version="3.12.4", implementation="cpython", platform="manylinux_2_36_x86_64")


def _make(
    *,
    driver: str | None = "570.211.01",
    cuda: str | None = "13.0",
    gpu: tuple[str, ...] = ("h100",),
    sm: tuple[str, ...] = (),
    platform: str | None = None,
    driver_cuda: str | None = None,
    compat: str = "forward",
) -> Target:
    options = TargetOptions(
        driver=driver,
        driver_cuda=driver_cuda,
        cuda=cuda,
        gpu=gpu,
        sm=sm,
        platform=platform,
        cuda_compat=compat,
    )
    return make_target(options, named=None, detected=None, interpreter=_HERE)


def _detected(*names: str, driver: str = "570.211.01", wsl: bool = False) -> Target:
    version = parse_driver_version(driver)
    box = Detection(
        answers=(),
        driver=version,
        driver_source="NVML",
        driver_cuda=CudaVersion(12, 8),
        driver_cuda_source="NVML",
        gpus=tuple(Gpu(name=name, capability=ComputeCapability(9, 0)) for name in names),
        gpus_source="NVML",
        wsl=wsl,
    )
    options = TargetOptions(cuda_compat="forward")
    return make_target(options, named=None, detected=box, interpreter=_HERE)


def test_a_listed_branch_and_a_data_centre_gpu_run_a_newer_release() -> None:
    target = _make()
    assert target.compat == target.cuda == target.runs_cuda == CudaVersion(13, 0)
    assert target.driver_cuda == CudaVersion(12, 8)
    assert not target.any_minor
    assert compat_package(CudaVersion(13, 0)) == "cuda-compat-13-0"


def test_without_a_release_the_newest_that_is_listed_is_taken() -> None:
    target = _make(driver="580.95.05", cuda=None)
    assert target.cuda == target.compat == CudaVersion(13, 2)
    assert target.origin("cuda") == "the newest that forward compatibility lists for 580.95.05"


def test_any_release_may_be_up_to_the_newest_that_is_listed() -> None:
    target = _make(driver="580.95.05", cuda="any")
    assert target.cuda is None
    assert target.compat == CudaVersion(13, 2)


@pytest.mark.parametrize(
    ("driver", "cuda"), [("590.48.01", "13.0"), ("590.48.01", "13.1"), ("620.70.06", None)]
)
def test_what_the_driver_runs_by_itself_needs_no_package_on_any_gpu(
    driver: str, cuda: str | None
) -> None:
    target = _make(driver=driver, cuda=cuda, gpu=("5090",))
    assert target.compat is None
    assert target.runs_cuda == target.driver_cuda
    assert target.cuda == (target.driver_cuda if cuda is None else parse_cuda_version(cuda))


@pytest.mark.parametrize("gpu", ["5090", "NVIDIA GeForce RTX 3060", "titan-rtx", "1080ti"])
def test_a_geforce_or_titan_is_refused(gpu: str) -> None:
    with pytest.raises(UsageError, match="is a GeForce or Titan, on which it does not start"):
        _make(gpu=(gpu,))


@pytest.mark.parametrize(
    "gpu", ["rtx-pro-6000", "RTX PRO 6000 Blackwell Server Edition", "RTX A6000", "a800"]
)
def test_a_workstation_card_is_not_counted_on(gpu: str) -> None:
    with pytest.raises(UsageError, match="it is not guaranteed"):
        _make(gpu=(gpu,))


def test_a_jetson_has_packages_of_its_own() -> None:
    with pytest.raises(UsageError, match="is a Jetson"):
        _make(gpu=("orin",))


def test_a_gpu_of_no_known_class_is_refused() -> None:
    with pytest.raises(UsageError, match="`gb10` is not known to be one"):
        _make(gpu=("gb10",))


def test_one_gpu_that_is_not_of_the_data_centre_refuses_the_box() -> None:
    with pytest.raises(UsageError, match="`5090` is a GeForce"):
        _make(gpu=("h100", "5090"))


@pytest.mark.parametrize(("gpu", "sm"), [((), ("9.0",)), ((), ()), (("h100",), ("8.6",))])
def test_a_compute_capability_alone_does_not_tell_which_gpu_it_is(
    gpu: tuple[str, ...], sm: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match="--gpu") as caught:
        _make(gpu=gpu, sm=sm)
    assert caught.value.flag == "--gpu"
    assert caught.value.where == "--cuda-compat"
    assert caught.value.exit_code == 2


def test_a_capability_beside_the_name_of_its_gpu_is_fine() -> None:
    assert _make(gpu=("h100",), sm=("9.0",)).compat == CudaVersion(13, 0)


def test_the_branch_must_be_a_listed_one() -> None:
    with pytest.raises(
        UsageError,
        match=r"cuda-compat-13-0, .* of branch 535, 550, 565, 570, 575; found driver 560",
    ):
        _make(driver="560.35.03")


def test_a_release_of_which_nothing_is_listed_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"cuda-compat-13-4, which would run CUDA 13\.4, is not known"
    ):
        _make(cuda="13.4")


@pytest.mark.parametrize(("driver", "driver_cuda"), [(None, "12.8"), (None, None)])
def test_the_driver_must_be_known_by_its_number(
    driver: str | None, driver_cuda: str | None
) -> None:
    with pytest.raises(UsageError, match="depends on the driver's branch") as caught:
        _make(driver=driver, driver_cuda=driver_cuda)
    assert caught.value.flag == "--driver"


def test_windows_and_wsl_are_refused() -> None:
    with pytest.raises(UsageError, match="for Linux, and not for Windows or WSL"):
        _make(platform="win-amd64")
    with pytest.raises(UsageError, match="for Linux, and not for Windows or WSL"):
        _detected("NVIDIA H100 80GB HBM3", wsl=True)


def test_detection_names_the_gpus_too() -> None:
    target = _detected("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3")
    assert target.compat == target.cuda == CudaVersion(13, 2)
    with pytest.raises(UsageError, match="`NVIDIA H1000` is not known to be one"):
        _detected("NVIDIA H100 80GB HBM3", "NVIDIA H1000")


@pytest.mark.parametrize("compat", ["strict", "minor"])
def test_the_other_policies_have_no_package(compat: str) -> None:
    target = _make(compat=compat, gpu=("5090",))
    assert target.compat is None
    assert target.any_minor is (compat == "minor")


def test_the_branches_of_a_package_are_older_than_what_it_runs() -> None:
    tables = shipped_tables()
    assert set(tables.forward) >= {CudaVersion(12, 6), CudaVersion(13, 0), CudaVersion(13, 2)}
    for release, branches in tables.forward.items():
        assert branches == forward_branches(release)
        for branch in branches:
            assert tables.branch[branch] < release
            assert release in forward_releases(parse_driver_version(f"{branch}.10.01"))
    assert forward_releases(parse_driver_version("620.70.06")) == ()


def test_every_named_gpu_has_at_most_one_class_and_few_have_none() -> None:
    tables = shipped_tables()
    named = [name for names in tables.devices.values() for name in names]
    classed = [name for names in tables.classes.values() for name in names]
    assert len(classed) == len(set(classed))
    assert set(classed) <= set(named)
    assert set(named) - set(classed) == {"GB10", "DGX Spark", "DGXSpark", "Spark", "Rubin"}
    for sold, names in tables.classes.items():
        assert {class_of(name) for name in names} == {sold}
    assert class_of("MI300X") is None


@pytest.mark.parametrize(("gpu", "tegra"), [("thor", True), ("orin", True), ("gb10", False)])
def test_a_jetson_that_is_given_by_name_is_one(gpu: str, tegra: bool) -> None:
    target = _make(gpu=(gpu,), compat="strict", driver=None)
    assert target.tegra is tegra
    assert ("tegra" in marker_environment(target)["platform_release"]) is tegra
