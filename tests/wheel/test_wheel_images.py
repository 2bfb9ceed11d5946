"""Heads and names of files that are one piece of device code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import Architecture, PtxIsa
from cudalock.wheel.images import (
    architecture_in_name,
    architectures_in_notes,
    parse_cubin_head,
    parse_ptx_head,
)
from fatbin_builder import cubin_file


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (cubin_file(75, abi="old"), "sm_75"),
        (cubin_file(90, abi="old"), "sm_90"),
        (cubin_file(90, "a", abi="old"), "sm_90a"),
        (cubin_file(120, "a", abi="cuda12"), "sm_120a"),
        # CUDA 13 writes one header for all three.
        (cubin_file(120, "a", abi="cuda13"), "sm_120?"),
        (cubin_file(120, abi="cuda13"), "sm_120?"),
        (cubin_file(89, abi="cuda13"), "sm_89"),
        (cubin_file(80, abi="cuda13", elf_type=1), "sm_80"),
    ],
)
def test_the_head_of_a_cubin_tells_its_number_and_sometimes_its_suffix(
    data: bytes, shown: str
) -> None:
    assert str(parse_cubin_head(data)) == shown


def _with(place: int, value: int) -> bytes:
    data = bytearray(cubin_file(90, abi="old"))
    data[place] = value
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        cubin_file(90)[:63],
        _with(0, 0),
        _with(4, 1),
        _with(7, 0x20),
        _with(16, 3),
        _with(18, 62),
        _with(48, 91),
        cubin_file(5),
    ],
)
def test_what_is_no_cubin_is_none(data: bytes) -> None:
    assert parse_cubin_head(data) is None


@given(st.binary(max_size=80))
def test_any_bytes_are_a_cubin_or_none(data: bytes) -> None:
    assert parse_cubin_head(data) is None
    parse_ptx_head(data)
    architectures_in_notes(data)


@pytest.mark.parametrize(
    ("text", "shown", "isa"),
    [
        ("// made by nvcc\n.version 9.0\n.target sm_120a\n", "compute_120a", PtxIsa(9, 0)),
        (".version 7.8\r\n.target sm_90, debug\r\n", "compute_90", PtxIsa(7, 8)),
        ("\t.version 8.7\n\t.target sm_100f\n", "compute_100f", PtxIsa(8, 7)),
    ],
)
def test_the_head_of_ptx_tells_target_and_isa(text: str, shown: str, isa: PtxIsa) -> None:
    image = parse_ptx_head(text.encode())
    assert image is not None
    assert str(image.architecture) == shown
    assert image.isa == isa


@pytest.mark.parametrize(
    "text", ["", ".version 9.0\n", ".target sm_90\n", ".target sm_9\n.version 9\n"]
)
def test_what_is_no_ptx_is_none(text: str) -> None:
    assert parse_ptx_head(text.encode()) is None


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("fmhaSm100fKernel_QkvBfloat16.cubin", Architecture(100, "f")),
        ("FmhaSm100aKernel.cubin", Architecture(100, "a")),
        ("bmm_Bfloat16_sm103a.cubin", Architecture(103, "a")),
        ("kernel.sm_120.cubin", Architecture(120)),
        ("SM90_gemm.cubin", Architecture(90)),
        ("kernel.sm_90a.sm_90a.cubin", Architecture(90, "a")),
        ("kernel_sm_90_sm_100.cubin", None),
        ("kernel_prism90.cubin", None),
        ("kernel_sm_1000.cubin", None),
        ("kernel_sm90b.cubin", None),
        ("gemm_128x64.cubin", None),
    ],
)
def test_a_name_tells_an_architecture_only_when_it_tells_one(
    name: str, architecture: Architecture | None
) -> None:
    assert architecture_in_name(name) == architecture


def test_the_note_of_an_assembler_tells_the_suffix_that_the_head_does_not() -> None:
    data = cubin_file(120, note="ptxas -arch sm_120a ")
    assert architectures_in_notes(data) == {Architecture(120, "a")}
    assert len(architectures_in_notes(b"-arch sm_90 -arch sm_90a.")) == 2
    # It may go on behind the bytes that are here.
    assert architectures_in_notes(b"-arch sm_120") == frozenset()
