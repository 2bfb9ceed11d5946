"""Recorded machines, one a file of `boxes/`: what their sources answered, and what follows.

Keys: ``about``, ``source`` (where the answers are from), ``nvml`` (driver, cuda as NVML's number,
gpus as name and capability), ``libcuda`` (lines of the child process), ``smi`` (its output),
``files`` (by path), ``environ``, ``expect``. A source that is not named is absent.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from cudalock.errors import UsageError
from cudalock.host import (
    Detection,
    Interpreter,
    Target,
    TargetOptions,
    make_target,
    marker_environment,
)
from host_boxes import Box, RecordedNvml

_BOXES = sorted((Path(__file__).parent / "boxes").glob("*.toml"))
_PYTHON = Interpreter(
    version="3.12.4",
    implementation="cpython",
    platform="manylinux_2_39_x86_64",
    free_threaded=False,
)


def _detect(table: dict[str, Any], root: Path) -> Detection:
    box = Box(root)
    for name, text in table.get("files", {}).items():
        box.file(name, text)
    nvml = table.get("nvml")
    if nvml is not None:
        gpus = [(name, (major, minor)) for name, major, minor in nvml["gpus"]]
        box.nvml = RecordedNvml(driver=nvml["driver"], cuda=nvml.get("cuda"), gpus=gpus)
    box.cuda = table.get("libcuda", box.cuda)
    if "smi" in table:
        box.smi = table["smi"].lstrip("\n")
    return box.detect(table.get("environ", {}))


def _target(detection: Detection) -> Target:
    return make_target(TargetOptions(), named=None, detected=detection, interpreter=_PYTHON)


def test_there_are_boxes() -> None:
    assert len(_BOXES) > 12


@pytest.mark.parametrize("path", _BOXES, ids=lambda path: path.stem)
def test_a_recorded_machine_is_what_it_is(path: Path, tmp_path: Path) -> None:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    expect = table["expect"]
    assert table["about"].endswith(".")
    assert table["source"]
    found = _detect(table, tmp_path)
    if not expect.get("found", True):
        assert not found.found
        with pytest.raises(UsageError, match="no NVIDIA driver was found") as caught:
            _target(found)
        assert "--cpu" in caught.value.message
        return
    driver = None if found.driver is None else str(found.driver)
    assert driver == expect.get("driver")
    assert str(found.driver_cuda) == expect["cuda"]
    assert [str(capability) for capability in found.capabilities] == expect["capabilities"]
    assert len(found.gpus) == expect["gpus"]
    assert found.driver_source == expect.get("from")
    assert found.tegra is expect.get("tegra", False)
    assert found.wsl is expect.get("wsl", False)
    said = " | ".join(found.disagreements)
    assert all(words in said for words in expect.get("says", [])), said
    assert bool(said) is bool(expect.get("says"))
    target = _target(found)
    assert str(target.cuda) == expect["cuda"]
    assert not target.cpu
    # What sources disagree on reaches whoever locks for this machine.
    assert all(
        any(text == str(warning) for warning in target.warnings) for text in found.disagreements
    )
    assert target.driver_system == ("windows" if found.wsl else "linux")
    assert ("tegra" in marker_environment(target)["platform_release"]) is found.tegra
