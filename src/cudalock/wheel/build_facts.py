"""Kinds of knowledge about builds of a project: their device code, their C++ ABI, what compiles it.

They are entries of `knowledge.py`, which says what each kind means; each has a source and a date.
"""

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.wheel.device_code import DeviceCode

__all__ = ["Architectures", "BundledCompiler", "CpuBuild", "CxxAbi", "JitFloor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architectures:
    """The device code of builds ``versions`` of ``project``.

    Narrowed to builds for the ``cuda`` releases and for the ``machine`` that are named, if any are,
    and with ``untagged`` to the build without a local label.
    """

    project: str
    versions: SpecifierSet
    code: DeviceCode
    cuda: frozenset[CudaVersion] = frozenset()
    machine: str | None = None
    untagged: bool = False
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuBuild:
    """The build without a label of releases ``versions`` on the default index has no CUDA.

    ``machine`` is that of Linux, or ``win_amd64``.
    """

    project: str
    versions: SpecifierSet
    machine: str
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CxxAbi:
    """Builds ``versions`` of ``project`` have the new C++ ABI of libstdc++, or the old one.

    Narrowed to builds for the ``cuda`` releases that are named, if any are.
    """

    project: str
    versions: SpecifierSet
    new: bool
    cuda: frozenset[CudaVersion] = frozenset()
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JitFloor:
    """Releases ``versions`` of ``project`` compile for ``capabilities`` from ``toolkit`` on."""

    project: str
    versions: SpecifierSet
    capabilities: frozenset[ComputeCapability]
    toolkit: CudaVersion
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledCompiler:
    """Releases ``versions`` of ``project`` compile with a ptxas of ``cuda`` that they carry.

    ``remedy`` says what to do where that one does not know a GPU.
    """

    project: str
    versions: SpecifierSet
    cuda: CudaVersion
    remedy: str
    source: str
    date: str = ""
