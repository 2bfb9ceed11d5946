"""What a person reads: 80 columns, colour only where it is wanted, data on stdout alone."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import jsonschema
import pytest

from cudalock.cli.main import main
from cudalock.cli.terminal import Status, Terminal, printable
from cudalock.explain.report import format_conflict
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.resolution import solve
from default_index_site import Site, default_index, stock_demo
from scenario_worlds import read_scenario, scenario_paths

_REPOSITORY = Path(__file__).parents[2]
_EXAMPLE = _REPOSITORY / "examples" / "blackwell-sglang"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with default_index(tmp_path_factory.mktemp("words") / "files") as site:
        stock_demo(site)
        yield site


def _told(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str]:
    flags = ["--default-index", demo.url, "--cache-dir", str(tmp_path / "cache"), "--dry-run"]
    # A lock that `make demo` left in the example is no part of the test.
    flags.append("--upgrade")
    code = main(["resolve", *arguments, *flags])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert all(len(line) <= 80 or " " not in line.strip() for line in captured.err.splitlines())
    return code, captured.err.replace(demo.url, "<default>").replace(str(_REPOSITORY), "<here>")


def test_the_demonstration_reads_well(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = _told(demo, tmp_path, capsys, "--project", str(_EXAMPLE), "--recorded")
    assert code == 0
    assert "The target is driver 590.48.01 (CUDA 13.1)" in told
    assert "note: held back: torch 2.12.0 to 2.14.0 on `pytorch`, because sglang-kernel" in told
    assert "The set needs NVIDIA driver 580.65.06 or newer (strict)." in told
    assert "\x1b" not in told


def test_colour_reaches_the_terminal_as_colour(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--default-index", demo.url, "--cache-dir", str(tmp_path / "c"), "--color", "always"]
    assert main(["resolve", "filelock", "--cpu", *flags, "--only-default-index", "--dry-run"]) == 0
    told = capsys.readouterr().err
    assert "\x1b[1;32mResolved 1 package\x1b[0m with" in told
    assert "\\x1b" not in told


def test_a_refusal_reads_well(
    demo: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(_EXAMPLE / "nightly")
    code, told = _told(demo, tmp_path, capsys, "--recorded")
    assert code == 1
    joined = " ".join(told.split())
    assert joined.index("The target is") < joined.index("Because") < joined.index("hint:")
    assert "sgl-kernel 0.3.21+cu130 is built for torch 2.9 (METADATA of sglang 0.5.8" in joined
    assert "hint: with `torch==2.9.1` the set resolves" in joined
    assert "hint: with `torch==2.11.0` and `sglang-kernel==0.4.4` the set resolves" in joined


def test_quiet_says_nothing_and_verbose_names_what_is_assumed(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = ("--project", str(_EXAMPLE), "--recorded")
    assert _told(demo, tmp_path, capsys, *project, "-q") == (0, "")
    _, told = _told(demo, tmp_path, capsys, *project, "-v")
    assert "METADATA of torch 2.11.0 on the default index" in " ".join(told.split())


def test_the_lock_can_go_to_stdout(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--default-index", demo.url, "--cache-dir", str(tmp_path / "c"), "--cpu"]
    assert main(["resolve", "filelock", *flags, "--only-default-index", "-o", "-", "-q"]) == 0
    assert 'name = "filelock"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environ", "color", "wanted"),
    [
        ({}, "auto", False),
        ({"FORCE_COLOR": "1"}, "auto", True),
        ({"CLICOLOR_FORCE": "1"}, "auto", True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", False),
        ({"NO_COLOR": "1"}, "always", True),
        ({"FORCE_COLOR": "1"}, "never", False),
    ],
)
def test_colour_follows_the_flag_and_then_the_environment(
    environ: dict[str, str], color: str, wanted: bool
) -> None:
    stream = StringIO()
    terminal = Terminal(environ=environ, color=color, stream=stream)  # type: ignore[arg-type]  # a literal
    terminal.error("no")
    assert ("\x1b[" in stream.getvalue()) is wanted


def test_what_is_printed_cannot_control_a_terminal() -> None:
    assert printable("a\x1b[31mb\u202ec\nd") == "a\\x1b[31mb\\x202ec\nd"


def test_progress_is_silent_where_nobody_looks() -> None:
    with Status("working", show=False) as status:
        status.update("still working")


def test_detect_tells_every_source_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["detect", "--format", "json"])
    form = json.loads(capsys.readouterr().out)
    schema = _REPOSITORY / "src" / "cudalock" / "cli" / "schemas" / "detect-1.json"
    jsonschema.validate(form, json.loads(schema.read_text(encoding="utf-8")))
    assert code == {"found": 0, "none": 1, "unknown": 3}[form["status"]]
    assert len(form["sources"]) == 5
    assert main(["detect"]) == code
    told = capsys.readouterr().out
    for source in form["sources"]:
        assert source["source"] in told


@pytest.mark.parametrize(
    ("scenario", "line"),
    [
        ("pin-that-no-index-has", "cuda-bindings: 1 wheel, 12.9.2"),
        ("private-build-that-no-index-has", "xformers: 1 wheel, 0.0.33"),
        ("placeholder-in-place-of-a-nightly", "pytorch-triton: 1 wheel, 0.0.1: 1 a placeholder"),
    ],
)
def test_what_is_listed_of_a_pin_that_nothing_meets_is_told(scenario: str, line: str) -> None:
    path = next(path for path in scenario_paths() if path.stem == scenario)
    world = read_scenario(path).world()
    with pytest.raises(NoSolutionError) as caught:
        solve(world)
    told = format_conflict(caught.value.conflict, world.target).splitlines()
    assert told[-1] == line
    assert "pre-release" not in "\n".join(told)


def test_of_a_clash_over_a_project_no_listing_is_told() -> None:
    path = next(path for path in scenario_paths() if path.stem == "two-cudnn-pins")
    world = read_scenario(path).world()
    with pytest.raises(NoSolutionError) as caught:
        solve(world)
    assert "wheels," not in format_conflict(caught.value.conflict, world.target)
