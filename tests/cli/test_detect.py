"""What ``cudalock detect`` shows of a recorded machine."""

import json
from pathlib import Path

import pytest

from cudalock.cli import detect as command
from cudalock.cli.main import main
from host_boxes import Box

_SAYS = "/sys/module/nvidia/version says driver 610.47, nvidia-smi says 610.43.02"


@pytest.fixture
def disagreeing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this machine one whose kernel has another driver than its tools."""
    box = Box(tmp_path)
    box.file("sys/module/nvidia/version", "610.47\n")
    box.cuda = "version 13030\ndevice 12 0 NVIDIA GeForce RTX 5090\n"
    box.smi = "610.43.02, 12.0, NVIDIA GeForce RTX 5090, GPU-0\n"
    monkeypatch.setattr(command, "detect", lambda _: box.detect())


@pytest.mark.usefixtures("disagreeing")
def test_what_sources_disagree_on_is_shown_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect"]) == 0
    told = capsys.readouterr()
    assert _SAYS in " ".join(told.err.split())
    assert "driver 610.43.02" in told.out
    assert "driver 610.47" in told.out


@pytest.mark.usefixtures("disagreeing")
def test_what_sources_disagree_on_is_shown_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "--format", "json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert form["disagreements"] == [_SAYS]
    assert form["driver"] == "610.47"
    assert {each["driver"] for each in form["sources"]} == {None, "610.47", "610.43.02"}
