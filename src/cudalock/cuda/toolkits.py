"""What the compiler of a CUDA release makes machine code for, and what follows from that alone.

A wheel of CUDA 13 has no machine code for 7.0 and one of CUDA 12.6 none for 12.0, whatever is in
it: the release proves it before a byte was read. What a wheel does hold is for ``wheel`` to say.
"""

from typing import Literal, TypeAlias

from cudalock.cuda.arch import Architecture, ComputeCapability
from cudalock.cuda.compatibility import cubin_runs, ptx_accepts
from cudalock.cuda.tables import Tables, shipped_tables
from cudalock.cuda.version import CudaVersion

__all__ = ["Coverage", "coverage", "toolkit_targets"]

Coverage: TypeAlias = Literal["native", "ptx-only", "absent", "unknown"]


def toolkit_targets(
    cuda: CudaVersion, *, tables: Tables | None = None
) -> tuple[Architecture, ...] | None:
    """Return the architectures that the compiler of ``cuda`` makes machine code for, ascending.

    ``None`` for a release that was not measured.
    """
    return (tables or shipped_tables()).targets.get(cuda)


def coverage(
    cuda: CudaVersion, capability: ComputeCapability, *, tables: Tables | None = None
) -> Coverage:
    """Tell how code built with ``cuda`` can serve a device.

    - ``native``: machine code for some target of the release runs on it;
    - ``ptx-only``: none does, and PTX for some target can be compiled for it;
    - ``absent``: neither, it is below the lowest target;
    - ``unknown``: the release was not measured, and its measured neighbours prove nothing.

    Inside a major, releases only gain targets. So a release that was not measured has at least
    those of the nearest older one of its major, which proves ``native``, and being above the
    floor of its major too it has no lower one, which proves ``absent``; and it has at most those
    of the nearest newer one, which proves ``ptx-only``.
    """
    tables = tables or shipped_tables()
    if cuda in tables.targets:
        return _served(cuda, tables.targets[cuda], capability, tables)
    same_major = [known for known in tables.targets if known.major == cuda.major]
    older = max((known for known in same_major if known < cuda), default=None)
    newer = min((known for known in same_major if known > cuda), default=None)
    if older is not None:
        verdict = _served(cuda, tables.targets[older], capability, tables)
        if verdict in ("native", "absent"):
            return verdict
    if newer is not None and _served(cuda, tables.targets[newer], capability, tables) == "ptx-only":
        return "ptx-only"
    return "unknown"


def _served(
    cuda: CudaVersion,
    targets: tuple[Architecture, ...],
    capability: ComputeCapability,
    tables: Tables,
) -> Literal["native", "ptx-only", "absent"]:
    if any(cubin_runs(target, capability, built_with=cuda, tables=tables) for target in targets):
        return "native"
    # PTX can be written for every target. `a` and `f` reach no further than their machine code.
    if any(
        ptx_accepts(Architecture(target.number, "", "compute"), capability, tables=tables)
        for target in targets
    ):
        return "ptx-only"
    return "absent"
