import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import (
    CudaVersion,
    DriverCuda,
    DriverVersion,
    PtxIsa,
    System,
    default_ptx_isa,
    driver_cuda,
    floor_driver,
    known_majors,
    known_releases,
    newest_minor,
    parse_cuda_version,
    parse_driver_version,
    ptx_minimum_cuda,
    shipped_tables,
    toolkit_driver,
    toolkit_driver_row,
)
from cudalock.errors import UsageError

TABLES = shipped_tables()
drivers = st.tuples(st.integers(450, 999), st.integers(0, 200)).map(
    lambda parts: parse_driver_version(f"{parts[0]}.{parts[1]:02}")
)


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("590.48.01", "13.1"), ("580.65.06", "13.0"), ("570.26", "12.8"), ("450.80.02", "11.0"),
     ("565.57.01", "12.7"), ("616.56", "13.4"), ("620.70.06", "13.5")],
)  # fmt: skip
def test_a_branch_tells_the_newest_cuda(driver: str, cuda: str) -> None:
    expected = DriverCuda(cuda=parse_cuda_version(cuda), exact=True)
    assert driver_cuda(parse_driver_version(driver)) == expected


@pytest.mark.parametrize(
    ("driver", "cuda"), [("600.10", "13.2"), ("537.13", "12.2"), ("700.1", "13.5")]
)
def test_an_unknown_branch_counts_as_the_nearest_older_one(driver: str, cuda: str) -> None:
    expected = DriverCuda(cuda=parse_cuda_version(cuda), exact=False)
    assert driver_cuda(parse_driver_version(driver)) == expected


def test_a_driver_older_than_every_branch_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"branch 450 \(CUDA 11\.0\) or newer, found 440\.33"
    ) as caught:
        driver_cuda(parse_driver_version("440.33"))
    assert caught.value.flag == "--driver"


@given(drivers, drivers)
def test_a_newer_driver_never_supports_less(left: DriverVersion, right: DriverVersion) -> None:
    older, newer = sorted((left, right))
    assert driver_cuda(older).cuda <= driver_cuda(newer).cuda


def test_the_driver_of_a_release_is_its_lowest_row() -> None:
    assert str(toolkit_driver(CudaVersion(12, 8))) == "570.26"
    assert str(toolkit_driver(CudaVersion(12, 8), system="windows")) == "570.65"
    assert str(toolkit_driver(CudaVersion(13, 0))) == "580.65.06"
    assert toolkit_driver(CudaVersion(13, 0), system="windows") is None
    assert toolkit_driver(CudaVersion(12, 7)) is None


def test_a_release_without_a_published_row_has_the_driver_seen_with_it() -> None:
    assert str(toolkit_driver(CudaVersion(13, 5))) == "620.70.06"
    assert str(toolkit_driver(CudaVersion(13, 4), system="windows")) == "616.56"


def test_a_toolkit_has_a_row_of_its_own() -> None:
    assert str(toolkit_driver_row("12.8.1")) == "570.124.06"
    assert str(toolkit_driver_row("12.8.1", system="windows")) == "572.61"
    assert str(toolkit_driver_row("12.8")) == "570.26"
    assert toolkit_driver_row("12.8.9") is None
    assert str(toolkit_driver_row("11.0.1")) == "450.36.06"


@pytest.mark.parametrize("text", ["12", "12.8.1.0", "12.8.x", "12.8.²", "12.8.", "cu128"])
def test_what_names_no_toolkit_is_refused(text: str) -> None:
    if text == "cu128":
        with pytest.raises(UsageError, match=r"toolkit as X\.Y\.Z \(12\.8\.1\), found `cu128`"):
            toolkit_driver_row(text)
    else:
        with pytest.raises(UsageError, match="expected"):
            toolkit_driver_row(text)


def test_the_driver_of_every_toolkit_supports_its_release() -> None:
    rows = [*TABLES.toolkit_driver["linux"].items(), *TABLES.toolkit_driver["windows"].items()]
    for (major, minor, _), driver in rows:
        assert driver_cuda(driver).cuda >= CudaVersion(major, minor), driver
    for system in TABLES.seen_driver.values():
        for cuda, driver in system.items():
            assert driver_cuda(driver).cuda == cuda


def test_every_update_of_a_release_needs_no_older_driver_than_the_one_before() -> None:
    for rows in TABLES.toolkit_driver.values():
        listed = list(rows.values())
        assert listed == sorted(listed)


def test_the_floor_of_a_major_is_published_on_both_systems_except_for_13_on_windows() -> None:
    floors: list[tuple[int, System, str]] = [
        (11, "linux", "450.80.02"),
        (12, "linux", "525.60.13"),
        (13, "linux", "580.65.06"),
        (12, "windows", "527.41"),
    ]
    for major, system, expected in floors:
        assert str(floor_driver(major, system=system)) == expected
    assert floor_driver(13, system="windows") is None
    assert floor_driver(10) is None


def test_majors_are_ascending_and_their_newest_release_is_known() -> None:
    assert known_majors() == (11, 12, 13)
    assert [str(newest_minor(major)) for major in known_majors()] == ["11.8", "12.9", "13.5"]
    assert newest_minor(99) is None


def test_the_releases_of_a_major_are_those_that_have_a_toolkit() -> None:
    told = [str(release) for release in known_releases(12)]
    assert told == ["12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.8", "12.9"]
    assert known_releases(99) == ()


@pytest.mark.parametrize(
    ("cuda", "isa"),
    [("11.8", "7.8"), ("12.0", "8.0"), ("12.5", "8.5"), ("12.6", "8.5"), ("12.8", "8.7"),
     ("12.9", "8.8"), ("13.0", "9.0"), ("13.1", "9.1"), ("13.5", "9.5")],
)  # fmt: skip
def test_a_compiler_writes_the_isa_that_was_measured(cuda: str, isa: str) -> None:
    assert str(default_ptx_isa(parse_cuda_version(cuda))) == isa


def test_the_isa_of_a_release_beyond_the_table_is_not_known() -> None:
    assert default_ptx_isa(CudaVersion(13, 6)) is None
    assert default_ptx_isa(CudaVersion(0, 1)) is None
    assert ptx_minimum_cuda(PtxIsa(9, 6)) is None
    assert ptx_minimum_cuda(PtxIsa(6, 5)) == CudaVersion(10, 2)
