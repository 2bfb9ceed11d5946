"""Whether a machine can run a lock: recorded hosts against a lock of CUDA 13.0 for one GPU."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from cudalock.cli.check_machine import machine_of
from cudalock.host import Interpreter
from cudalock.lock import Lock
from cudalock.verify.machine import Machine, judge_machine
from cudalock.verify.problems import CheckResult
from cudalock.wheel.knowledge import Knowledge
from host_boxes import box_paths, detect_box
from locked_worlds import GOOD, change_package, good_lock, lock_of
from scenario_worlds import Scenario

_PYTHON = Interpreter(version="3.12.4", implementation="cpython", platform="manylinux_2_39_x86_64")
_BOXES = {path.stem: path for path in box_paths()}


@pytest.fixture(scope="module")
def good() -> tuple[Lock, Knowledge]:
    return good_lock()


@pytest.fixture(scope="module")
def for_cpu() -> tuple[Lock, Knowledge]:
    table = tomllib.loads(GOOD)
    table |= {
        "requirements": ["filelock"],
        "constraints": [],
        "target": {"python": "3.12", "cpu": True},
    }
    return lock_of(Scenario(name="cpu", table=table))


def _machine(name: str, root: Path, interpreter: Interpreter = _PYTHON) -> Machine:
    table = tomllib.loads(_BOXES[name].read_text(encoding="utf-8"))
    return machine_of(detect_box(table, root), interpreter)


def _codes(result: CheckResult) -> list[str]:
    return sorted({problem.code for problem in result.problems})


def test_the_machine_that_it_was_made_for_can_run_it(
    good: tuple[Lock, Knowledge], tmp_path: Path
) -> None:
    result = judge_machine(good[0], _machine("one-gpu", tmp_path), knowledge=good[1])
    assert result.problems == ()
    assert result.packages == 8


def test_a_driver_of_570_is_told_the_floor_of_cuda_13(
    good: tuple[Lock, Knowledge], tmp_path: Path
) -> None:
    result = judge_machine(good[0], _machine("driver-570", tmp_path), knowledge=good[1])
    (problem,) = result.problems
    assert result.status == "broken"
    assert "needs driver 580.65.06, found driver 570.124.06 (CUDA 12.8)" in problem.message


def test_the_gpu_of_two_that_is_not_served_is_named(
    good: tuple[Lock, Knowledge], tmp_path: Path
) -> None:
    result = judge_machine(good[0], _machine("mixed", tmp_path), knowledge=good[1])
    (problem,) = result.problems
    assert result.status == "broken"
    assert problem.message.startswith(
        "NVIDIA H100 PCIe (compute capability 9.0) is not served: kernel 0.4.4+cu130 holds sm_120"
    )
    assert "RTX PRO 6000" not in problem.message


def test_a_gpu_of_which_nobody_knows_is_named_and_not_refused(
    good: tuple[Lock, Knowledge], tmp_path: Path
) -> None:
    silent = replace(good[1], architectures=())
    result = judge_machine(good[0], _machine("mixed", tmp_path), knowledge=silent)
    (problem,) = result.problems
    assert result.status == "unknown"
    assert "made for compute capability 12.0" in problem.message
    assert "NVIDIA H100 PCIe" in problem.message


def test_a_machine_without_a_gpu_is_told_from_one_that_could_not_be_read(
    good: tuple[Lock, Knowledge], tmp_path: Path
) -> None:
    none = judge_machine(good[0], _machine("no-driver", tmp_path / "a"), knowledge=good[1])
    assert (none.status, _codes(none)) == ("broken", ["no-driver"])
    unread = judge_machine(good[0], _machine("unreadable", tmp_path / "b"), knowledge=good[1])
    assert (unread.status, _codes(unread)) == ("unknown", ["driver-unread"])
    assert "nvidia-smi" in unread.problems[0].message


@pytest.mark.parametrize("name", ["no-driver", "one-gpu", "unreadable"])
def test_a_lock_without_cuda_runs_without_a_gpu(
    for_cpu: tuple[Lock, Knowledge], tmp_path: Path, name: str
) -> None:
    assert judge_machine(for_cpu[0], _machine(name, tmp_path), knowledge=for_cpu[1]).ok


def test_a_driver_without_gpus_to_see_leaves_them_open(
    good: tuple[Lock, Knowledge], tmp_path: Path
) -> None:
    machine = _machine("one-gpu", tmp_path)
    blind = replace(machine, target=replace(machine.target, capabilities=()))
    result = judge_machine(good[0], blind, knowledge=good[1])
    assert (result.status, _codes(result)) == ("unknown", ["gpu-unread"])


@pytest.mark.parametrize(
    ("interpreter", "code"),
    [
        (replace(_PYTHON, version="3.11.9"), "python"),
        (replace(_PYTHON, platform="manylinux_2_39_aarch64"), "environment"),
        (replace(_PYTHON, platform="manylinux_2_17_x86_64"), "glibc"),
    ],
)
def test_another_python_machine_or_glibc_is_told(
    good: tuple[Lock, Knowledge], tmp_path: Path, interpreter: Interpreter, code: str
) -> None:
    machine = _machine("one-gpu", tmp_path, interpreter)
    result = judge_machine(good[0], machine, knowledge=good[1])
    assert result.status == "broken"
    assert code in _codes(result)


def test_a_lock_of_another_tool_is_judged_by_what_its_wheels_are_called(
    good: tuple[Lock, Knowledge], tmp_path: Path
) -> None:
    machine = _machine("one-gpu", tmp_path)
    foreign = replace(good[0], tool={}, created_by="pip")
    for name in ("kernel", "torch", "flash-jit", "nvidia-runtime"):
        foreign = change_package(foreign, name, lambda p: replace(p, tool=None))
    # The labels of the wheels still say which CUDA they are, and nobody says it for every GPU.
    assert _codes(judge_machine(foreign, machine, knowledge=good[1])) == ["gpu-unknown"]
    older = _machine("driver-570", tmp_path / "570")
    assert "driver" in _codes(judge_machine(foreign, older, knowledge=good[1]))
    plain = replace(
        foreign, packages=tuple(p for p in foreign.packages if p.name in ("numpy", "filelock"))
    )
    plain = replace(plain, packages=tuple(replace(p, dependencies=()) for p in plain.packages))
    assert judge_machine(plain, machine, knowledge=good[1]).status == "unknown"


@pytest.mark.parametrize("name", sorted(_BOXES))
def test_every_recorded_machine_gets_an_answer(
    good: tuple[Lock, Knowledge], tmp_path: Path, name: str
) -> None:
    result = judge_machine(good[0], _machine(name, tmp_path), knowledge=good[1])
    assert result.ok is not bool(result.problems)
    assert all(problem.message for problem in result.problems)
