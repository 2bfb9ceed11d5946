"""What NVIDIA's rules say: releases, drivers, architectures, and the labels that name them.

Typed values and pure functions. The rules are code, the numbers are data (``tables.toml``), so a
new CUDA release or GPU is a line there. Nothing here reads the machine, a wheel or the network:
which driver there is, is for ``host``; what a wheel holds, for ``wheel``; what follows for a set
of wheels, for ``resolver``.
"""

from cudalock.lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.cuda.arch import (
        Architecture,
        ComputeCapability,
        parse_architecture,
        parse_compute_capability,
    )
    from cudalock.cuda.compatibility import cubin_runs, is_tegra, ptx_accepts, ptx_compiles
    from cudalock.cuda.devices import capability_of, class_of
    from cudalock.cuda.drivers import (
        DriverCuda,
        default_ptx_isa,
        driver_cuda,
        floor_driver,
        forward_branches,
        forward_releases,
        known_majors,
        known_releases,
        l4t_cuda,
        newest_minor,
        ptx_minimum_cuda,
        toolkit_driver,
        toolkit_driver_row,
    )
    from cudalock.cuda.labels import LocalLabel, Rank, Vendor, parse_local_label, rank
    from cudalock.cuda.tables import (
        DeviceClass,
        System,
        Tables,
        parse_tables,
        shipped_tables,
        shipped_tables_text,
    )
    from cudalock.cuda.toolkits import Coverage, coverage, toolkit_targets
    from cudalock.cuda.version import (
        CudaVersion,
        DriverVersion,
        PtxIsa,
        cuda_from_number,
        parse_cuda_version,
        parse_driver_version,
        parse_ptx_isa,
    )

__all__ = [
    "Architecture",
    "ComputeCapability",
    "Coverage",
    "CudaVersion",
    "DeviceClass",
    "DriverCuda",
    "DriverVersion",
    "LocalLabel",
    "PtxIsa",
    "Rank",
    "System",
    "Tables",
    "Vendor",
    "capability_of",
    "class_of",
    "coverage",
    "cubin_runs",
    "cuda_from_number",
    "default_ptx_isa",
    "driver_cuda",
    "floor_driver",
    "forward_branches",
    "forward_releases",
    "is_tegra",
    "known_majors",
    "known_releases",
    "l4t_cuda",
    "newest_minor",
    "parse_architecture",
    "parse_compute_capability",
    "parse_cuda_version",
    "parse_driver_version",
    "parse_local_label",
    "parse_ptx_isa",
    "parse_tables",
    "ptx_accepts",
    "ptx_compiles",
    "ptx_minimum_cuda",
    "rank",
    "shipped_tables",
    "shipped_tables_text",
    "toolkit_driver",
    "toolkit_driver_row",
    "toolkit_targets",
]

__getattr__ = lazy_names(
    __name__,
    {
        "arch": (
            "Architecture",
            "ComputeCapability",
            "parse_architecture",
            "parse_compute_capability",
        ),
        "compatibility": ("cubin_runs", "is_tegra", "ptx_accepts", "ptx_compiles"),
        "devices": ("capability_of", "class_of"),
        "drivers": (
            "DriverCuda",
            "default_ptx_isa",
            "driver_cuda",
            "floor_driver",
            "forward_branches",
            "forward_releases",
            "known_majors",
            "known_releases",
            "l4t_cuda",
            "newest_minor",
            "ptx_minimum_cuda",
            "toolkit_driver",
            "toolkit_driver_row",
        ),
        "labels": ("LocalLabel", "Rank", "Vendor", "parse_local_label", "rank"),
        "tables": (
            "DeviceClass",
            "System",
            "Tables",
            "parse_tables",
            "shipped_tables",
            "shipped_tables_text",
        ),
        "toolkits": ("Coverage", "coverage", "toolkit_targets"),
        "version": (
            "CudaVersion",
            "DriverVersion",
            "PtxIsa",
            "cuda_from_number",
            "parse_cuda_version",
            "parse_driver_version",
            "parse_ptx_isa",
        ),
    },
)
