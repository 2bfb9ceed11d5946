"""What runs where: machine code on a device, PTX through a driver.

The rules are NVIDIA's (CUDA C++ Programming Guide, "Application Compatibility" and "Feature
Sets"; Blackwell Compatibility Guide), the lists are the tables'. Each predicate speaks of one
piece of code. A library is usable if any of its pieces is; a wheel is judged library by library,
never by the union over it, and that is left to ``wheel``.
"""

from cudalock.cuda.arch import Architecture, ComputeCapability
from cudalock.cuda.drivers import ptx_minimum_cuda
from cudalock.cuda.tables import Tables, shipped_tables
from cudalock.cuda.version import CudaVersion, PtxIsa

__all__ = ["cubin_runs", "is_tegra", "ptx_accepts", "ptx_compiles"]


def cubin_runs(
    arch: Architecture,
    capability: ComputeCapability,
    *,
    built_with: CudaVersion | None,
    tables: Tables | None = None,
) -> bool:
    """Whether machine code for ``arch`` (an ``sm_`` one; no PTX is machine code) runs on a device.

    ``built_with`` is the release whose compiler made it: from 13.2 on, some desktop code runs on
    Tegra. Unknown (``None``) counts as older. True is NVIDIA's rule, not a promise of the library:
    FlashInfer refuses its own sm_120 code on 12.1.
    """
    if arch.kind != "sm":
        return False
    tables = tables or shipped_tables()
    code = _one_name(arch.number, tables)
    device = _one_name(capability.number, tables)
    if arch.suffix == "a":
        return code == device
    if arch.suffix == "f":
        return _in_family(code, device, tables)
    # Machine code runs on devices of its own major whose minor is not lower.
    if code // 10 != device // 10 or code > device:
        return False
    lifted = built_with is not None and built_with >= tables.lifted_from and code in tables.lifted
    same_line = is_tegra(arch.capability, tables=tables) == is_tegra(capability, tables=tables)
    return same_line or code == device or lifted


def ptx_accepts(
    arch: Architecture, capability: ComputeCapability, *, tables: Tables | None = None
) -> bool:
    """Whether PTX for ``arch`` (a ``compute_`` one) can be compiled for a device at all.

    Plain PTX goes to any device with a number not lower, across majors and lines: measured,
    compute_107 assembles for 11.0 and 12.0, and compute_101 for 10.3.
    """
    if arch.kind != "compute":
        return False
    tables = tables or shipped_tables()
    code = _one_name(arch.number, tables)
    device = _one_name(capability.number, tables)
    if arch.suffix == "a":
        return code == device
    if arch.suffix == "f":
        return _in_family(code, device, tables)
    return arch.number <= capability.number or code == device


def ptx_compiles(
    arch: Architecture,
    isa: PtxIsa,
    capability: ComputeCapability,
    driver_cuda: CudaVersion,
    *,
    tables: Tables | None = None,
) -> bool:
    """Whether a driver of ``driver_cuda`` compiles this PTX for this device.

    ``isa`` is the ``.version`` the PTX was written with, which decides, not the toolkit's name: a
    driver refuses newer PTX (CUDA_ERROR_UNSUPPORTED_PTX_VERSION). An ISA newer than the tables is
    not known to compile anywhere, so the answer is no.
    """
    if not ptx_accepts(arch, capability, tables=tables):
        return False
    needed = ptx_minimum_cuda(isa, tables=tables)
    return needed is not None and driver_cuda >= needed


def is_tegra(capability: ComputeCapability, *, tables: Tables | None = None) -> bool:
    """Whether a device is of the Tegra line that does not share machine code with desktop GPUs.

    Thor (11.0) is a Jetson but has no desktop sibling, and is not among them.
    """
    return capability in (tables or shipped_tables()).tegra


def _one_name(number: int, tables: Tables) -> int:
    return tables.alias.get(number, number)


def _in_family(code: int, device: int, tables: Tables) -> bool:
    if code == device:
        return True
    return any(device == _one_name(member.number, tables) for member in tables.family.get(code, ()))
