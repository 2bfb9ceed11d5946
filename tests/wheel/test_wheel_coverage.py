"""What device code means for a device: every ending of the rules, one library at a time."""

from collections import Counter

import pytest

from cudalock.cuda import (
    Architecture,
    ComputeCapability,
    CudaVersion,
    parse_architecture,
    parse_compute_capability,
    parse_cuda_version,
)
from cudalock.wheel.contents import LooseCode
from cudalock.wheel.coverage import (
    DeviceCoverage,
    coverage_of,
    loose_coverage,
    trace_compiler,
)
from cudalock.wheel.fatbin import DeviceCode
from cudalock.wheel.images import BareCubin, Image
from cudalock.wheel.library import Library, LibraryKind, Seen
from cudalock.wheel.serving import serves

_DRIVER = CudaVersion(13, 1)


def _image(text: str) -> Image:
    """Read ``sm_120a``, ``sm_90/1.7``, ``compute_120@9.0`` or ``lto_90``."""
    if text.startswith("lto_"):
        return Image(
            kind="lto", architecture=Architecture(int(text[4:]), "", "compute"), version=(1, 0)
        )
    name, _, isa = text.partition("@")
    if isa:
        major, minor = isa.split(".")
        return Image(
            kind="ptx", architecture=parse_architecture(name), version=(int(major), int(minor))
        )
    name, _, version = name.partition("/")
    return Image(
        kind="cubin",
        architecture=parse_architecture(name),
        version=(1, 7) if version == "1.7" else (1, 8),
    )


def _library(
    *containers: str,
    seen: Seen = "whole",
    kind: LibraryKind = "elf",
    bare: tuple[BareCubin, ...] = (),
    anomalies: tuple[str, ...] = (),
    damage: tuple[str, ...] = (),
) -> Library:
    """Return a library with containers such as ``"sm_90 sm_120a compute_120@9.0"``."""
    sets = Counter(frozenset(map(_image, text.split())) for text in containers)
    images = Counter(image for text in containers for image in map(_image, text.split()))
    code = DeviceCode(
        containers=len(containers),
        images=tuple(sorted(images.items())),
        sets=tuple(sets.items()),
        bare_cubins=tuple((cubin, 1) for cubin in bare),
        anomalies=damage,
    )
    return Library(
        path="left/_C.so", crc32=1, size=9, packed=9, kind=kind, seen=seen, code=code,
        anomalies=anomalies,
    )  # fmt: skip


def _cover(
    library: Library, sm: str = "12.0", driver: CudaVersion | None = _DRIVER
) -> DeviceCoverage:
    return coverage_of(library, parse_compute_capability(sm), driver)


@pytest.mark.parametrize(
    ("code", "sm", "answer"),
    [
        ("sm_120", "12.0", "yes"),
        ("sm_120", "12.1", "yes"),
        ("sm_120a", "12.0", "yes"),
        ("sm_120a", "12.1", "no"),
        ("sm_120f", "12.1", "yes"),
        ("sm_121", "12.0", "no"),
        ("sm_100f", "10.3", "yes"),
        ("sm_100f", "12.0", "no"),
        ("sm_80", "8.6", "yes"),
        ("sm_80", "8.9", "yes"),
        ("sm_86", "8.0", "no"),
        ("sm_90", "12.0", "no"),
        # Code of CUDA 13.2 crosses over to Tegra, older code does not, and this does not tell.
        ("sm_80", "8.7", "unknown"),
        ("compute_80@8.7", "12.0", "yes"),
        ("compute_120@9.1", "12.0", "yes"),
        ("compute_120@9.2", "12.0", "no"),
        ("compute_120@11.9", "12.0", "unknown"),
        ("compute_120a@9.0", "12.1", "no"),
        ("compute_120f@9.0", "12.1", "yes"),
        ("compute_121@9.0", "12.0", "no"),
        ("lto_90", "9.0", "unknown"),
    ],
)
def test_a_piece_of_code_runs_or_does_not_or_cannot_be_told(
    code: str, sm: str, answer: str
) -> None:
    capability = parse_compute_capability(sm)
    assert serves(_image(code), capability, driver_cuda=_DRIVER) == answer


@pytest.mark.parametrize(
    ("cubin", "sm", "answer"),
    [
        (BareCubin(number=120, suffix="a"), "12.0", "yes"),
        (BareCubin(number=120, suffix="a"), "12.1", "no"),
        (BareCubin(number=120, suffix=""), "12.1", "yes"),
        # Whatever its suffix is, it runs on the device it is named after.
        (BareCubin(number=120), "12.0", "yes"),
        (BareCubin(number=120), "12.1", "unknown"),
        (BareCubin(number=120), "9.0", "no"),
    ],
)
def test_a_cubin_without_a_suffix_is_judged_by_what_all_of_them_would_do(
    cubin: BareCubin, sm: str, answer: str
) -> None:
    assert serves(cubin, parse_compute_capability(sm), driver_cuda=None) == answer


def test_ptx_serves_nobody_whose_driver_is_unknown() -> None:
    answer = serves(_image("compute_80@8.0"), ComputeCapability(12, 0), driver_cuda=None)
    assert answer == "unknown"


def test_the_toolkit_decides_whether_code_crosses_to_tegra() -> None:
    orin = ComputeCapability(8, 7)
    for built_with, answer in (("13.2", "yes"), ("13.0", "no")):
        found = serves(
            _image("sm_80"), orin, driver_cuda=None, built_with=parse_cuda_version(built_with)
        )
        assert found == answer
    # PTX beside it tells which toolkit it was.
    assert _cover(_library("sm_80 compute_90@9.2"), "8.7").verdict == "covered"
    assert _cover(_library("sm_80 compute_90@9.0"), "8.7").verdict == "none"
    assert _cover(_library("sm_80"), "8.7").verdict == "unknown"
    told = coverage_of(_library("sm_80"), orin, None, built_with=CudaVersion(13, 0))
    assert told.verdict == "none"


@pytest.mark.parametrize(
    ("library", "verdict", "served", "units"),
    [
        (_library("sm_90 sm_120", "sm_120"), "covered", 2, 2),
        (_library("sm_90", "sm_120"), "partial", 1, 2),
        (_library("sm_90", "sm_90a"), "none", 0, 2),
        (_library(), "no-device-code", 0, 0),
        (_library("sm_90", seen="part"), "unknown", 0, 1),
        (_library("sm_120", seen="part"), "present", 1, 1),
        (_library("sm_120", seen="head"), "present", 1, 1),
        (_library(seen="nothing"), "unknown", 0, 0),
        (_library(seen="head"), "unknown", 0, 0),
        (_library(kind="windows"), "unknown", 0, 0),
        (_library("sm_90", anomalies=("a segment that ends beyond the file",)), "unknown", 0, 1),
        (_library("sm_90", damage=("a container that breaks off",)), "unknown", 0, 1),
        (_library("sm_120", "sm_90", damage=("a container inside another",)), "present", 1, 2),
        (_library("sm_120", "lto_90"), "present", 1, 2),
        (_library("lto_90"), "unknown", 0, 1),
        (_library("sm_90", ""), "unknown", 0, 2),
        (_library(bare=(BareCubin(number=90), BareCubin(number=120))), "covered", 1, 1),
        (_library(bare=(BareCubin(number=90),)), "none", 0, 1),
        # Beside containers they are instruments, and tell nothing of the kernels.
        (_library("sm_90", bare=(BareCubin(number=120),)), "none", 0, 1),
    ],
)
def test_a_library_is_judged_container_by_container(
    library: Library, verdict: str, served: int, units: int
) -> None:
    coverage = _cover(library)
    assert (coverage.verdict, coverage.served, coverage.units) == (verdict, served, units)
    proved = verdict in ("covered", "partial", "none", "no-device-code")
    assert (coverage.reason == "") is proved


def test_what_serves_by_machine_code_is_not_counted_as_ptx() -> None:
    coverage = _cover(_library("sm_120 compute_120@9.0", "sm_80 compute_80@8.7", "compute_80@9.3"))
    assert (coverage.by_cubin, coverage.by_ptx, coverage.units) == (1, 1, 3)
    assert coverage.verdict == "partial"
    unknown_driver = _cover(_library("sm_80 compute_80@8.7"), driver=None)
    assert unknown_driver.verdict == "unknown"


def _loose(code: BareCubin | Image | None, *, read: bool = True, anomaly: str = "") -> LooseCode:
    return LooseCode(path="k.cubin", crc32=0, size=9, code=code, read=read, anomaly=anomaly)


def test_files_of_device_code_are_counted_one_by_one() -> None:
    sm120, sm100 = _loose(BareCubin(number=120)), _loose(BareCubin(number=100, suffix="f"))
    ptx = _loose(_image("compute_80@8.0"))
    capability = ComputeCapability(12, 0)
    assert loose_coverage([sm100, sm100], capability, _DRIVER).verdict == "none"
    mixed = loose_coverage([sm120, sm100, ptx], capability, _DRIVER)
    assert (mixed.verdict, mixed.by_cubin, mixed.by_ptx, mixed.units) == ("partial", 1, 1, 3)
    assert loose_coverage([], capability, _DRIVER).verdict == "no-device-code"
    assert loose_coverage([sm120, _loose(None)], capability, _DRIVER).verdict == "present"


def test_files_that_were_not_read_or_contradict_their_names_prove_nothing() -> None:
    capability = ComputeCapability(12, 0)
    unread = _loose(BareCubin(number=100), read=False)
    assert loose_coverage([unread, unread], capability, None).verdict == "unknown"
    odd = loose_coverage([_loose(BareCubin(number=100), anomaly="odd"), unread], capability, None)
    assert (odd.verdict, odd.reason) == ("unknown", "k.cubin: odd")


@pytest.mark.parametrize(
    ("containers", "major_from", "major_to", "ptx"),
    [
        (["sm_80/1.7 sm_90/1.7", "sm_100"], None, 12, None),
        (["sm_80 sm_90", "sm_80 sm_90", "sm_80/1.7"], 13, None, None),
        (["sm_80", "sm_80/1.7"], None, None, None),
        (["sm_100 sm_120"], None, None, None),
        (["sm_80/1.7 compute_80@8.5 compute_90@8.7"], None, 12, "12.8"),
        (["compute_120@9.0"], None, None, "13.0"),
        (["compute_120@11.9"], None, None, None),
    ],
)
def test_cubins_and_ptx_bear_the_trace_of_their_compiler(
    containers: list[str], major_from: int | None, major_to: int | None, ptx: str | None
) -> None:
    trace = trace_compiler(_library(*containers).code)
    assert (trace.major_from, trace.major_to) == (major_from, major_to)
    assert trace.ptx_cuda == (None if ptx is None else parse_cuda_version(ptx))
