"""A CUDA release and an architecture of the years to come are lines of data: no code knows a number."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudalock.cuda import (
    CudaVersion,
    coverage,
    driver_cuda,
    labels,
    parse_architecture,
    parse_compute_capability,
    parse_driver_version,
    shipped_tables_text,
    tables,
)
from cudalock.errors import UsageError
from cudalock.host import Interpreter, Target, TargetOptions, make_target
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.request import Request, Requested
from cudalock.session import IndexOptions, Session
from cudalock.wheel import evidence
from cudalock.wheel.names import parse_requirement
from default_index_site import default_index
from publisher_worlds import INDICES, publisher_site

_NEW = {
    "[branch.cuda]": '700 = "14.2"',
    "[floor.linux]": '14 = "690.10.01"',
    "[toolkit_driver.linux]": '"14.2.0" = "700.20.02"',
    "[ptx.cuda]": '"10.2" = "14.2"',
    "[targets.sm]": '"14.2" = "100 120 140 140a"',
    "[family.members]": '140 = "14.0"',
    "[device.capability]": '"14.0" = ["RTX 9090", "N1"]',
}
_PUBLISHER = """
name = "future"
dialect = "simple"
labels = ["local", "none"]
projects = ["torch"]
source = "a test"

[templates]
stable = ["{url}/whl/{{cuda}}"]
"""
_INTERPRETER = Interpreter(
    version="3.12.4",
    implementation="cpython",
    platform="manylinux_2_39_x86_64",
    free_threaded=False,
)


def _forget() -> None:
    """What was read with other tables is kept in a few memos."""
    tables.shipped_tables.cache_clear()
    labels._parse_shipped.cache_clear()
    evidence.label_of.cache_clear()


@pytest.fixture
def next_year(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    text = shipped_tables_text()
    for head, line in _NEW.items():
        assert text.count(f"{head}\n") == 1
        text = text.replace(f"{head}\n", f"{head}\n{line}\n")
    monkeypatch.setattr(tables, "shipped_tables_text", lambda: text)
    _forget()
    yield
    monkeypatch.undo()
    _forget()


def _target(
    *,
    cuda: str | None = None,
    driver: str | None = None,
    sm: tuple[str, ...] = (),
    gpu: tuple[str, ...] = (),
) -> Target:
    given = TargetOptions(cuda=cuda, driver=driver, sm=sm, gpu=gpu)
    return make_target(given, named=None, detected=None, interpreter=_INTERPRETER)


def _resolve(tmp_path: Path, target: Target, *names: str) -> str:
    folder = tmp_path / "indices"
    shutil.copytree(INDICES / "knowledge", folder / "knowledge")
    pages: dict[str, bytes] = {}
    for name in names:
        label = name.partition("+")[2].partition("-")[0]
        href = f"/files/{name.replace('+', '%2B')}"
        page = pages.get(f"/whl/{label}/torch", b"<!DOCTYPE html>\n")
        pages[f"/whl/{label}/torch"] = page + f"<a href='{href}'>{name}</a>\n".encode()
    with (
        publisher_site(tmp_path / "wheels", pages) as site,
        default_index(tmp_path / "default") as default,
    ):
        (folder / "future.toml").write_text(_PUBLISHER.format(url=site.url), encoding="utf-8")
        requested = Requested(requirement=parse_requirement("torch"), where="test")
        with Session(IndexOptions(default_index=default.url, directory=folder)) as session:
            found = session.resolve(Request(requirements=(requested,)), target)
    (package,) = found.packages
    return str(package.version)


_WHEELS = (
    "torch-9.9.0+cu142-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-9.9.0+cu140-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-9.9.1+cu143-cp312-cp312-manylinux_2_28_x86_64.whl",
)


@pytest.mark.usefixtures("next_year")
def test_a_release_an_architecture_and_an_index_folder_need_data_only(tmp_path: Path) -> None:
    target = _target(cuda="14.2", sm=("14.0",))
    assert target.cuda == CudaVersion(14, 2)
    assert _resolve(tmp_path, target, *_WHEELS) == "9.9.0+cu142"


@pytest.mark.usefixtures("next_year")
def test_a_driver_and_a_gpu_of_next_year_are_known_by_name(tmp_path: Path) -> None:
    target = _target(driver="700.20.02", gpu=("rtx-9090",))
    assert target.driver_cuda == CudaVersion(14, 2)
    assert target.capabilities == (parse_compute_capability("14.0"),)
    assert driver_cuda(parse_driver_version("700.20.02")).exact
    assert coverage(CudaVersion(14, 2), target.capabilities[0]) == "native"
    assert str(parse_architecture("sm_140a")) == "sm_140a"
    assert _resolve(tmp_path, target, *_WHEELS) == "9.9.0+cu142"


@pytest.mark.usefixtures("next_year")
def test_a_gpu_that_the_new_release_no_longer_serves_is_refused_by_it(tmp_path: Path) -> None:
    with pytest.raises(NoSolutionError) as caught:
        _resolve(tmp_path, _target(cuda="14.2", sm=("7.5",)), _WHEELS[0])
    told = [fact.fact.detail for fact in caught.value.conflict.facts]
    assert any("CUDA 14.2, which has no sm_75" in text for text in told), told


def test_without_the_data_a_driver_of_next_year_counts_as_the_nearest_older_one() -> None:
    target = _target(driver="700.20.02", sm=("14.0",))
    assert target.driver_cuda == CudaVersion(13, 5)
    assert any(warning.code == "unknown-driver-branch" for warning in target.warnings)
    with pytest.raises(UsageError, match="rtx-9090"):
        _target(driver="700.20.02", gpu=("rtx-9090",))
