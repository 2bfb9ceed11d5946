from collections.abc import Mapping

import pytest

from cudalock.cuda import ComputeCapability, CudaVersion, parse_driver_version
from cudalock.errors import UsageError
from cudalock.host import (
    Detection,
    Gpu,
    Interpreter,
    NamedTarget,
    Target,
    TargetOptions,
    make_target,
    needs_detection,
)

_HERE = Interpreter(version="3.11.7", implementation="cpython", platform="manylinux_2_36_x86_64")
_BOX = Detection(
    answers=(),
    driver=parse_driver_version("590.48.01"),
    driver_source="NVML",
    driver_cuda=CudaVersion(13, 1),
    driver_cuda_source="NVML",
    gpus=(Gpu(name="a", capability=ComputeCapability(12, 0)),) * 2
    + (Gpu(name="b", capability=ComputeCapability(8, 6)),),
    gpus_source="NVML",
    disagreements=("NVML says driver 1, nvidia-smi says 2",),
)


def _make(
    options: TargetOptions | None = None,
    *,
    named: NamedTarget | None = None,
    detected: Detection | None = None,
    interpreter: Interpreter = _HERE,
    environ: Mapping[str, str] | None = None,
) -> Target:
    return make_target(
        options or TargetOptions(),
        named=named,
        detected=detected,
        interpreter=interpreter,
        environ=environ,
    )


def _named(**options: str) -> NamedTarget:
    return NamedTarget(
        name="box",
        where="tool.cudalock.targets.box",
        options=TargetOptions(**options),  # type: ignore[arg-type]  # text options only.
    )


def _codes(target: Target) -> list[str]:
    return [warning.code for warning in target.warnings]


def test_a_given_target_has_nothing_of_this_machine_but_python_and_platform() -> None:
    target = _make(TargetOptions(driver="590.48.01", sm=("12.0",)), detected=_BOX)
    assert target.python == "3.11.7"
    assert target.platform == "manylinux_2_36_x86_64"
    assert target.origin("python") == "detected: this interpreter"
    assert target.origin("driver") == "--driver"
    assert target.origin("name") is None
    assert target.driver_cuda == target.cuda == CudaVersion(13, 1)
    assert target.capabilities == (ComputeCapability(12, 0),)
    assert target.warnings == ()


def test_a_fully_given_target_is_the_same_on_any_host() -> None:
    # nikopueringer/CorridorKey#112: a lock that two authors rewrite in turns (its analysis is weak).
    options = TargetOptions(
        python="3.12", platform="linux-x86_64", driver="590.48.01", cuda="13.0", sm=("120",)
    )
    other = Interpreter(
        version="3.14.0", implementation="pypy", platform="macosx_14_0_arm64", free_threaded=True
    )
    assert _make(options) == _make(options, interpreter=other, detected=_BOX)
    assert hash(_make(options)) == hash(_make(options, interpreter=other))
    assert _make(options).platform == "manylinux_2_28_x86_64"


def test_where_a_value_came_from_takes_no_part_in_comparison() -> None:
    by_flag = _make(TargetOptions(cuda="13.0", sm=("12.0",)))
    by_variable = _make(environ={"CUDALOCK_CUDA": "13.0", "CUDALOCK_SM": "12.0"})
    assert by_flag == by_variable
    assert by_flag.origins != by_variable.origins
    assert by_variable.origin("cuda") == "CUDALOCK_CUDA"
    assert by_variable.origin("capabilities") == "CUDALOCK_SM"


def test_flags_come_before_variables_before_the_named_target() -> None:
    named = _named(python="3.10", cuda="12.6", cuda_compat="minor", platform="linux-aarch64")
    environ = {"CUDALOCK_PYTHON": "3.12", "CUDALOCK_CUDA": "12.8"}
    target = _make(TargetOptions(python="3.13"), named=named, environ=environ)
    assert target.python == "3.13"
    assert target.cuda == CudaVersion(12, 8)
    assert target.cuda_compat == "minor"
    assert target.platform == "manylinux_2_28_aarch64"
    assert target.name == "box"
    assert target.origin("cuda_compat") == "tool.cudalock.targets.box.cuda-compat"


def test_a_higher_drivers_cuda_replaces_the_lower_driver_that_contradicts_it() -> None:
    named = _named(driver="570.26", cuda="12.8")
    target = _make(TargetOptions(driver_cuda="13.1"), named=named)
    assert target.driver is None
    assert target.driver_cuda == CudaVersion(13, 1)
    assert target.cuda == CudaVersion(12, 8)


def test_capabilities_of_sm_and_gpu_are_one_sorted_set() -> None:
    options = TargetOptions(cuda="13.0", sm=("sm_120", "9.0", "120"), gpu=("H100", "A100"))
    target = _make(options)
    assert [str(capability) for capability in target.capabilities] == ["8.0", "9.0", "12.0"]
    assert target.origin("capabilities") == "--sm and --gpu"
    by_name = _make(TargetOptions(cuda="13.0", gpu=("H100",)))
    assert by_name.origin("capabilities") == "--gpu"


def test_a_jetson_is_known_by_its_capability() -> None:
    assert _make(TargetOptions(cuda="12.6", sm=("8.7",))).tegra
    assert not _make(TargetOptions(cuda="12.6", sm=("8.6",))).tegra


def test_this_machine_is_taken_when_nobody_speaks_of_cuda() -> None:
    target = _make(TargetOptions(python="3.12"), detected=_BOX)
    assert target.driver == parse_driver_version("590.48.01")
    assert target.cuda == CudaVersion(13, 1)
    assert target.capabilities == (ComputeCapability(8, 6), ComputeCapability(12, 0))
    assert target.origin("driver") == "detected: NVML"
    assert target.origin("cuda") == "the newest the driver supports"
    assert _codes(target) == ["sources-disagree"]


@pytest.mark.parametrize(
    ("options", "environ", "needed"),
    [
        (TargetOptions(), {}, True),
        (TargetOptions(python="3.12", platform="win-amd64", cuda_compat="minor"), {}, True),
        (TargetOptions(), {"CUDALOCK_PYTHON": "3.12", "CUDALOCK_CUDA": " "}, True),
        (TargetOptions(cuda="any"), {}, False),
        (TargetOptions(driver="590.48.01"), {}, False),
        (TargetOptions(driver_cuda="13.0"), {}, False),
        (TargetOptions(sm=("9.0",)), {}, False),
        (TargetOptions(gpu=("h100",)), {}, False),
        (TargetOptions(cpu=True), {}, False),
        (TargetOptions(), {"CUDALOCK_CPU": "yes"}, False),
        (TargetOptions(), {"CUDALOCK_GPU": "h100, a100"}, False),
    ],
)
def test_the_machine_is_asked_only_when_nobody_speaks_of_cuda(
    options: TargetOptions, environ: dict[str, str], needed: bool
) -> None:
    assert needs_detection(options, named=None, environ=environ) is needed
    assert not needs_detection(options, named=_named(cuda="13.0"), environ=environ)


@pytest.mark.parametrize("detected", [None, Detection(answers=())])
def test_no_driver_found_and_none_given_says_which_flags_to_give(
    detected: Detection | None,
) -> None:
    with pytest.raises(UsageError, match=r"no NVIDIA driver.*--driver.*--cuda.*--cpu") as caught:
        _make(detected=detected)
    assert caught.value.flag == "--driver"
    assert caught.value.exit_code == 2


def test_gpus_alone_or_a_named_target_without_cuda_are_not_enough() -> None:
    with pytest.raises(UsageError, match="neither a driver nor a CUDA release was given"):
        _make(TargetOptions(sm=("12.0",)), detected=_BOX)
    with pytest.raises(UsageError, match="neither a driver nor a CUDA release was given"):
        _make(named=_named(python="3.12"), detected=_BOX)


def test_a_driver_and_a_cuda_of_one_level_have_to_agree() -> None:
    agreed = _make(TargetOptions(driver="590.48.01", driver_cuda="13.1", sm=("9.0",)))
    assert agreed.driver_cuda == CudaVersion(13, 1)
    assert agreed.warnings == ()
    for wrong in ("12.8", "13.2"):
        with pytest.raises(UsageError, match=r"590\.48\.01, which supports CUDA 13\.1") as caught:
            _make(TargetOptions(driver="590.48.01", driver_cuda=wrong))
        assert caught.value.where == "--driver and --driver-cuda"


def test_an_unknown_branch_counts_as_the_nearest_older_one_with_a_warning() -> None:
    target = _make(TargetOptions(driver="592.10", sm=("9.0",)))
    assert target.driver_cuda == CudaVersion(13, 1)
    assert _codes(target) == ["unknown-driver-branch"]
    assert "592.10" in str(target.warnings[0])
    told = _make(TargetOptions(driver="592.10", driver_cuda="13.2", sm=("9.0",)))
    assert told.driver_cuda == CudaVersion(13, 2)
    assert told.warnings == ()
    with pytest.raises(UsageError, match="agree"):
        _make(TargetOptions(driver="592.10", driver_cuda="13.0"))


def test_a_driver_older_than_every_branch_is_refused_at_its_place() -> None:
    with pytest.raises(UsageError, match="or newer") as caught:
        _make(environ={"CUDALOCK_DRIVER": "100.1"})
    assert caught.value.where == "CUDALOCK_DRIVER"


def test_cuda_above_the_driver_is_kept_for_the_resolver_to_judge() -> None:
    target = _make(TargetOptions(driver="570.26", cuda="13.0", sm=("9.0",)))
    assert target.cuda == CudaVersion(13, 0)
    assert target.driver_cuda == CudaVersion(12, 8)


def test_any_cuda_keeps_what_the_driver_supports() -> None:
    target = _make(TargetOptions(cuda="any", driver="590.48.01", sm=("9.0",)))
    assert target.cuda is None
    assert target.cuda_any
    assert target.driver_cuda == CudaVersion(13, 1)
    assert _make(TargetOptions(cuda="any", sm=("9.0",))).driver_cuda is None


def test_unknown_gpus_are_warned_of() -> None:
    assert _codes(_make(TargetOptions(cuda="13.0"))) == ["unknown-gpu"]
    blind = Detection(
        answers=(),
        driver_cuda=CudaVersion(13, 1),
        driver_cuda_source="libcuda",
        gpus=(
            Gpu(name="known", capability=ComputeCapability(9, 0)),
            Gpu(name="odd", capability=None),
        ),
        gpus_source="nvidia-smi",
    )
    target = _make(detected=blind)
    assert _codes(target) == ["unknown-gpu"]
    assert "`odd`" in str(target.warnings[0])
    assert target.driver is None


def test_a_detected_driver_of_an_unknown_branch_is_warned_of() -> None:
    box = Detection(
        answers=(),
        driver=parse_driver_version("592.10"),
        driver_source="/proc/driver/nvidia/version",
        driver_cuda=CudaVersion(13, 1),
        driver_cuda_source="table of driver branches",
        gpus=(Gpu(name="a", capability=ComputeCapability(9, 0)),),
        gpus_source="nvidia-smi",
    )
    assert _codes(_make(detected=box)) == ["unknown-driver-branch"]


def test_a_cpu_target_has_no_driver_and_contradicts_a_cuda_release() -> None:
    target = _make(TargetOptions(cpu=True), named=_named(cuda="13.0", driver="590.48.01"))
    assert target.cpu
    assert (target.cuda, target.driver, target.capabilities) == (None, None, ())
    assert target.origin("cpu") == "--cpu"
    ignored = _make(TargetOptions(cpu=True, driver="590.48.01", sm=("9.0",)))
    assert str(ignored.warnings[0]).startswith("--driver, --sm ")
    with pytest.raises(UsageError, match="--cpu") as caught:
        _make(TargetOptions(cpu=True, cuda="13.0"))
    assert caught.value.where == "--cuda"


def test_a_cuda_flag_overrules_a_cpu_variable() -> None:
    environ = {"CUDALOCK_CPU": "1"}
    assert not _make(TargetOptions(cuda="13.0"), environ=environ).cpu
    assert _make(environ=environ).origin("cpu") == "CUDALOCK_CPU"
    with pytest.raises(UsageError, match="expected 1 or 0") as caught:
        _make(environ={"CUDALOCK_CPU": "maybe"})
    assert caught.value.where == "CUDALOCK_CPU"


def test_a_detected_driver_without_any_known_cuda_is_not_enough() -> None:
    old = Detection(answers=(), driver=parse_driver_version("304.137"), driver_source="NVML")
    with pytest.raises(UsageError, match=r"which CUDA driver 304\.137 supports is not known"):
        _make(detected=old)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        (TargetOptions(python="banana"), "--python"),
        (TargetOptions(platform="banana"), "--platform"),
        (TargetOptions(driver="590"), "--driver"),
        (TargetOptions(driver_cuda="13"), "--driver-cuda"),
        (TargetOptions(cuda="13.0.2"), "--cuda"),
        (TargetOptions(cuda="13.0", cuda_compat="loose"), "--cuda-compat"),
        (TargetOptions(cuda="13.0", sm=("12.0", "sm_120a")), "--sm"),
        (TargetOptions(cuda="13.0", gpu=("banana",)), "--gpu"),
        (TargetOptions(cuda="13.0", sm=("9.0",) * 65), "--sm"),
    ],
)
def test_an_option_that_cannot_be_read_names_its_flag(options: TargetOptions, where: str) -> None:
    with pytest.raises(UsageError) as caught:
        _make(options)
    assert caught.value.where == caught.value.flag == where


def test_the_default_policy_can_be_said() -> None:
    target = _make(TargetOptions(cuda="13.0", cuda_compat="Strict"))
    assert target.cuda_compat == "strict"
    assert target.origin("cuda_compat") == "--cuda-compat"
    assert _make(TargetOptions(cuda="13.0")).origin("cuda_compat") is None


def test_an_option_of_a_named_target_names_its_key() -> None:
    with pytest.raises(UsageError) as caught:
        _make(named=_named(driver_cuda="banana"))
    assert caught.value.where == "tool.cudalock.targets.box.driver-cuda"


@pytest.mark.parametrize(
    ("interpreter", "flag"),
    [
        (Interpreter(version="3.10.1", implementation="pypy", platform="win_amd64"), "--python"),
        (
            Interpreter(version="3.12.1", implementation="cpython", platform="macosx_14_0_arm64"),
            "--platform",
        ),
    ],
)
def test_an_interpreter_without_cuda_wheels_has_to_be_replaced_by_a_flag(
    interpreter: Interpreter, flag: str
) -> None:
    with pytest.raises(UsageError) as caught:
        _make(TargetOptions(cuda="13.0"), interpreter=interpreter)
    assert caught.value.flag == flag


def test_a_free_threaded_interpreter_makes_a_free_threaded_target() -> None:
    here = Interpreter(
        version="3.13.2",
        implementation="cpython",
        platform="manylinux_2_36_x86_64",
        free_threaded=True,
    )
    assert _make(TargetOptions(cuda="13.0"), interpreter=here).free_threaded
    given = _make(TargetOptions(cuda="13.0", python="3.13"), interpreter=here)
    assert not given.free_threaded
