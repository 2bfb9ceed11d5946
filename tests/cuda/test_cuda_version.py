import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import (
    CudaVersion,
    DriverVersion,
    PtxIsa,
    cuda_from_number,
    parse_cuda_version,
    parse_driver_version,
    parse_ptx_isa,
)
from cudalock.errors import CudalockError, UsageError

releases = st.builds(CudaVersion, st.integers(10, 99), st.integers(0, 99))
drivers = st.lists(st.integers(0, 999), min_size=1, max_size=3).map(
    lambda rest: ".".join(["590", *(f"{part:02}" for part in rest)])
)


@given(releases)
def test_a_release_reads_back_from_its_text_its_label_and_its_number(cuda: CudaVersion) -> None:
    assert parse_cuda_version(str(cuda)) == cuda
    assert parse_cuda_version(cuda.label) == cuda
    assert cuda_from_number(cuda.number) == cuda


@given(releases, releases)
def test_releases_are_ordered_by_number(left: CudaVersion, right: CudaVersion) -> None:
    assert (left < right) == (left.number < right.number)


def test_a_minor_of_two_digits_is_after_one_of_one_digit() -> None:
    assert parse_cuda_version("cu129") < parse_cuda_version("cu1210") < parse_cuda_version("cu130")
    assert CudaVersion(12, 10).label == "cu1210"


def test_capitals_and_spaces_around_a_release_do_not_matter() -> None:
    assert parse_cuda_version(" CU130 ") == parse_cuda_version("13.0 ") == CudaVersion(13, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "13",
        "cu13",
        "13.0.2",
        "013.0",
        "13.00",
        "cu1305",
        "cu92",
        "v13.0",
        "13,0",
        "\u0661\u0663.\u0660",
        "x" * 99,
    ],
)
def test_what_is_no_release_is_refused_with_both_forms(text: str) -> None:
    with pytest.raises(UsageError, match=r"X\.Y \(13\.0\).*\(cu130\), found `") as caught:
        parse_cuda_version(text)
    assert len(caught.value.message) < 160


def test_a_number_below_one_release_is_none() -> None:
    assert cuda_from_number(0) is None
    assert cuda_from_number(13010) == CudaVersion(13, 1)


@given(drivers, drivers)
def test_drivers_are_ordered_by_their_numbers(left: str, right: str) -> None:
    def numbers(text: str) -> list[int]:
        parts = [int(part) for part in text.split(".")]
        return parts + [0] * (4 - len(parts))

    ours = parse_driver_version(left), parse_driver_version(right)
    assert (ours[0] < ours[1]) == (numbers(left) < numbers(right))
    assert (ours[0] == ours[1]) == (numbers(left) == numbers(right))


@given(drivers)
def test_a_driver_is_printed_as_it_was_written(text: str) -> None:
    assert str(parse_driver_version(text)) == text
    assert parse_driver_version(text).branch == 590


def test_zeros_of_a_driver_do_not_count() -> None:
    assert parse_driver_version("570.26") == parse_driver_version("570.26.00")
    assert hash(parse_driver_version("570.26.1")) == hash(parse_driver_version("570.26.01"))
    assert parse_driver_version("570.26") < parse_driver_version("570.124.06")
    assert parse_driver_version("570.0.0") == DriverVersion((570,), "570.0.0")


@pytest.mark.parametrize("text", ["", "590", "590.", "590.48.01.1.1", "590.x", "-590.48", "5.1"])
def test_what_is_no_whole_driver_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"driver version with all its numbers.*found `"):
        parse_driver_version(text)


@given(st.builds(PtxIsa, st.integers(0, 99), st.integers(0, 99)))
def test_a_ptx_isa_reads_back(isa: PtxIsa) -> None:
    assert parse_ptx_isa(str(isa)) == isa


def test_what_is_no_ptx_isa_is_refused() -> None:
    with pytest.raises(UsageError, match=r"X\.Y \(8\.5\), found `8`"):
        parse_ptx_isa("8")


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused_with_our_error(text: str) -> None:
    for parse in (parse_cuda_version, parse_driver_version, parse_ptx_isa):
        try:
            value = parse(text)
        except CudalockError:
            continue
        assert parse(str(value)) == value
