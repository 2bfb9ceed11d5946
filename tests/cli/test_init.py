"""`cudalock init` adds one target to a file, which `resolve` then reads."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import cudalock
from cudalock.cli import init
from cudalock.cli.main import main
from cudalock.project import parse_pyproject
from host_boxes import Box, RecordedNvml

_SCHEMA = Path(cudalock.__file__).parent / "cli" / "schemas" / "init-1.json"
_TEXT = '[project]  # mine\nname = "x"\nversion = "1"\n\n[tool.ruff]\nline-length = 9\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "pyproject.toml"
    path.write_text(_TEXT, encoding="utf-8", newline="")
    return path


def run(project: Path, *flags: str) -> int:
    return main(["init", "--project", str(project.parent), *flags])


def test_the_flags_become_the_target(project: Path) -> None:
    flags = ["--target", "blackwell", "--python", "3.12", "--platform", "linux-x86_64"]
    flags += ["--driver", "590.48.01", "--cuda", "13.0", "--sm", "12.0"]
    assert run(project, *flags) == 0
    text = project.read_text(encoding="utf-8")
    assert text.startswith(_TEXT)
    assert tomllib.loads(text)["tool"]["cudalock"]["targets"]["blackwell"] == {
        "python": "3.12",
        "platform": "linux-x86_64",
        "driver": "590.48.01",
        "cuda": "13.0",
        "sm": ["12.0"],
    }
    [target] = parse_pyproject(text, where="x").targets
    assert target.name == "blackwell"
    # Again, it changes nothing, not even the time.
    stamp = project.stat().st_mtime_ns
    assert run(project, *flags) == 0
    assert project.stat().st_mtime_ns == stamp


def test_without_flags_it_is_this_machine(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path / "root")
    box.nvml = RecordedNvml()
    monkeypatch.setattr(init, "detect", lambda _: box.detect())
    assert run(project) == 0
    table = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["cudalock"]["targets"]
    assert {key: table["default"][key] for key in ("driver", "cuda", "sm")} == {
        "driver": "590.48.01",
        "cuda": "13.1",
        "sm": ["12.0"],
    }


def test_a_machine_without_a_gpu_asks_for_flags_and_a_cpu_target_is_said_aloud(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "detect", lambda _: Box(tmp_path / "root").detect())
    assert run(project) == 2
    assert project.read_text(encoding="utf-8") == _TEXT
    assert run(project, "--target", "ci", "--cpu", "--python", "3.12") == 0
    [target] = parse_pyproject(project.read_text(encoding="utf-8"), where="x").targets
    assert target.options.cpu


def test_a_dry_run_prints_the_file_and_writes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "--cuda", "13.0", "--dry-run") == 0
    assert capsys.readouterr().out.startswith(_TEXT)
    assert project.read_text(encoding="utf-8") == _TEXT


def test_the_answer_as_data(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(project, "--cuda", "13.0", "--format", "json") == 0
    form = json.loads(capsys.readouterr().out)
    jsonschema.validate(form, json.loads(_SCHEMA.read_text(encoding="utf-8")))
    assert form["changed"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_marks_and_line_ends_of_windows_stay(project: Path, mark: bytes) -> None:
    old = mark + _TEXT.replace("\n", "\r\n").encode()
    project.write_bytes(old)
    assert run(project, "--cuda", "13.0") == 0
    new = project.read_bytes()
    assert new.startswith(old)
    assert new.count(b"\r\n") == new.count(b"\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: path.unlink(), "found none"),
        (lambda path: path.write_bytes(b"\xff"), "expected UTF-8"),
        (lambda path: path.write_text("[project"), "expected TOML"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot read it"),
        (lambda path: path.write_bytes(b"#" * (4 << 20) + b"##"), "expected at most"),
    ],
)
def test_a_file_that_cannot_be_added_to_is_told(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Path], object],
    words: str,
) -> None:
    change(project)
    assert run(project, "--cuda", "13.0") == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_name_that_is_no_files_is_refused(project: Path) -> None:
    assert run(project, "--target", "13.0", "--cuda", "13.0") == 2
    assert project.read_text(encoding="utf-8") == _TEXT
