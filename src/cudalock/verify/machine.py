"""Whether one machine can run a lock: its Python, its glibc, its driver and every GPU in it.

A `Machine` is a target of which something may be missing, and which says why: a machine without a
driver is a proof, one that could not be read is a doubt.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from cudalock.cuda import ComputeCapability
from cudalock.host.target import Target
from cudalock.lock.model import Lock
from cudalock.resolver.demands import DRIVER, make_pins, variant_violations
from cudalock.verify.builds import Build, builds_of, excluded
from cudalock.verify.problems import CheckResult, Problem
from cudalock.verify.recorded import read_target
from cudalock.verify.selection import select
from cudalock.wheel.knowledge import Knowledge

__all__ = ["Machine", "judge_machine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as far as it is known.

    ``target`` holds its Python, platform, driver and compute capabilities; its ``cuda`` is not asked.
    ``driver`` says whether there is one (``found``), there is none, or that could not be told, and
    ``why`` what was seen. ``gpu_names`` are the names of its GPUs by compute capability.
    """

    target: Target
    driver: Literal["found", "none", "unread"] = "found"
    why: str = ""
    gpu_names: Mapping[ComputeCapability, str] = field(default_factory=dict)
    name: str | None = None

    def gpu(self, capability: ComputeCapability) -> str:
        """Name a GPU: ``NVIDIA H100 (compute capability 9.0)``."""
        name = self.gpu_names.get(capability)
        told = f"compute capability {capability}"
        return told if name is None else f"{name} ({told})"


def judge_machine(lock: Lock, machine: Machine, *, knowledge: Knowledge) -> CheckResult:
    """Say whether a machine can run a lock, and what stands against it.

    The policy (``cuda-compat``) is the one that the lock was made with.
    """
    made_for = read_target(lock)
    policy = "strict" if made_for is None else made_for.cuda_compat
    cpu = made_for is not None and made_for.cpu
    target = replace(machine.target, cuda=None, cuda_compat=policy, cpu=cpu)
    if policy == "forward" and made_for is not None and target.driver is not None:
        target = replace(target, compat=made_for.compat)
    selection = select(lock, target)
    builds = builds_of(selection, target, knowledge)
    cuda = [build for build in builds if build.variant.runtime is not None]
    problems = [*selection.problems, *excluded(builds, target, knowledge)]
    if cuda:
        problems += _driver_problems(cuda, target, machine)
        if machine.driver == "found":
            problems += _gpu_problems(builds, target, machine, made_for)
    elif made_for is None:
        problems.append(_unrecorded(lock))
    return CheckResult(problems=tuple(problems), packages=len(selection.entries), name=machine.name)


def _unrecorded(lock: Lock) -> Problem:
    return Problem(
        code="not-recorded",
        severity="unknown",
        message="nothing in it says which CUDA its wheels are built for (it was made by "
        f"{lock.created_by[:60]})",
        hint="lock with `cudalock resolve`",
    )


def _driver_problems(builds: list[Build], target: Target, machine: Machine) -> Iterator[Problem]:
    """Yield what the driver does not run: one problem a reason, naming the wheels."""
    newest = max(builds, key=lambda build: build.variant.runtime or 0)
    wants = f"the set is CUDA {newest.variant.cuda or newest.variant.runtime}"
    if machine.driver != "found":
        none = machine.driver == "none"
        found = "no NVIDIA driver" if none else "a driver that could not be read"
        yield Problem(
            code="no-driver" if none else "driver-unread",
            severity="broken" if none else "unknown",
            message=f"{wants} ({newest.entry}), found {found}"
            + (f": {machine.why}" if machine.why else ""),
            hint=None if none else "`cudalock detect` shows what each source answered",
        )
        return
    pins = make_pins(target)
    reasons: dict[str, list[str]] = {}
    for build in builds:
        for violation in variant_violations(build.entry.name, build.variant, pins):
            if violation.package == DRIVER:
                reasons.setdefault(violation.fact.detail, []).append(str(build.entry))
    has = f"driver {target.driver}" if target.driver is not None else "a driver"
    runs = f" (CUDA {target.driver_cuda})" if target.driver_cuda is not None else ""
    for detail, names in sorted(reasons.items()):
        yield Problem(
            code="driver",
            severity="broken",
            message=f"{_some(names)} {_agreeing(detail, names)}, found {has}{runs}",
            package=names[0].split(" ", maxsplit=1)[0],
            hint="a newer driver, or a lock for an older CUDA (`cudalock resolve --cuda`)",
        )
    if target.driver is None and target.driver_cuda is None:
        yield Problem(
            code="driver-unread",
            severity="unknown",
            message=f"{wants}, and which driver the machine has is not known",
            hint="give `driver` or `driver-cuda`",
        )


def _agreeing(detail: str, names: list[str]) -> str:
    return detail if len(names) == 1 else re.sub(r"\Ais ", "are ", detail)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _gpu_problems(
    builds: tuple[Build, ...], target: Target, machine: Machine, made_for: Target | None
) -> Iterator[Problem]:
    if not target.capabilities:
        yield Problem(
            code="gpu-unread",
            severity="unknown",
            message="which GPUs the machine has could not be read"
            + (f": {machine.why}" if machine.why else ""),
            hint="`cudalock detect` shows what each source answered",
        )
        return
    for capability in target.capabilities:
        one = replace(target, capabilities=(capability,))
        pins = make_pins(one)
        refused = [
            f"{build.entry} {violation.fact.detail} ({violation.fact.source})"
            for build in builds
            for violation in variant_violations(build.entry.name, build.variant, pins)
            if violation.package == f"<gpu {capability}>"
        ]
        if refused:
            yield Problem(
                code="gpu",
                severity="broken",
                message=f"{machine.gpu(capability)} is not served: {'; '.join(refused[:3])}",
                package=refused[0].split(" ", maxsplit=1)[0],
            )
            continue
        if made_for is not None and capability in made_for.capabilities:
            continue
        silent = [str(build.entry) for build in builds if _silent(build)]
        if silent:
            yield Problem(
                code="gpu-unknown",
                severity="unknown",
                message=f"the lock was made for {_made_for(made_for)}, and whether it serves "
                f"{machine.gpu(capability)} is not known: nothing says for which GPUs "
                f"{_some(silent)} hold{'s' if len(silent) == 1 else ''} code",
                package=silent[0].split(" ", maxsplit=1)[0],
                hint="`cudalock resolve` with every GPU of the machine (`--sm`, `--gpu`)",
            )


def _made_for(target: Target | None) -> str:
    if target is None or not target.capabilities:
        return "GPUs that were not named"
    return "compute capability " + ", ".join(map(str, target.capabilities))


def _silent(build: Build) -> bool:
    """Whether a wheel is a build for CUDA of which nobody says what it holds for GPUs.

    A library that knowledge binds to a CUDA major is NVIDIA's own and as wide as its release.
    """
    told = build.seen.decisive
    own = told is not None and told.kind == "knowledge"
    return build.variant.runtime is not None and build.variant.device_code is None and not own
