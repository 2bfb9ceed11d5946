"""Whether a machine can run a lock, by what the lock records of itself.

Read are `[tool.cudalock]` and what is recorded of each wheel; no index is asked and no wheel read. What
the lock does not say, or the machine could not tell, is a doubt and never a refusal.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    coverage,
    parse_compute_capability,
    parse_cuda_version,
    parse_driver_version,
)
from cudalock.errors import UsageError
from cudalock.host.detection import Detection
from cudalock.host.interpreter import Interpreter
from cudalock.host.platforms import parse_platform
from cudalock.host.target import Target
from cudalock.lock.model import Lock, TomlValue
from cudalock.lock.several import best_wheel, lock_of_target, target_extras

__all__ = ["Fitness", "fitness", "machine_target"]

_MOST_NAMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitness:
    """What stands against a lock on a machine; it runs there when nothing does.

    ``refusals`` are proved, ``doubts`` could not be told; each is a sentence.
    """

    refusals: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether the machine can run the lock, and that is known."""
        return not self.refusals and not self.doubts


def machine_target(python: Interpreter, name: str | None) -> Target:
    """Return the target that an interpreter is, by a target's name; its driver is left out.

    Raises `UsageError` for an interpreter or a platform that no CUDA wheel is made for.
    """
    if python.implementation != "cpython":
        raise UsageError(f"expected CPython, found {python.implementation[:40]}", flag="--python")
    return Target(
        python=python.version,
        platform=str(parse_platform(python.platform)),
        free_threaded=python.free_threaded,
        name=name,
    )


def fitness(lock: Lock, machine: Target, detection: Detection) -> Fitness:
    """Hold the lock of the target that ``machine`` names against a machine's Python, driver and GPUs.

    Raises `UsageError` for a target that the lock does not have.
    """
    if not target_extras(lock):
        return Fitness(
            doubts=(f"nothing in it says for which machine it is (made by {lock.created_by[:60]})",)
        )
    own = lock_of_target(lock, machine)
    refusals = [*_python(lock, own, machine)]
    doubts: list[str] = []
    # What is for another Python or platform altogether need not be told of its driver, too.
    if not refusals:
        for proved, sentence in (*_driver(own, detection), *_gpus(own, detection)):
            (refusals if proved else doubts).append(sentence)
    return Fitness(refusals=tuple(refusals), doubts=tuple(doubts))


def _python(lock: Lock, own: Lock, machine: Target) -> Iterator[str]:
    here = f"Python {machine.python}{'t' if machine.free_threaded else ''} on {machine.platform}"
    wanted = lock.requires_python
    if wanted is not None and not SpecifierSet(wanted).contains(machine.python, prereleases=True):
        yield f"the lock is for Python {wanted}, found {here}"
        return
    if lock.environments and not own.environments:
        yield f"the lock is for `{' or '.join(lock.environments)}`, found {here}"
        return
    misfits = [
        f"{package.name} {package.version} ({package.wheels[0].name})"
        for package in own.packages
        if best_wheel(package.wheels, machine) is None
    ]
    if misfits:
        verb = "is" if len(misfits) == 1 else "are"
        yield f"{_some(misfits)} {verb} for another Python, platform or glibc, found {here}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _recorded(own: Lock) -> Mapping[str, TomlValue] | None:
    table = own.tool.get("target")
    return table if isinstance(table, Mapping) else None


def _driver(own: Lock, detection: Detection) -> Iterator[tuple[bool, str]]:
    """Yield what stands against the driver, and whether that is proved."""
    needed = own.tool.get("needs-driver")
    if not isinstance(needed, str):
        # No wheel of the set is built for CUDA.
        return
    wants = f"the set needs NVIDIA driver {needed} or newer"
    if not detection.found:
        failed = [a for a in detection.answers if a.status == "failed"]
        if failed:
            why = "; ".join(f"{a.source}: {a.detail}" for a in failed[:_MOST_NAMES])
            yield False, f"{wants}, and this machine could not be read ({why})"
        else:
            yield True, f"{wants}, found no NVIDIA driver"
        return
    newest = _newest_cuda(own)
    has = f"driver {detection.driver}" if detection.driver is not None else "a driver"
    if detection.driver_cuda is not None:
        has += f", which runs CUDA {detection.driver_cuda}"
    if own.tool.get("needs-package") is not None:
        # The package brings a newer libcuda, which is what the machine then reports.
        if (
            newest is not None
            and detection.driver_cuda is not None
            and (detection.driver_cuda < newest)
        ):
            yield (
                True,
                f"the set is CUDA {newest} and needs {own.tool['needs-package']}, found {has}",
            )
    elif detection.driver is not None and not detection.tegra and not detection.wsl:
        if detection.driver < parse_driver_version(needed):
            yield True, f"{wants}, found {has}"
    elif newest is not None and detection.driver_cuda is not None:
        # Jetsons and Windows, which WSL has the driver of, number theirs by other schemes; what they run tells.
        table = _recorded(own) or {}
        strict = table.get("cuda-compat", "strict") == "strict"
        if detection.driver_cuda < (newest if strict else CudaVersion(major=newest.major, minor=0)):
            yield True, f"the set is CUDA {newest}, found {has}"
    else:
        yield False, f"{wants}, and which one is here is not known"


def _cuda_of(own: Lock) -> Iterator[tuple[str, CudaVersion]]:
    for package in own.packages:
        for record in (package.tool or {}).values():
            if isinstance(record, Mapping) and isinstance(text := record.get("cuda"), str):
                yield f"{package.name} {package.version}", parse_cuda_version(text)


def _newest_cuda(own: Lock) -> CudaVersion | None:
    return max((cuda for _, cuda in _cuda_of(own)), default=None)


def _gpus(own: Lock, detection: Detection) -> Iterator[tuple[bool, str]]:
    """Yield what stands against each GPU, and whether that is proved."""
    recorded = _recorded(own)
    if recorded is None or "needs-driver" not in own.tool or not detection.found:
        return
    if not detection.capabilities:
        yield False, "which GPUs this machine has could not be read"
        return
    sm = recorded.get("sm", ())
    made_for = {
        parse_compute_capability(item)
        for item in (sm if isinstance(sm, Sequence) and not isinstance(sm, str) else ())
        if isinstance(item, str)
    }
    names = {gpu.capability: gpu.name for gpu in detection.gpus if gpu.capability is not None}
    for capability in detection.capabilities:
        gpu = f"{names[capability]} (compute capability {capability})"
        absent = [
            f"{name} of CUDA {cuda}"
            for name, cuda in _cuda_of(own)
            if coverage(cuda, capability) == "absent"
        ]
        if absent:
            yield True, f"{gpu} is not served: {_some(absent)} holds nothing that runs on it"
        elif capability not in made_for:
            yield (
                False,
                f"the lock was made for {_told(made_for)}, and whether it serves {gpu} is not known",
            )


def _told(made_for: set[ComputeCapability]) -> str:
    if not made_for:
        return "GPUs that were not named"
    return "compute capability " + ", ".join(str(c) for c in sorted(made_for))
