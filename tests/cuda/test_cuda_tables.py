import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cudalock.cuda as room
from cudalock.cuda import (
    Architecture,
    ComputeCapability,
    CudaVersion,
    DriverCuda,
    PtxIsa,
    Tables,
    capability_of,
    coverage,
    cubin_runs,
    default_ptx_isa,
    driver_cuda,
    floor_driver,
    is_tegra,
    known_majors,
    newest_minor,
    parse_architecture,
    parse_cuda_version,
    parse_driver_version,
    parse_local_label,
    parse_tables,
    ptx_accepts,
    ptx_compiles,
    ptx_minimum_cuda,
    shipped_tables,
    shipped_tables_text,
    toolkit_driver,
    toolkit_driver_row,
    toolkit_targets,
)
from cudalock.errors import UsageError

NEXT_YEAR = {
    "[toolkit_driver.linux]": '"14.2.0" = "700.10.02"',
    "[floor.linux]": '14 = "680.10.01"',
    "[branch.cuda]": '700 = "14.2"',
    "[ptx.cuda]": '"10.2" = "14.2"',
    "[targets.sm]": '"14.2" = "90 120 140 140a 140f 141"',
    "[family.members]": '140 = "14.0 14.1"',
    "[device.capability]": '"14.0" = ["F100"]\n"14.1" = ["RTX 6090"]',
}


@pytest.fixture(scope="module")
def next_year() -> Tables:
    text = shipped_tables_text()
    for section, line in NEXT_YEAR.items():
        assert text.count(f"{section}\n") == 1
        text = text.replace(f"{section}\n", f"{section}\n{line}\n")
    return parse_tables(text)


def test_a_new_release_and_a_new_architecture_need_data_only(next_year: Tables) -> None:
    cuda, device = parse_cuda_version("cu142"), ComputeCapability(14, 0)
    driver = parse_driver_version("700.12.01")
    assert driver_cuda(driver, tables=next_year) == DriverCuda(cuda=cuda, exact=True)
    assert str(toolkit_driver(cuda, tables=next_year)) == "700.10.02"
    assert str(toolkit_driver_row("14.2.0", tables=next_year)) == "700.10.02"
    assert str(floor_driver(14, tables=next_year)) == "680.10.01"
    assert known_majors(tables=next_year) == (11, 12, 13, 14)
    assert newest_minor(14, tables=next_year) == cuda
    assert ptx_minimum_cuda(PtxIsa(10, 2), tables=next_year) == cuda
    assert default_ptx_isa(cuda, tables=next_year) == PtxIsa(10, 2)
    targets = toolkit_targets(cuda, tables=next_year)
    assert targets is not None
    assert Architecture(140, "f") in targets
    assert coverage(cuda, device, tables=next_year) == "native"
    assert coverage(cuda, ComputeCapability(7, 5), tables=next_year) == "absent"
    assert capability_of("NVIDIA GeForce RTX 6090", tables=next_year) == ComputeCapability(14, 1)
    assert capability_of("6090", tables=next_year) == ComputeCapability(14, 1)
    assert not is_tegra(device, tables=next_year)
    family = parse_architecture("sm_140f")
    assert cubin_runs(family, ComputeCapability(14, 1), built_with=cuda, tables=next_year)
    ptx = parse_architecture("compute_140f")
    assert ptx_accepts(ptx, ComputeCapability(14, 1), tables=next_year)
    assert ptx_compiles(ptx, PtxIsa(10, 2), device, cuda, tables=next_year)
    assert parse_local_label("cu142.sm140", tables=next_year).cuda == cuda


def test_the_shipped_tables_do_not_know_next_year() -> None:
    assert floor_driver(14) is None
    assert coverage(CudaVersion(14, 2), ComputeCapability(14, 0)) == "unknown"


def test_every_table_names_its_source() -> None:
    for name, table in tomllib.loads(shipped_tables_text()).items():
        assert len(table["source"]) > 20, name


def test_the_tables_are_read_once() -> None:
    assert shipped_tables() is shipped_tables()


def test_every_architecture_and_device_of_one_table_fits_the_others() -> None:
    tables = shipped_tables()
    named = {target.number for targets in tables.targets.values() for target in targets}
    devices = set(tables.devices) | tables.tegra
    assert set(tables.family) <= named
    assert set(tables.alias) | set(tables.alias.values()) <= named
    assert tables.lifted <= named
    for members in tables.family.values():
        assert members <= devices
    for floor in tables.floor.values():
        for major, driver in floor.items():
            assert driver_cuda(driver) == DriverCuda(cuda=CudaVersion(major, 0), exact=True) or (
                driver_cuda(driver).cuda.major == major
            )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[targets]", "[targets", "expected TOML: "),
        ("[branch.cuda]", "[branch.moved]", r"branch\.cuda: expected a value, found none"),
        ("[branch.cuda]", "[branch]\ncuda = 1\n[elsewhere]", "expected TOML|expected a table"),
        ('11 = "450.80.02"', 'eleven = "450.80.02"', r"floor\.linux\.eleven: invalid literal"),
        ('11 = "450.80.02"', "11 = 450", r"floor\.linux\.11: expected a string, found `450`"),
        ('11 = "450.80.02"', '11 = "450"', r"floor\.linux\.11: expected a driver version"),
        ('"11.0.1" = ', '"11.0" = ', r"toolkit_driver\.linux\.11\.0: not enough values"),
        ('"9.5" = "13.5"', '"9.5" = "13"', r"ptx\.cuda\.9\.5: expected a CUDA release"),
        ("101 = 110", '101 = "110"', r"alias\.number\.101: expected a whole number"),
        ('["B300", "GB300"]', '"B300"', r"device\.capability\.10\.3: expected a list of names"),
        ('["B300", "GB300"]', "[300]", r"device\.capability\.10\.3: expected a string"),
        ('from = "13.2"', "from = 13.2", r"tegra\.lifted\.from: expected a string"),
        ('from = "13.2"', 'from = "13"', r"tegra\.lifted\.from: expected a CUDA release"),
    ],
)
def test_a_broken_table_is_refused_with_its_key(old: str, new: str, message: str) -> None:
    text = shipped_tables_text().replace(old, new, 1)
    assert text != shipped_tables_text()
    with pytest.raises(UsageError, match=message) as caught:
        parse_tables(text, where="mine.toml")
    assert caught.value.where == "mine.toml"


def test_a_table_in_the_place_of_a_table_must_be_one() -> None:
    text = shipped_tables_text()
    start, end = text.index("[alias.number]"), text.index("# Devices of the Tegra line")
    with pytest.raises(UsageError, match=r"alias\.number: expected a table, found `5`"):
        parse_tables(f"{text[:start]}number = 5\n{text[end:]}")


def test_the_room_imports_no_other_room() -> None:
    for path in Path(str(room.__file__)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cudalock"):
                # How names are imported when they are used is no room.
                allowed = ("cudalock.cuda", "cudalock.errors", "cudalock.lazy")
                assert (node.module or "").startswith(allowed)


def test_importing_the_room_reads_no_table() -> None:
    code = (
        "import sys, cudalock.cuda;"
        "from cudalock.cuda.tables import shipped_tables;"
        "print(shipped_tables.cache_info().currsize, 'tomllib' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["0", "False"]


def test_all_public_names_are_exported_once_and_in_order() -> None:
    assert room.__all__ == sorted(set(room.__all__), key=lambda name: (name[0].islower(), name))
    for name in room.__all__:
        assert hasattr(room, name)
