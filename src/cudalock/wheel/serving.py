"""Whether one piece of device code runs on a device: yes, no, or not to be told.

The rules are `cuda`'s; here the pieces are those of a wheel, of which something may be unknown: the
suffix of a cubin in no container, the driver, the compiler, what a linker would make of LTO-IR.
"""

from typing import Literal, TypeAlias

from cudalock.cuda import (
    Architecture,
    ComputeCapability,
    CudaVersion,
    PtxIsa,
    cubin_runs,
    ptx_accepts,
    ptx_minimum_cuda,
    shipped_tables,
)
from cudalock.wheel.images import BareCubin, Image

__all__ = ["Answer", "Piece", "serves"]

Answer: TypeAlias = Literal["yes", "no", "unknown"]
Piece: TypeAlias = Image | BareCubin


def serves(
    piece: Piece,
    capability: ComputeCapability,
    *,
    driver_cuda: CudaVersion | None,
    built_with: CudaVersion | None = None,
) -> Answer:
    """Tell whether a piece runs on a device, with a driver of ``driver_cuda`` for PTX.

    ``built_with`` is the release of the compiler, if known: from 13.2 on some machine code crosses
    between desktop and Tegra devices. LTO-IR is unknown: it runs nowhere before it is linked.
    """
    match piece:
        case BareCubin(number=number, suffix=None):
            return _any_suffix(number, capability, built_with)
        case BareCubin(number=number, suffix=suffix):
            return _cubin(Architecture(number, suffix or ""), capability, built_with)
        case Image(kind="cubin"):
            return _cubin(piece.architecture, capability, built_with)
        case Image(kind="ptx"):
            return _ptx(piece.architecture, PtxIsa(*piece.version), capability, driver_cuda)
        case _:
            return "unknown"


def _cubin(
    architecture: Architecture, capability: ComputeCapability, built_with: CudaVersion | None
) -> Answer:
    if cubin_runs(architecture, capability, built_with=built_with):
        return "yes"
    if built_with is None and cubin_runs(
        architecture, capability, built_with=shipped_tables().lifted_from
    ):
        return "unknown"
    return "no"


def _any_suffix(
    number: int, capability: ComputeCapability, built_with: CudaVersion | None
) -> Answer:
    answers = {
        _cubin(architecture, capability, built_with)
        for architecture in (
            Architecture(number),
            Architecture(number, "a"),
            Architecture(number, "f"),
        )
    }
    return answers.pop() if len(answers) == 1 else "unknown"


def _ptx(
    architecture: Architecture,
    isa: PtxIsa,
    capability: ComputeCapability,
    driver_cuda: CudaVersion | None,
) -> Answer:
    if not ptx_accepts(architecture, capability):
        return "no"
    # An ISA newer than the tables needs a CUDA that nothing here can compare with the driver's.
    needed = ptx_minimum_cuda(isa)
    if driver_cuda is None or needed is None:
        return "unknown"
    return "yes" if driver_cuda >= needed else "no"
