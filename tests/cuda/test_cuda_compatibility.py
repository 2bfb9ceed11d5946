import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import (
    Architecture,
    ComputeCapability,
    CudaVersion,
    PtxIsa,
    cubin_runs,
    is_tegra,
    parse_architecture,
    parse_compute_capability,
    parse_cuda_version,
    ptx_accepts,
    ptx_compiles,
    ptx_minimum_cuda,
    shipped_tables,
)

MEASURED = tomllib.loads(
    Path(__file__).with_name("data").joinpath("ptxas.toml").read_text(encoding="utf-8")
)
DEVICES = sorted(shipped_tables().devices)
NUMBERS = sorted({target.number for known in shipped_tables().targets.values() for target in known})

devices = st.sampled_from(DEVICES)
codes = st.builds(Architecture, st.sampled_from(NUMBERS), st.sampled_from(["", "a", "f"]))
builds = st.none() | st.sampled_from(sorted(shipped_tables().targets))


def cubin(text: str, device: str, built_with: str | None = None) -> bool:
    return cubin_runs(
        parse_architecture(text),
        parse_compute_capability(device),
        built_with=None if built_with is None else parse_cuda_version(built_with),
    )


@pytest.mark.parametrize("compiler", MEASURED)
def test_ptx_goes_to_the_devices_that_the_real_compiler_assembles_it_for(compiler: str) -> None:
    rows: dict[str, str] = MEASURED[compiler]
    known = sorted({int(target.rstrip("af")) for target in rows})
    for target, accepted in rows.items():
        arch = parse_architecture(f"compute_{target}")
        ours = [
            number for number in known if ptx_accepts(arch, parse_compute_capability(str(number)))
        ]
        assert " ".join(map(str, ours)) == accepted, target


@pytest.mark.parametrize(
    ("code", "device"),
    [
        ("sm_120", "12.0"),
        ("sm_120", "12.1"),
        ("sm_80", "8.6"),
        ("sm_90a", "9.0"),
        ("sm_100f", "10.3"),
        ("sm_100f", "10.7"),
        ("sm_120f", "12.1"),
        ("sm_87", "8.7"),
        ("sm_87", "8.8"),
        ("sm_101", "11.0"),
        ("sm_101a", "11.0"),
        ("sm_101f", "11.0"),
        ("sm_110f", "10.1"),
    ],
)
def test_machine_code_runs(code: str, device: str) -> None:
    assert cubin(code, device)


@pytest.mark.parametrize(
    ("code", "device"),
    [
        ("sm_120a", "12.1"),
        ("sm_121", "12.0"),
        ("sm_100", "12.0"),
        ("sm_100f", "11.0"),
        ("sm_100", "10.1"),
        ("sm_101", "10.3"),
        ("sm_103f", "10.0"),
        ("sm_90", "10.0"),
        ("sm_86", "8.0"),
        ("sm_80", "8.7"),
        ("sm_87", "8.9"),
        ("sm_50", "5.3"),
        ("sm_53", "5.2"),
        ("compute_120", "12.0"),
    ],
)
def test_machine_code_does_not_run(code: str, device: str) -> None:
    assert not cubin(code, device)


@pytest.mark.parametrize("code", ["sm_80", "sm_86"])
def test_desktop_code_runs_on_tegra_when_built_with_13_2_or_newer(code: str) -> None:
    assert not cubin(code, "8.7", built_with="13.1")
    assert cubin(code, "8.7", built_with="13.2")
    assert not cubin("sm_50", "5.3", built_with="13.2")


@given(codes, devices, builds)
def test_every_device_runs_its_own_code(
    code: Architecture, device: ComputeCapability, built: CudaVersion | None
) -> None:
    own = Architecture(device.number, code.suffix)
    assert cubin_runs(own, device, built_with=built)
    assert ptx_accepts(Architecture(device.number, code.suffix, "compute"), device)


@given(codes, devices, builds)
def test_what_runs_as_machine_code_can_be_compiled_from_ptx_too(
    code: Architecture, device: ComputeCapability, built: CudaVersion | None
) -> None:
    if cubin_runs(code, device, built_with=built):
        assert ptx_accepts(Architecture(code.number, code.suffix, "compute"), device)


@given(codes, devices)
def test_a_narrower_architecture_never_runs_on_more(
    code: Architecture, device: ComputeCapability
) -> None:
    narrow = cubin_runs(Architecture(code.number, "a"), device, built_with=None)
    family = cubin_runs(Architecture(code.number, "f"), device, built_with=None)
    plain = cubin_runs(Architecture(code.number), device, built_with=None)
    assert narrow <= family <= plain


@given(codes, devices, builds)
def test_plain_machine_code_never_leaves_its_major(
    code: Architecture, device: ComputeCapability, built: CudaVersion | None
) -> None:
    alias = shipped_tables().alias
    if cubin_runs(code, device, built_with=built):
        majors = {alias.get(number, number) // 10 for number in (code.number, device.number)}
        assert len(majors) == 1


def test_families_are_those_of_the_table() -> None:
    for number, members in shipped_tables().family.items():
        for device in DEVICES:
            name = shipped_tables().alias.get(device.number, device.number)
            expected = name in {member.number for member in members}
            assert cubin_runs(Architecture(number, "f"), device, built_with=None) == expected


def test_a_family_nobody_listed_is_its_own_device() -> None:
    assert cubin("sm_150f", "15.0")
    assert not cubin("sm_150f", "15.1")


def test_machine_code_is_no_ptx() -> None:
    assert not ptx_accepts(parse_architecture("sm_90"), ComputeCapability(9, 0))


def test_ptx_compiles_when_the_driver_knows_its_isa() -> None:
    arch, device = parse_architecture("compute_90"), ComputeCapability(12, 0)
    assert ptx_compiles(arch, PtxIsa(9, 1), device, CudaVersion(13, 1))
    assert not ptx_compiles(arch, PtxIsa(9, 2), device, CudaVersion(13, 1))
    assert ptx_compiles(arch, PtxIsa(8, 5), device, CudaVersion(12, 5))
    assert not ptx_compiles(arch, PtxIsa(99, 0), device, CudaVersion(99, 0))
    assert not ptx_compiles(arch, PtxIsa(7, 0), ComputeCapability(8, 9), CudaVersion(13, 1))


@given(st.sampled_from(sorted(shipped_tables().ptx)), st.sampled_from(sorted(shipped_tables().ptx)))
def test_a_newer_isa_never_needs_an_older_driver(left: PtxIsa, right: PtxIsa) -> None:
    older, newer = sorted((left, right))
    needed = ptx_minimum_cuda(older), ptx_minimum_cuda(newer)
    assert needed[0] is not None
    assert needed[1] is not None
    assert needed[0] <= needed[1]


def test_tegra_devices_are_those_of_the_table_and_thor_is_not_one() -> None:
    assert is_tegra(ComputeCapability(8, 7))
    assert not is_tegra(ComputeCapability(8, 6))
    assert not is_tegra(ComputeCapability(11, 0))
