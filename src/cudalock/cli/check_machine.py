"""Machines for `cudalock check`: this one as it was detected, and those that a project names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from cudalock.cli.inputs import read_project
from cudalock.cuda import ComputeCapability
from cudalock.errors import UsageError
from cudalock.host import (
    Detection,
    Interpreter,
    NamedTarget,
    Target,
    TargetOptions,
    detect,
    detect_interpreter,
    make_target,
    parse_platform,
)
from cudalock.lock.model import Lock
from cudalock.project import select_target
from cudalock.verify.machine import Machine, judge_machine
from cudalock.verify.problems import CheckResult
from cudalock.verify.recorded import read_target
from cudalock.wheel.knowledge import Knowledge

__all__ = ["judge_here", "judge_target", "machine_of", "target_machine"]


def judge_here(lock: Lock, environ: Mapping[str, str], knowledge: Knowledge) -> CheckResult:
    """Say whether this machine can run a lock. Asks the machine; raises `HostError`."""
    return judge_machine(
        lock, machine_of(detect(environ), detect_interpreter()), knowledge=knowledge
    )


def machine_of(detection: Detection, interpreter: Interpreter) -> Machine:
    """Return the machine that was detected: without a driver, or one that could not be read, too."""
    names: dict[ComputeCapability, str] = {}
    for gpu in detection.gpus:
        if gpu.capability is not None:
            names.setdefault(gpu.capability, gpu.name)
    failed = [answer for answer in detection.answers if answer.status == "failed"]
    why = "; ".join(f"{answer.source} {answer.detail}".strip() for answer in failed)
    driver: Literal["found", "none", "unread"] = "found"
    if not detection.found:
        driver = "unread" if failed else "none"
    unnamed = any(gpu.capability is None for gpu in detection.gpus)
    return Machine(
        target=Target(
            python=interpreter.version,
            platform=str(parse_platform(interpreter.platform)),
            implementation=interpreter.implementation,
            free_threaded=interpreter.free_threaded,
            driver=detection.driver,
            driver_cuda=detection.driver_cuda,
            # A box of which one GPU is not known is not known.
            capabilities=() if unnamed else detection.capabilities,
            tegra=detection.tegra,
            wsl=detection.wsl,
        ),
        driver=driver,
        why=why,
        gpu_names=names,
        name="here",
    )


def judge_target(lock: Lock, folder: Path, name: str, knowledge: Knowledge) -> CheckResult:
    """Say whether the machine of a target that the project names can run a lock."""
    project = read_project(folder, needed=True)
    named = None if project is None else select_target(project, name)
    if named is None:  # pragma: no cover - `select_target` raises for a name that is not there
        raise UsageError(f"unknown target `{name}`", flag="--target")
    return judge_machine(
        lock, target_machine(named.options, name, lock, named.where), knowledge=knowledge
    )


def target_machine(options: TargetOptions, name: str, lock: Lock, where: str) -> Machine:
    """Return the machine that options describe; a Python or platform not given is the lock's."""
    made_for = read_target(lock)
    if options.cpu:
        driver: Literal["found", "none"] = "none"
        options = replace(options, driver=None, driver_cuda=None, sm=(), gpu=())
    else:
        driver = "found"
    target = make_target(
        TargetOptions(),
        named=NamedTarget(name=name, where=where, options=options),
        detected=None,
        interpreter=_interpreter(made_for),
    )
    return Machine(
        target=replace(target, origins=(), warnings=()),
        driver=driver,
        why="it is described without a GPU" if driver == "none" else "",
        gpu_names={},
        name=name,
    )


def _interpreter(made_for: Target | None) -> Interpreter:
    if made_for is None:
        return detect_interpreter()
    return Interpreter(
        version=made_for.python,
        implementation=made_for.implementation,
        platform=made_for.platform,
        free_threaded=made_for.free_threaded,
    )
