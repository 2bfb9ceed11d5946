"""Whether a machine runs a lock, by what the lock records: yes, no, and could not tell are three answers."""

from collections.abc import Mapping

import pytest

from builders import locked_package, locked_wheel
from cudalock.cuda import (
    ComputeCapability,
    parse_compute_capability,
    parse_cuda_version,
    parse_driver_version,
)
from cudalock.errors import UsageError
from cudalock.host import Detection, Gpu, Interpreter, SourceAnswer
from cudalock.lock import Lock, TomlValue
from cudalock.lock.fitness import Fitness, fitness, machine_target

_PYTHON = Interpreter(version="3.12.4", implementation="cpython", platform="manylinux_2_35_x86_64")
_ENVIRONMENT = "platform_machine == 'x86_64' and python_version == '3.12'"


def capability(text: str) -> ComputeCapability:
    return parse_compute_capability(text)


def machine(
    driver: str | None = "590.48.01",
    cuda: str | None = "13.1",
    sm: str | None = "12.0",
    *,
    tegra: bool = False,
    wsl: bool = False,
) -> Detection:
    gpus = () if sm is None else (Gpu(name=f"GPU of {sm}", capability=capability(sm)),)
    return Detection(
        answers=(),
        driver=None if driver is None else parse_driver_version(driver),
        driver_cuda=None if cuda is None else parse_cuda_version(cuda),
        gpus=gpus,
        tegra=tegra,
        wsl=wsl,
    )


def lock(tool: Mapping[str, TomlValue] | None = None, *, cuda: str = "13.0", tag: str = "py3-none-any",
         sm: tuple[str, ...] = ("12.0",)) -> Lock:  # fmt: skip
    wheel = locked_wheel("left", "1.0+cu130", tag=tag)
    recorded: dict[str, TomlValue] = {wheel.name: {"cuda": cuda, "runtime": int(cuda[:2])}}
    return Lock(
        requires_python="==3.12.*",
        environments=(_ENVIRONMENT,),
        packages=(locked_package("left", "1.0+cu130", wheels=(wheel,), tool=recorded),),
        tool={"target": {"sm": list(sm)}, "needs-driver": "580.65.06", **(tool or {})},
    )


def judge(one: Lock, detection: Detection | None = None, python: Interpreter = _PYTHON) -> Fitness:
    return fitness(one, machine_target(python, None), detection or machine())


def test_a_machine_that_is_what_the_lock_was_made_for_runs_it() -> None:
    assert judge(lock()).runs


def test_a_set_without_cuda_runs_where_there_is_no_driver() -> None:
    bare = Detection(answers=())
    cpu = Lock(packages=(locked_package(),), tool={"target": {"cpu": True}})
    assert judge(cpu, bare).runs


@pytest.mark.parametrize(
    ("made", "detection", "words"),
    [
        (lock(), Detection(answers=()), "found no NVIDIA driver"),
        (lock(), machine("570.86.15", "12.8"), "found driver 570.86.15, which runs CUDA 12.8"),
        (lock(), machine("590.48.01", "13.1", "7.0"), "left 1.0+cu130 of CUDA 13.0 holds nothing that runs"),
        (lock(), machine("540.4.0", "12.6", "12.0", tegra=True), "the set is CUDA 13.0, found"),
        (lock({"needs-package": "cuda-compat-13-0"}), machine("570.86.15", "12.8"),
         "needs cuda-compat-13-0, found driver 570.86.15"),
        (lock(tag="cp311-cp311-manylinux_2_28_x86_64"), machine(), "is for another Python, platform or glibc"),
        (lock(tag="cp312-cp312-manylinux_2_39_x86_64"), machine(), "found Python 3.12.4 on manylinux_2_35_x86_64"),
    ],
)  # fmt: skip
def test_what_is_proved_is_a_refusal(made: Lock, detection: Detection, words: str) -> None:
    found = judge(made, detection)
    assert words in " ".join(found.refusals)
    assert not found.doubts


@pytest.mark.parametrize(
    ("made", "detection", "words"),
    [
        (lock(), Detection(answers=(SourceAnswer(source="NVML", status="failed", detail="code 9"),)),
         "this machine could not be read (NVML: code 9)"),
        (lock(), machine(None, "13.1"), ""),
        (lock(), machine("590.48.01", "13.1", None), "which GPUs this machine has could not be read"),
        (lock(sm=()), machine(), "made for GPUs that were not named"),
        (lock(sm=("9.0",)), machine(), "made for compute capability 9.0"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_a_doubt_and_no_refusal(
    made: Lock, detection: Detection, words: str
) -> None:
    found = judge(made, detection)
    assert words in " ".join(found.doubts)
    assert not found.refusals
    assert found.runs is (not words)


def test_which_driver_is_here_may_be_all_that_is_missing() -> None:
    bare = Lock(packages=(locked_package(),), tool=lock().tool)
    found = judge(bare, machine(None, "13.1"))
    assert found.doubts == (
        "the set needs NVIDIA driver 580.65.06 or newer, and which one is here is not known",
    )


def test_forward_compatibility_is_told_by_what_the_machine_reports() -> None:
    # The package brings a newer libcuda, and the machine then says so.
    made = lock({"needs-package": "cuda-compat-13-0"})
    assert judge(made, machine("570.86.15", "13.0")).runs


@pytest.mark.parametrize(("compat", "runs"), [("strict", False), ("minor", True)])
def test_a_jetson_and_wsl_are_judged_by_the_cuda_they_run(compat: str, runs: bool) -> None:
    # Their drivers are numbered by other schemes than the one that the lock names.
    for here in (machine("540.4.0", "13.0", tegra=True), machine("540.4.0", "13.0", wsl=True)):
        assert judge(lock(), here).runs
        newer = lock({"target": {"sm": ["12.0"], "cuda-compat": compat}}, cuda="13.1")
        assert judge(newer, here).runs is runs


def test_another_python_is_told_alone() -> None:
    older = Interpreter(version="3.11.2", implementation="cpython", platform=_PYTHON.platform)
    found = judge(lock(tag="cp312-cp312-win_amd64"), Detection(answers=()), older)
    assert found.refusals == (
        "the lock is for Python ==3.12.*, found Python 3.11.2 on manylinux_2_35_x86_64",
    )
    arm = Interpreter(version="3.12.4", implementation="cpython", platform="manylinux_2_35_aarch64")
    assert "the lock is for `platform_machine" in judge(lock(), None, arm).refusals[0]


def test_an_interpreter_that_no_cuda_wheel_is_for_is_asked_wrongly() -> None:
    for implementation, platform in (("pypy", _PYTHON.platform), ("cpython", "macosx_14_0_arm64")):
        with pytest.raises(UsageError):
            machine_target(
                Interpreter(version="3.12.4", implementation=implementation, platform=platform),
                None,
            )
