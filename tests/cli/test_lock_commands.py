"""``tree``, ``why``, ``diff``, ``export`` and ``outdated`` on locks of a real resolve."""

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
from cudalock.cli.main import main
from cudalock.errors import UsageError
from cudalock.lock import Lock, format_lock
from cudalock.verify.export import export_requirements
from default_index_site import Site, default_index
from locked_worlds import change_package, edit_record, good_lock, rename_wheel, write_lock_text
from loopback import Reply

_SCHEMAS = Path(cudalock.__file__).parent / "cli" / "schemas"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(list(arguments))
        return code, capsys.readouterr().out

    return command


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lock:
    """Write the good lock into a folder and stand there."""
    monkeypatch.chdir(tmp_path)
    held = (
        "held back: torch 2.12.0 on `pytorch`, because kernel 0.4.4+cu130 is built for torch 2.11"
    )
    found = good_lock()[0]
    found = replace(found, tool={**found.tool, "held-back": [held]})
    write_lock_text(tmp_path, found)
    return found


def _fits(said: str, schema: str) -> dict[str, object]:
    form: dict[str, object] = json.loads(said)
    jsonschema.validate(form, json.loads((_SCHEMAS / schema).read_text(encoding="utf-8")))
    return form


def test_a_tree_grows_from_what_was_asked_for(lock: Lock, run: Run) -> None:
    code, said = run("tree")
    assert code == 0
    assert said == (
        "flash-jit 0.6.1+cu130 [CUDA 13.0]\n"
        "flash-python 0.6.1\n"
        "├── filelock 3.20.0 (filelock)\n"
        "└── torch 2.11.0+cu130 [CUDA 13.0] (torch)\n"
        "    ├── filelock 3.20.0 (filelock>=3.10)\n"
        "    ├── numpy 2.3.1 (numpy)\n"
        "    └── nvidia-runtime 13.0.96 [CUDA 13] (nvidia-runtime==13.0.96)\n"
        "kernel 0.4.4+cu130 [CUDA 13.0]\n"
        "├── ninja 1.13.0 (ninja>=1.11)\n"
        "└── numpy 2.3.1 (numpy>=2)\n"
        "torch 2.11.0+cu130 [CUDA 13.0] (*)\n"
    )


def test_a_tree_is_inverted_begun_anywhere_and_cut(lock: Lock, run: Run) -> None:
    assert run("tree", "nvidia_runtime", "--invert")[1] == (
        "nvidia-runtime 13.0.96 [CUDA 13]\n"
        "└── torch 2.11.0+cu130 [CUDA 13.0] (nvidia-runtime==13.0.96)\n"
        "    └── flash-python 0.6.1 (torch)\n"
    )
    assert run("tree", "torch", "--depth", "0")[1] == "torch 2.11.0+cu130 [CUDA 13.0]\n"
    assert run("tree", "--invert")[0] == 2
    assert run("tree", "numpi")[0] == 2
    form = _fits(run("tree", "kernel", "--format", "json")[1], "tree-1.json")
    assert form["roots"] == ["kernel"]


def test_a_circle_of_requirements_is_drawn_once(lock: Lock, run: Run, tmp_path: Path) -> None:
    circle = change_package(lock, "numpy", lambda p: edit_record(p, requires=["kernel"]))
    write_lock_text(tmp_path, circle)
    code, said = run("tree")
    assert code == 0
    assert said.count("(*)") >= 1


def test_why_tells_who_asked_the_evidence_and_what_was_held_back(lock: Lock, run: Run) -> None:
    code, said = run("why", "torch")
    words = " ".join(said.split())
    assert code == 0
    for told in (
        "torch 2.11.0+cu130 from https://default.test/",
        "you ask for `torch<2.12,>=2.9`",
        "flash-python 0.6.1 requires `torch`",
        "built for CUDA 13.0:",
        "label +cu130",
        "held to <libtorch> 2.11: kernel 0.4.4+cu130 is built for torch 2.11",
        "held back: torch 2.12.0 on `pytorch`",
    ):
        assert told in words
    assert max(map(len, said.splitlines())) <= 80
    form = _fits(run("why", "torch", "--format", "json")[1], "why-1.json")
    assert form["asked"] == ["torch<2.12,>=2.9"]


def test_why_shows_the_way_to_what_nobody_asked_for(lock: Lock, run: Run) -> None:
    assert "you -> torch -> nvidia-runtime" in run("why", "nvidia-runtime")[1]
    assert run("why", "nothing")[0] == 2


def test_why_of_what_was_only_held_back_is_a_no(lock: Lock, run: Run, tmp_path: Path) -> None:
    tool = {**lock.tool, "held-back": ["held back: gone 1.0, because of torch"]}
    write_lock_text(tmp_path, replace(lock, tool=tool))
    code, said = run("why", "gone")
    assert code == 1
    assert "gone is not in the lock" in said
    assert "because of torch" in said


@pytest.fixture
def older(lock: Lock, tmp_path: Path) -> str:
    """Write a lock of CUDA 12.8 and another torch beside the good one."""
    name = "torch-2.10.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl"
    changed = change_package(
        lock,
        "torch",
        lambda p: edit_record(
            rename_wheel(replace(p, version="2.10.0+cu128"), name), cuda="12.8", runtime=12
        ),
    )
    changed = change_package(
        changed, "flash-python", lambda p: replace(p, dependencies=(("filelock", "3.20.0"),))
    )
    target = {**lock.tool["target"], "cuda": "12.8", "sm": ["9.0"]}  # type: ignore[dict-item]  # the target's table.
    changed = replace(
        changed,
        tool={**lock.tool, "target": target, "needs-driver": "570.26"},
        packages=tuple(p for p in changed.packages if p.name != "ninja"),
    )
    changed = change_package(
        changed, "kernel", lambda p: replace(p, dependencies=(("numpy", "2.3.1"),))
    )
    path = tmp_path / "pylock.old.toml"
    path.write_text(format_lock(changed), encoding="utf-8")
    return str(path)


def test_a_difference_begins_with_cuda_and_gpus(lock: Lock, older: str, run: Run) -> None:
    code, said = run("diff", older, "pylock.toml")
    lines = said.splitlines()
    assert code == 0
    assert lines[:4] == [
        "! target cuda: 12.8 -> 13.0",
        "! target sm: 9.0 -> 12.0",
        "! needs-driver: 570.26 -> 580.65.06",
        "! torch: CUDA 12.8 -> CUDA 13.0",
    ]
    assert "+ ninja 1.13.0" in lines
    assert "~ torch 2.10.0+cu128 -> 2.11.0+cu130" in lines
    form = _fits(run("diff", older, "pylock.toml", "--format", "json")[1], "diff-1.json")
    assert form["same"] is False


def test_a_difference_for_a_pull_request_is_markdown(lock: Lock, older: str, run: Run) -> None:
    said = run("diff", older, "pylock.toml", "--format", "markdown")[1]
    assert said.startswith("### pylock.old.toml -> pylock.toml\n\n| CUDA and machine | before |")
    assert "| target cuda | 12.8 | 13.0 |" in said
    assert "| ninja | - | 1.13.0 |" in said


def test_a_lock_does_not_differ_from_itself(lock: Lock, run: Run) -> None:
    assert run("diff", "pylock.toml", "pylock.toml") == (0, "The locks say the same.\n")
    assert "Nothing changed" in run("diff", *["pylock.toml"] * 2, "--format", "markdown")[1]
    assert run("diff", "pylock.toml", "pylock.gone.toml")[0] == 2


def test_requirements_name_the_index_of_each_local_pin(lock: Lock, run: Run) -> None:
    code, said = run("export")
    assert code == 0
    assert "--extra-index-url https://default.test/\n" in said
    assert f"torch==2.11.0+cu130 \\\n    --hash=sha256:{'aa' * 32}\n    # from https://" in said
    assert f"numpy==2.3.1 \\\n    --hash=sha256:{'aa' * 32}\n" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: replace(p, wheels=(replace(p.wheels[0], url=None, path="w/x.whl"),)), "at the path"),
        (lambda p: replace(p, index=None), "expected the index of torch"),
        (lambda p: replace(p, marker="'a' not in extras and sys_platform == 'linux'"), "knows neither"),
        (
            lambda p: replace(
                p, wheels=(replace(p.wheels[0], name=p.wheels[0].name[:-4] + "-cu130.whl"),)
            ),
            "wheel variant",
        ),
    ],
)  # fmt: skip
def test_what_a_requirements_file_cannot_carry_is_refused(
    lock: Lock, change: Callable[..., object], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        export_requirements(change_package(lock, "torch", change))  # type: ignore[arg-type]  # changes of a package.


def test_what_another_extra_selects_is_left_out_and_named(lock: Lock) -> None:
    changed = change_package(lock, "torch", lambda p: replace(p, marker="'cu128' not in extras"))
    changed = change_package(changed, "numpy", lambda p: replace(p, marker="'cu128' in extras"))
    said = export_requirements(changed)
    assert "# Without what an extra or a group selects: numpy 2.3.1." in said
    assert "\ntorch==2.11.0+cu130 \\" in said
    assert "numpy==" not in said


def test_a_bill_of_materials_holds_cuda_hashes_and_who_requires_whom(
    lock: Lock, run: Run, tmp_path: Path
) -> None:
    code, said = run("export", "--to", "cyclonedx", "-o", str(tmp_path / "bom.json"))
    assert (code, said) == (0, "")
    form = json.loads((tmp_path / "bom.json").read_text(encoding="utf-8"))
    assert (form["bomFormat"], form["specVersion"]) == ("CycloneDX", "1.6")
    components = {component["name"]: component for component in form["components"]}
    torch = components["torch"]
    assert torch["purl"].startswith("pkg:pypi/torch@2.11.0%2Bcu130?repository_url=https")
    assert torch["hashes"] == [{"alg": "SHA-256", "content": "aa" * 32}]
    assert {"name": "cudalock:cuda", "value": "13.0"} in torch["properties"]
    requires = {entry["ref"]: entry["dependsOn"] for entry in form["dependencies"]}
    assert components["numpy"]["bom-ref"] in requires[torch["bom-ref"]]
    assert len({component["bom-ref"] for component in form["components"]}) == 8


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        found.add("left", "1.0", requires=["right<2", "deep"])
        found.add("right", "1.0")
        found.add("deep", "1.0")
        yield found


@pytest.fixture
def locked(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lock three wheels of the site with a real resolve."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CUDALOCK_CACHE_DIR", str(tmp_path / "cache"))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    flags = ["--cpu", "--python", python, "--platform", "linux-x86_64", "-q"]
    assert main(["resolve", "left", "--default-index", site.url, *flags]) == 0
    return folder


def test_outdated_names_the_newer_release_and_what_excludes_it(
    site: Site, locked: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDALOCK_CACHE_DIR", str(tmp_path / "fresh"))
    assert run("outdated") == (0, "No newer release was found.\n")
    site.add("right", "2.0")
    site.add("right", "3.0rc1")
    site.add("deep", "1.1")
    monkeypatch.setenv("CUDALOCK_CACHE_DIR", str(tmp_path / "fresher"))
    assert run("outdated") == (
        0,
        "deep   1.0  -> 1.1\nright  1.0  -> 2.0\n    left 1.0 requires `right<2`\n",
    )
    form = _fits(run("outdated", "--format", "json")[1], "outdated-1.json")
    assert form["status"] == "outdated"


def test_outdated_with_an_index_that_cannot_be_read_could_not_tell(
    site: Site, locked: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site.faults["deep"] = Reply(403)
    monkeypatch.setenv("CUDALOCK_CACHE_DIR", str(tmp_path / "fresh"))
    code, said = run("outdated", "--format", "json")
    assert code == 3
    assert _fits(said, "outdated-1.json")["status"] == "unknown"


def test_pip_installs_what_was_exported_and_nothing_else(
    site: Site, locked: Path, run: Run, tmp_path: Path
) -> None:
    code, said = run("export")
    assert code == 0
    (locked / "requirements.txt").write_text(said, encoding="utf-8")
    command = [
        *(sys.executable, "-m", "pip", "install", "--require-hashes", "--no-cache-dir"),
        *("--index-url", site.url, "--target", str(tmp_path / "there"), "-r", "requirements.txt"),
    ]
    environ = {**os.environ, "PIP_FIND_LINKS": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(command, check=True, env=environ, capture_output=True)
    found = {path.name for path in (tmp_path / "there").glob("*.dist-info")}
    assert found == {"left-1.0.dist-info", "right-1.0.dist-info", "deep-1.0.dist-info"}


def test_a_folder_of_several_locks_wants_one_named(lock: Lock, older: str, run: Run) -> None:
    assert run("tree")[0] == 0
    Path("pylock.toml").rename("pylock.new.toml")
    assert run("tree")[0] == 2
    assert run("tree", "--lock", older)[0] == 0
