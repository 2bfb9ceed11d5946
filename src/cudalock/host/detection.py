"""What each source on a machine answered about its driver and GPUs, and what follows.

A machine has several numbers that people take for one. The kernel driver has a version; the
library that programs load (``libcuda``) supports CUDA up to some release and may come from
another driver than the kernel's, in a container or with a forward-compatibility package. Each
source tells some of them. This module is pure: it weighs answers that `detect` collected.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    DriverVersion,
    driver_cuda,
    is_tegra,
)
from cudalock.errors import UsageError

__all__ = ["Detection", "Gpu", "SourceAnswer", "weigh"]

_Value = TypeVar("_Value")
OVERRIDE = "CONDA_OVERRIDE_CUDA"
DRIVER_TABLE = "table of driver branches"
_LONGEST_MASK = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU; a MIG slice has the capability of its parent and a ``uuid`` of its own."""

    name: str
    capability: ComputeCapability | None
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswer:
    """What one source said.

    ``absent`` is a source that this machine does not have, ``failed`` one that it has and that
    gave no usable answer; ``detail`` says why. ``driver_cuda`` is only what a source itself
    reports, never derived from the driver.
    """

    source: str
    status: Literal["answered", "absent", "failed"]
    detail: str = ""
    driver: DriverVersion | None = None
    driver_cuda: CudaVersion | None = None
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """What a machine has, with the source of each value that is taken.

    ``driver_cuda`` that no source reports is that of the driver's branch. A ``driver`` of
    ``None`` beside a ``driver_cuda`` is a machine whose driver has no number of its own.
    ``disagreements`` are sentences; the value of the earlier source is taken all the same.
    """

    answers: tuple[SourceAnswer, ...]
    driver: DriverVersion | None = None
    driver_source: str | None = None
    driver_cuda: CudaVersion | None = None
    driver_cuda_source: str | None = None
    gpus: tuple[Gpu, ...] = ()
    gpus_source: str | None = None
    tegra: bool = False
    wsl: bool = False
    disagreements: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether there is a driver to lock for."""
        return self.driver is not None or self.driver_cuda is not None

    @property
    def capabilities(self) -> tuple[ComputeCapability, ...]:
        """The compute capabilities of all GPUs, each once, ascending."""
        return tuple(sorted({gpu.capability for gpu in self.gpus if gpu.capability is not None}))


def weigh(
    answers: Sequence[SourceAnswer],
    *,
    override: CudaVersion | Literal["none"] | None = None,
    tegra: bool = False,
    wsl: bool = False,
    mask: str | None = None,
) -> Detection:
    """Take each value from the first of ``answers`` that has it, and say where others differ.

    ``override`` is what the user says the driver supports, ``none`` for no CUDA at all. It wins;
    a driver whose own CUDA it contradicts is then set aside, since the target is another machine.
    ``mask`` is what `CUDA_VISIBLE_DEVICES` says: a target is every GPU in the box, so it hides none.
    """
    driver, driver_source = _first(answers, lambda answer: answer.driver)
    cuda, cuda_source = _first(answers, lambda answer: answer.driver_cuda)
    gpus, gpus_source = _first(answers, _complete_gpus)
    if gpus is None:
        gpus, gpus_source = _first(answers, lambda answer: answer.gpus or None)
    tegra = tegra or any(gpu.capability and is_tegra(gpu.capability) for gpu in gpus or ())
    disagreements = _disagreements(answers)
    if mask is not None and gpus:
        disagreements += _masked(mask, answers, len(gpus))
    # The driver of a Jetson is numbered by its own scheme, which the branches do not follow.
    branch_cuda = None if driver is None or tegra else _branch_cuda(driver)
    if cuda is None:
        cuda, cuda_source = branch_cuda, None if branch_cuda is None else DRIVER_TABLE
    elif branch_cuda not in {None, cuda}:
        disagreements.append(
            f"{cuda_source} reports CUDA {cuda}, and driver {driver} ({driver_source}) is of a"
            f" branch that supports {branch_cuda}"
        )
    if override == "none":
        driver = cuda = gpus = driver_source = cuda_source = gpus_source = None
    elif override is not None:
        if cuda != override:
            if cuda is not None:
                disagreements.append(f"{OVERRIDE} says CUDA {override}, {cuda_source} says {cuda}")
            driver = driver_source = None
        cuda, cuda_source = override, OVERRIDE
    return Detection(
        answers=tuple(answers),
        driver=driver,
        driver_source=driver_source,
        driver_cuda=cuda,
        driver_cuda_source=cuda_source,
        gpus=gpus or (),
        gpus_source=gpus_source,
        tegra=tegra and override != "none",
        wsl=wsl,
        disagreements=tuple(disagreements),
    )


def _first(
    answers: Sequence[SourceAnswer], value: Callable[[SourceAnswer], _Value | None]
) -> tuple[_Value | None, str | None]:
    for answer in answers:
        found = value(answer)
        if found is not None:
            return found, answer.source
    return None, None


def _complete_gpus(answer: SourceAnswer) -> tuple[Gpu, ...] | None:
    complete = all(gpu.capability is not None for gpu in answer.gpus)
    return answer.gpus if answer.gpus and complete else None


def _branch_cuda(driver: DriverVersion) -> CudaVersion | None:
    try:
        known = driver_cuda(driver)
    except UsageError:
        return None
    return known.cuda


def _disagreements(answers: Sequence[SourceAnswer]) -> list[str]:
    """Word each answer that differs from the first one to the same question."""
    questions: tuple[tuple[str, Callable[[SourceAnswer], object | None]], ...] = (
        ("driver", lambda answer: answer.driver),
        ("CUDA", lambda answer: answer.driver_cuda),
        ("compute capabilities", _capability_list),
    )
    found = []
    for what, value in questions:
        first, source = _first(answers, value)
        for answer in answers:
            other = value(answer)
            if other is not None and other != first:
                found.append(f"{source} says {what} {first}, {answer.source} says {other}")
    return found


def _capability_list(answer: SourceAnswer) -> str | None:
    """Every GPU's capability, so that a source which sees fewer GPUs differs too."""
    known = sorted(gpu.capability for gpu in answer.gpus if gpu.capability is not None)
    return ", ".join(str(capability) for capability in known) or None


def _masked(mask: str, answers: Sequence[SourceAnswer], count: int) -> list[str]:
    """Say what `CUDA_VISIBLE_DEVICES` names that no source lists: a MIG slice, an unknown GPU.

    A slice is part of one of the GPUs and has its capability, so nothing is lost by taking all.
    """
    known = [gpu.uuid for answer in answers for gpu in answer.gpus if gpu.uuid is not None]
    unknown = [
        entry
        for part in mask[:_LONGEST_MASK].split(",")
        if (entry := part.strip()) and not _named(entry, known, count)
    ]
    if not unknown:
        return []
    shown = "".join(c for c in ", ".join(unknown) if c.isprintable())
    told = f"CUDA_VISIBLE_DEVICES names {shown}, which no source lists (a MIG slice, or a GPU of"
    all_count = "the one GPU counts" if count == 1 else f"all {count} GPUs count"
    return [f"{told} another machine): {all_count}, and a slice has the capability of its GPU"]


def _named(entry: str, known: Sequence[str], count: int) -> bool:
    """Whether an entry is the number of a GPU, or begins the UUID of one."""
    if entry.isdecimal() and entry.isascii():
        return int(entry[:9]) < count
    return any(uuid.startswith(entry) for uuid in known)
