"""Recorded machines, one a file of `boxes/`: what their sources answered, and what follows.

Keys: ``about``, ``source`` (where the answers are from), ``nvml`` (driver, cuda as NVML's number,
gpus as name and capability), ``libcuda`` (lines of the child process), ``smi`` (its output),
``files`` (by path), ``environ``, ``expect``. A source that is not named is absent.
"""

import tomllib
from pathlib import Path

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
from host_boxes import box_paths, detect_box

_BOXES = box_paths()
_PYTHON = Interpreter(
    version="3.12.4",
    implementation="cpython",
    platform="manylinux_2_39_x86_64",
    free_threaded=False,
)


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
    found = detect_box(table, tmp_path)
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
