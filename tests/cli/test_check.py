"""``cudalock check`` as a person runs it: locks of a real resolve, files that change, indices that lie."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import cudalock
from cudalock.cli import check_machine
from cudalock.cli.main import main
from cudalock.host import Interpreter
from default_index_site import Site, default_index
from host_boxes import Box, RecordedNvml
from locked_worlds import good_lock, write_lock_text
from loopback import Reply

_SCHEMAS = Path(cudalock.__file__).parent / "cli" / "schemas"
_PROJECT = """\
[project]
name = "mine"
version = "1"
dependencies = ["left>=1", "right[fast]"]

[tool.cudalock.targets.plain]
python = "3.12"
platform = "linux-x86_64"
cuda = "13.0"
driver = "590.48.01"
sm = ["12.0"]
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        found.add("left", "1.0", requires=["right>=1", "deep"])
        found.add("right", "1.0", requires=["deep; extra == 'fast'"], extras=["fast"])
        found.add("deep", "2.0")
        yield found


@pytest.fixture
def project(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lock a project with a real resolve and stand in its folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CUDALOCK_CACHE_DIR", str(tmp_path / "cache"))
    (folder / "pyproject.toml").write_text(_PROJECT, encoding="utf-8")
    assert main(["resolve", "--default-index", site.url, "-q"]) == 0
    return folder


Check = Callable[..., tuple[int, str]]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["check", *arguments])
        return code, capsys.readouterr().out

    return run


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_lock_that_was_just_made_keeps_its_promises(project: Path, check: Check) -> None:
    assert check() == (0, "pylock.plain.toml: ok, 3 packages for `plain`\n")


def test_an_answer_is_repeated_until_a_byte_of_what_it_came_from_changes(
    project: Path, check: Check
) -> None:
    first = check()
    stamp = next(Path(os.environ["CUDALOCK_CACHE_DIR"]).glob("cudalock-check/*"))
    written = stamp.stat().st_mtime_ns
    assert check() == first
    assert stamp.stat().st_mtime_ns == written
    path = project / "pyproject.toml"
    seen = path.stat()
    _edit(path, "left>=1", "left>=2")
    # Neither its size nor its time tells that the file was changed.
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert check()[0] == 1


def test_a_damaged_stamp_is_no_stamp(project: Path, check: Check) -> None:
    first = check()
    (stamp,) = Path(os.environ["CUDALOCK_CACHE_DIR"]).glob("cudalock-check/*")
    whole = stamp.read_bytes()
    for damaged in (b"", whole[:-1], whole[5:], b"x" * 40, whole + b"9\n"):
        stamp.write_bytes(damaged)
        assert check() == first
    assert stamp.read_bytes() == whole


def test_a_lock_that_is_added_is_checked_although_the_others_are_as_they_were(
    project: Path, check: Check
) -> None:
    assert check()[0] == 0
    (project / "pylock.other.toml").write_text("lock-version = '1.0'\n", encoding="utf-8")
    assert check()[0] == 2


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"left>=1", "right[fast]"', '"right[fast]",\n  # mine\n  "Left >= 1"', 0),
        ('version = "1"', 'version = "2"', 0),
        ("[tool.cudalock", "[tool.other]\nkey = 1\n\n[tool.cudalock", 0),
        ("left>=1", "left>=1,<9", 1),
        ('"left>=1", ', "", 1),
        ("right[fast]", "right", 1),
        ('sm = ["12.0"]', 'sm = ["9.0", "12.0"]', 1),
        ('driver = "590.48.01"', 'driver = "580.65.06"', 1),
        ("[project]", "[projekt", 3),
    ],
)
def test_inputs_are_compared_by_what_they_say(
    project: Path, check: Check, old: str, new: str, code: int
) -> None:
    _edit(project / "pyproject.toml", old, new)
    assert check()[0] == code


def test_a_lock_whose_inputs_have_gone_could_not_be_told(project: Path, check: Check) -> None:
    (project / "pyproject.toml").unlink()
    code, said = check()
    assert code == 3
    assert "could not be told" in " ".join(said.split())


def test_a_lock_that_does_not_say_where_its_inputs_are_could_not_be_told(
    tmp_path: Path, check: Check
) -> None:
    lock = good_lock()[0]
    code, said = check(str(write_lock_text(tmp_path, lock)))
    assert code == 3
    assert "does not say where they are written" in " ".join(said.split())
    tool = {key: value for key, value in lock.tool.items() if key != "inputs"}
    assert check(str(write_lock_text(tmp_path, replace(lock, tool=tool))))[0] == 3


def test_requirements_from_the_command_line_and_from_files_are_read_again(
    site: Site, project: Path, check: Check
) -> None:
    (project / "pyproject.toml").unlink()
    (project / "pylock.plain.toml").unlink()
    (project / "more.txt").write_text("-r deep.txt\n", encoding="utf-8")
    (project / "deep.txt").write_text("deep\n", encoding="utf-8")
    flags = ["--default-index", site.url, "--cpu", "--python", "3.12"]
    asked = ["resolve", "left", "-r", "more.txt", *flags, "--platform", "linux-x86_64", "-q"]
    assert main(asked) == 0
    assert check()[0] == 0
    (project / "deep.txt").write_text("deep>1\n", encoding="utf-8")
    assert check()[0] == 1


def test_a_file_that_is_no_lock_is_asked_wrongly_and_every_fault_is_told(
    project: Path, check: Check
) -> None:
    lock = project / "pylock.plain.toml"
    _edit(lock, "sha256", "md5")
    code, said = check()
    assert code == 2
    assert "pylock.plain.toml: no lock" in said
    assert "expected a sha256" in said
    assert check("nowhere.toml")[0] == 2
    assert check("pylock.none.toml")[0] == 2
    lock.unlink()
    assert check()[0] == 2


def test_a_proof_outranks_a_doubt_and_a_file_that_is_no_lock_both(
    project: Path, check: Check, tmp_path: Path
) -> None:
    broken = project / "pylock.broken.toml"
    broken.write_text((project / "pylock.plain.toml").read_text(encoding="utf-8"), encoding="utf-8")
    _edit(broken, 'sm = ["12.0"]', 'sm = ["7.0"]')
    _edit(project / "pyproject.toml", "[project]", "[projekt")
    assert check()[0] == 3
    foreign = good_lock()[0]
    assert check(str(write_lock_text(tmp_path, foreign)), "pylock.broken.toml")[0] == 3
    _edit(broken, 'requirements = ["left>=1"', 'requirements = ["gone", "left>=1"')
    assert check()[0] == 1


def test_json_fits_its_schema(project: Path, check: Check) -> None:
    schema = json.loads((_SCHEMAS / "check-1.json").read_text(encoding="utf-8"))
    code, said = check("--format", "json")
    form = json.loads(said)
    jsonschema.validate(form, schema)
    assert (code, form["status"]) == (0, "ok")
    _edit(project / "pylock.plain.toml", 'requires = ["deep", "right>=1"]', 'requires = ["gone"]')
    code, said = check("--format", "json")
    form = json.loads(said)
    jsonschema.validate(form, schema)
    (problem, *_) = form["locks"][0]["checks"][0]["problems"]
    assert (code, problem["code"], problem["package"]) == (1, "missing", "gone")


def _broken_twelve_times(lock: Path) -> None:
    names = ", ".join(f'"gone{number:02}"' for number in range(12))
    _edit(lock, 'requires = ["deep", "right>=1"]', f"requires = [{names}]")


def test_github_gets_ten_annotations_and_is_told_how_many_more(project: Path, check: Check) -> None:
    _broken_twelve_times(project / "pylock.plain.toml")
    code, said = check("--format", "github")
    lines = said.splitlines()
    assert code == 1
    assert len(lines) == 10
    assert lines[0].startswith("::error file=pylock.plain.toml,line=")
    assert lines[-1] == "::notice title=cudalock::3 more findings, not shown"


def test_sarif_and_markdown_name_the_line_of_the_entry(project: Path, check: Check) -> None:
    lock = project / "pylock.plain.toml"
    _edit(lock, 'version = "2.0"\n', 'version = "2.0"\nrequires-python = ">=3.13"\n')
    text = lock.read_text(encoding="utf-8").splitlines()
    line = next(
        number
        for number, words in enumerate(text, 1)
        if words == "[[packages]]" and text[number] == 'name = "deep"'
    )
    code, said = check("--format", "sarif")
    (result,) = json.loads(said)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert code == 1
    assert (result["ruleId"], result["level"]) == ("python", "error")
    assert place["artifactLocation"]["uri"] == "pylock.plain.toml"
    assert place["region"]["startLine"] == line
    code, said = check("--format", "markdown")
    assert (
        f"| no | `pylock.plain.toml:{line}` | **python**: deep 2.0 needs Python &gt;=3.13" in said
    )


@pytest.mark.parametrize("style", ["text", "json", "github", "sarif", "markdown"])
def test_what_a_lock_says_cannot_command_a_terminal_or_a_runner(
    project: Path, check: Check, style: str
) -> None:
    evil = "gone\\u001b[31m\\u000a::error::mine|<b>"
    _edit(project / "pylock.plain.toml", 'requires = ["deep"', f'requires = ["{evil}", "deep"')
    code, said = check("--format", style)
    assert code == 3
    assert "\x1b" not in said
    assert "\n::error::mine" not in said
    assert "<b>" not in said or style in {"text", "json", "sarif", "github"}


def test_text_fits_eighty_columns(project: Path, check: Check) -> None:
    _broken_twelve_times(project / "pylock.plain.toml")
    _, said = check()
    assert max(map(len, said.splitlines())) <= 80


def test_quiet_says_nothing_of_a_good_lock(project: Path, check: Check) -> None:
    assert check("-q") == (0, "")


@pytest.fixture
def blackwell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    """Make this machine a recorded one."""
    box = Box(tmp_path / "box")
    box.nvml = RecordedNvml()
    python = Interpreter(
        version="3.12.4", implementation="cpython", platform="manylinux_2_39_x86_64"
    )
    monkeypatch.setattr(check_machine, "detect", lambda _: box.detect())
    monkeypatch.setattr(check_machine, "detect_interpreter", lambda: python)
    return box


def test_here_asks_this_machine(blackwell: Box, tmp_path: Path, check: Check) -> None:
    lock = write_lock_text(tmp_path, good_lock()[0])
    assert check(str(lock), "--here")[0] == 3  # its inputs are of nowhere
    blackwell.nvml = RecordedNvml(driver="570.124.06", cuda=12080)
    code, said = check(str(lock), "--here")
    assert code == 1
    assert "needs driver 580.65.06" in " ".join(said.split())


def test_a_target_of_the_project_is_asked_by_its_name(project: Path, check: Check) -> None:
    text = _PROJECT + '\n[tool.cudalock.targets.old]\ncuda = "12.8"\ndriver = "570.124.06"\n'
    (project / "pyproject.toml").write_text(text, encoding="utf-8")
    assert check("--target", "old")[0] == 0  # nothing in it is built for CUDA
    assert check("--target", "none")[0] == 2
    lock = project / "pylock.plain.toml"
    _edit(lock, 'built-for = "none", hash', 'built-for = "known", runtime = 13, hash')
    code, said = check("--target", "old")
    assert code == 1
    assert "old: deep 2.0 is CUDA 13, which needs driver 580.65.06" in " ".join(said.split())


def _installed(folder: Path, **versions: str) -> Path:
    for name, version in versions.items():
        info = folder / "lib" / "python3.12" / "site-packages" / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8"
        )
    return folder


@pytest.mark.parametrize(
    ("versions", "code", "says"),
    [
        ({"left": "1.0", "right": "1.0", "deep": "2.0", "pip": "26.1"}, 0, "holds what the lock"),
        ({"left": "1.0", "right": "1.0", "deep": "2.0", "x": "1"}, 0, "beside the lock: x"),
        ({"left": "1.0", "right": "1.0"}, 1, "expected deep 2.0, found that it is not installed"),
        ({"left": "1.0", "right": "1.1", "deep": "2.0"}, 1, "found 1.1 installed"),
    ],
)
def test_an_environment_is_compared_by_what_is_installed(
    project: Path, check: Check, tmp_path: Path, versions: dict[str, str], code: int, says: str
) -> None:
    found, said = check("--env", str(_installed(tmp_path / "venv", **versions)))
    assert found == code
    assert says in " ".join(said.split())


def test_a_folder_that_is_no_environment_is_asked_wrongly(project: Path, check: Check) -> None:
    assert check("--env", str(project))[0] == 2


def test_online_a_good_lock_is_still_there(site: Site, project: Path, check: Check) -> None:
    code, said = check("--online")
    assert code == 0
    assert "online: every wheel is there, with its hash" in said


def _page(site: Site, **changes: object) -> Reply:
    reply = site._page("deep")
    page = json.loads(reply.body)
    page["files"][0].update(changes)
    return Reply(200, json.dumps(page).encode(), reply.headers)


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        (lambda _: Reply(404), 1, "deep 2.0 is gone from its index"),
        (
            lambda site: _page(
                site, filename="deep-3.0-py3-none-any.whl", url="/files/deep-3.0-py3-none-any.whl"
            ),
            1,
            "lists 1 others",
        ),
        (lambda site: _page(site, hashes={"sha256": "b" * 64}), 1, "found that its index lists b"),
        (lambda site: _page(site, yanked="it breaks"), 1, "deep 2.0 was yanked: it breaks"),
        (lambda site: _page(site, hashes={}), 0, "lists no sha256"),
        (lambda _: Reply(403), 3, "could not be told"),
        (lambda _: Reply(200, b"<html>hello</html>"), 3, "could not be told"),
    ],
)
def test_online_what_is_gone_changed_yanked_or_unread_is_told_apart(
    site: Site,
    project: Path,
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fault: Callable[[Site], Reply],
    code: int,
    says: str,
) -> None:
    site.faults["deep"] = fault(site)
    monkeypatch.setenv("CUDALOCK_CACHE_DIR", str(tmp_path / "fresh"))
    found, said = check("--online")
    assert (found, says in " ".join(said.split())) == (code, True), said


_FLEET = """\
locks = ["pylock.toml"]

[machines.workstation]
driver = "590.48.01"
sm = ["12.0"]

[machines.old]
driver = "570.124.06"
gpu = ["h100"]

[machines.ci]
cpu = true
"""


def test_a_fleet_is_a_table_of_machines_against_locks(
    tmp_path: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lock_text(tmp_path, good_lock()[0])
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(_FLEET, encoding="utf-8")
    code, said = check("--fleet", str(fleet))
    assert code == 1
    assert said.splitlines()[:4] == [
        "machine      pylock",
        "workstation  yes",
        "old          no",
        "ci           no",
    ]
    assert "found no NVIDIA driver" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    code, said = check("--fleet", str(fleet), "--format", "json")
    form = json.loads(said)
    jsonschema.validate(form, json.loads((_SCHEMAS / "fleet-1.json").read_text(encoding="utf-8")))
    assert [machine["status"] for machine in form["machines"]] == ["ok", "broken", "broken"]
    assert "::error" in check("--fleet", str(fleet), "--format", "github")[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "machines = 1\n",
        "[machines]\na = 1\n",
        "[machines.a]\n",
        "[machines.a]\ndriver = 590\n",
        "[machines.a]\ncpu = 1\n",
        '[machines.a]\ncpu = true\nsmm = "12.0"\n',
        '[machines.a]\ndriver = "x"\n',
        "[machines.a]\ncpu = true\n[other]\n",
        "locks = [1]\n[machines.a]\ncpu = true\n",
    ],
)
def test_a_fleet_file_that_is_none_is_asked_wrongly(
    tmp_path: Path, check: Check, text: str
) -> None:
    write_lock_text(tmp_path, good_lock()[0])
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(text, encoding="utf-8")
    assert check("--fleet", str(fleet))[0] == 2


_TELL = (
    "import sys; from cudalock.cli.main import main; code = main(sys.argv[1:]);"
    "sys.stderr.write('\\n' + ' '.join(sys.modules)); sys.exit(code)"
)
_OUTWARD = {"httpcore", "httpx", "rich", "tomlkit", "ssl", "socket", "asyncio", "resolvelib", "uv"}


def _modules(*arguments: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", _TELL, "check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return set(run.stderr.rpartition("\n")[2].split())


def test_a_check_imports_nothing_that_reaches_out_and_the_second_next_to_nothing(
    project: Path,
) -> None:
    loaded = _modules()
    assert _OUTWARD & {name.partition(".")[0] for name in loaded} == set()
    plain = len(_modules_of_python())
    assert len(loaded) - plain < 215
    repeated = _modules()
    assert {name for name in repeated if name.startswith("cudalock")} == {
        "cudalock", "cudalock.lazy", "cudalock.cli", "cudalock.cli.main", "cudalock.cli.stamp",
    }  # fmt: skip
    assert len(repeated) - plain < 12


def _modules_of_python() -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())
