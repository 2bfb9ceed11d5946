"""What may be asked, and how: each flag and file changes the set as its help says."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cudalock.cli.main import main
from cudalock.host import Detection
from default_index_site import Site, default_index
from host_boxes import Box, RecordedNvml

_TAG = "cp312-cp312-manylinux_2_28_x86_64"
_LINUX = ["--python", "3.12", "--platform", "linux-x86_64"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        for version in ("1.0", "2.0", "3.0rc1"):
            found.add("left", version, requires=["right"])
            found.add("right", version)
        yield found


@pytest.fixture
def ask(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> "Asker":
    return Asker(site, tmp_path, capsys)


class Asker:
    def __init__(self, site: Site, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.site, self.folder, self._capsys = site, folder, capsys

    def __call__(self, *arguments: str, gpu: bool = False) -> tuple[int, dict[str, Any]]:
        flags = ["--default-index", self.site.url, "--cache-dir", str(self.folder / "cache")]
        cpu = [] if gpu else ["--cpu", *_LINUX]
        self._capsys.readouterr()
        code = main(["resolve", *arguments, *cpu, *flags, "--dry-run", "--format", "json"])
        return code, json.loads(self._capsys.readouterr().out)

    def pins(self, *arguments: str, gpu: bool = False) -> dict[str, str]:
        code, form = self(*arguments, gpu=gpu)
        assert code == 0, form
        return {package["name"]: package["version"] for package in form["packages"]}


def test_a_constraint_bounds_what_is_installed_anyway(ask: Asker) -> None:
    file = ask.folder / "c.txt"
    file.write_text("right<2\nneither==1\n", encoding="utf-8")
    assert ask.pins("left", "-c", str(file)) == {"left": "2.0", "right": "1.0"}


def test_an_override_replaces_every_requirement_on_its_project(ask: Asker) -> None:
    ask.site.add("top", "1.0", requires=["right==2.0"])
    file = ask.folder / "o.txt"
    file.write_text("right==1.0\n", encoding="utf-8")
    assert ask.pins("top", "--override", str(file))["right"] == "1.0"


def test_a_prerelease_comes_in_by_name_or_by_pin_and_not_otherwise(ask: Asker) -> None:
    assert ask.pins("right") == {"right": "2.0"}
    assert ask.pins("right", "--prerelease", "right") == {"right": "3.0rc1"}
    assert ask.pins("right==3.0rc1") == {"right": "3.0rc1"}


def test_requirements_come_from_files_of_every_kind(ask: Asker) -> None:
    text = ask.folder / "requirements.txt"
    text.write_text("right==1.0\n", encoding="utf-8")
    script = ask.folder / "tool.py"
    script.write_text('# /// script\n# dependencies = ["left<2"]\n# ///\n', encoding="utf-8")
    assert ask.pins("-r", str(text), "-r", str(script)) == {"left": "1.0", "right": "1.0"}


def test_a_projects_extras_and_groups_are_taken_when_named(ask: Asker) -> None:
    (ask.folder / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["right"]\n'
        '[project.optional-dependencies]\nmore = ["left"]\n'
        '[dependency-groups]\nold = ["right<2"]\n',
        encoding="utf-8",
    )
    project = ("--project", str(ask.folder))
    assert ask.pins(*project) == {"right": "2.0"}
    assert ask.pins(*project, "--extra", "more") == {"left": "2.0", "right": "2.0"}
    assert ask.pins(*project, "--group", "old") == {"right": "1.0"}


def test_uv_sources_constraints_and_overrides_of_a_project_are_obeyed(
    ask: Asker, tmp_path: Path
) -> None:
    with default_index(tmp_path / "other") as other:
        other.add("left", "9.0", requires=["right"])
        other.add("right", "9.0")
        (ask.folder / "pyproject.toml").write_text(
            '[project]\nname = "x"\nversion = "1"\ndependencies = ["left"]\n'
            '[tool.uv]\nconstraint-dependencies = ["right<2"]\n'
            f'[[tool.uv.index]]\nname = "mine"\nurl = "{other.url}"\nexplicit = true\n'
            '[tool.uv.sources]\nleft = {index = "mine"}\n',
            encoding="utf-8",
        )
        pins = ask.pins("--project", str(ask.folder))
    assert pins == {"left": "9.0", "right": "1.0"}


def test_a_source_that_its_marker_switches_off_is_named_and_the_cpu_build_is_never_taken(
    ask: Asker, tmp_path: Path
) -> None:
    # On Windows `platform_machine` is AMD64, and the default index has torch for the CPU only.
    flags = ["--platform", "win-amd64", "--python", "3.12", "--driver-cuda", "13.0"]
    flags += ["--cuda", "12.8", "--sm", "8.9", "--only-default-index", "--no-remedies"]
    ask.site.add("torch", "2.11.0", tag="cp312-cp312-win_amd64")
    with default_index(tmp_path / "other") as other:
        other.add("torch", "2.11.0+cu128", tag="cp312-cp312-win_amd64")
        for marker, code in (("platform_machine == 'x86_64'", 1), ("os_name == 'nt'", 0)):
            (ask.folder / "pyproject.toml").write_text(
                '[project]\nname = "x"\nversion = "1"\ndependencies = ["torch==2.11.0"]\n'
                f'[[tool.uv.index]]\nname = "pt-cu128"\nurl = "{other.url}"\nexplicit = true\n'
                f'[tool.uv.sources]\ntorch = {{index = "pt-cu128", marker = "{marker}"}}\n',
                encoding="utf-8",
            )
            found, form = ask("--project", str(ask.folder), *flags, gpu=True)
            told = [w["message"] for w in form["warnings"] if w["code"] == "input"]
            assert found == code, form
            if code == 0:
                assert form["packages"][0]["version"] == "2.11.0+cu128"
                assert not any("switched off" in message for message in told)
                continue
            [message] = [message for message in told if "switched off" in message]
            assert message.endswith(
                "pyproject.toml: tool.uv.sources.torch: the index `pt-cu128` is switched off for "
                'torch by its marker `platform_machine == "x86_64"` (here platform_machine is `AMD64`)'
            )
            assert any("CPU only" in fact["text"] for fact in form["conflict"]["facts"])


def test_a_source_to_build_from_is_refused_at_its_key(ask: Asker) -> None:
    (ask.folder / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["left"]\n'
        '[tool.uv.sources]\nleft = {git = "https://example.org/left"}\n',
        encoding="utf-8",
    )
    code, form = ask("--project", str(ask.folder))
    assert (code, form["status"]) == (2, "error")
    assert "tool.uv.sources" in form["error"]["where"]


def test_an_added_index_is_asked_first_and_can_be_left_out(ask: Asker, tmp_path: Path) -> None:
    with default_index(tmp_path / "other") as other:
        other.add("right", "0.5")
        index = ("--index", f"mine={other.url}")
        assert ask.pins("right", *index) == {"right": "0.5"}
        assert ask.pins("right", *index, "--exclude-index", "mine") == {"right": "2.0"}


def test_links_add_wheels_and_those_of_this_machine_are_locked_by_path(
    ask: Asker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "links"
    with default_index(folder) as other:
        other.add("right", "5.0")
    flags = ["--default-index", ask.site.url, "--cache-dir", str(ask.folder / "cache")]
    command = ["resolve", "right", "--cpu", *_LINUX, *flags, "--find-links", str(folder)]
    lock = tmp_path / "pylock.toml"
    assert main([*command, "-o", str(lock)]) == 0
    (package,) = tomllib.loads(lock.read_text(encoding="utf-8"))["packages"]
    assert package["version"] == "5.0"
    assert package["wheels"][0]["path"] == "links/right-5.0-py3-none-any.whl"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert main([*command, "-o", str(elsewhere / "pylock.toml")]) == 2
    assert "below the folder of the lock" in " ".join(capsys.readouterr().err.split())


def test_a_hash_in_a_requirements_file_chooses_among_wheels(ask: Asker) -> None:
    lock = ask.folder / "pylock.toml"
    flags = ["--default-index", ask.site.url, "--cache-dir", str(ask.folder / "cache")]
    assert main(["resolve", "right==1.0", "--cpu", *_LINUX, *flags, "-o", str(lock)]) == 0
    (package,) = tomllib.loads(lock.read_text(encoding="utf-8"))["packages"]
    digest = package["wheels"][0]["hashes"]["sha256"]
    file = ask.folder / "requirements.txt"
    file.write_text(f"right --hash=sha256:{digest}\n", encoding="utf-8")
    assert ask.pins("-r", str(file)) == {"right": "1.0"}


def _torch_of(ask: Asker) -> None:
    ask.site.add("torch", "2.10.0", tag=_TAG, requires=["nvidia-cuda-runtime-cu12==12.8.90"])
    ask.site.add("torch", "2.11.0", tag=_TAG, requires=["nvidia-cuda-runtime==13.0.96"])
    ask.site.add("torch", "2.12.0", tag=_TAG, requires=["nvidia-cuda-runtime==13.2.20"])
    ask.site.add("nvidia-cuda-runtime-cu12", "12.8.90")
    ask.site.add("nvidia-cuda-runtime", "13.0.96")
    ask.site.add("nvidia-cuda-runtime", "13.2.20")


_GPU = (*_LINUX, "--only-default-index", "--sm", "9.0")


def test_any_cuda_takes_the_newest_major_that_the_driver_runs_and_has_a_set(ask: Asker) -> None:
    _torch_of(ask)
    any_cuda = (*_GPU, "--cuda", "any", "--no-remedies")
    assert ask.pins("torch", *any_cuda, "--driver", "580.65.06", gpu=True)["torch"] == "2.11.0"
    assert ask.pins("torch", *any_cuda, "--driver", "570.26", gpu=True)["torch"] == "2.10.0"
    code, form = ask("torch<2.11", *any_cuda, "--driver", "580.65.06", gpu=True)
    assert code == 0
    assert form["target"]["cuda"] == "12.9"
    (told,) = [w["message"] for w in form["warnings"] if w["code"] == "cuda-any"]
    assert told == "CUDA 12.9 is taken: no set was found for CUDA 13.0"


def test_any_cuda_without_a_set_is_refused_for_the_newest_major(ask: Asker) -> None:
    _torch_of(ask)
    flags = (*_GPU, "--cuda", "any", "--driver", "580.65.06", "--no-remedies")
    code, form = ask("torch>=2.12", *flags, gpu=True)
    assert (code, form["target"]["cuda"]) == (1, "13.0")


def test_a_no_that_only_the_policy_causes_says_so_and_names_the_other(ask: Asker) -> None:
    _torch_of(ask)
    flags = (*_GPU, "--cuda", "13.0", "--driver", "595.45.04")
    code, form = ask("torch==2.12.0", *flags, gpu=True)
    assert code == 1
    assert "policy" in [fact["kind"] for fact in form["conflict"]["facts"]]
    remedies = {tuple(r["changes"]): r["command"] for r in form["conflict"]["remedies"]}
    assert ("torch==2.11.0",) in remedies
    assert "--cuda-compat minor" in remedies[("--cuda-compat minor",)]
    assert "--cuda 13.2" in remedies[("--cuda 13.2",)]
    minor = ask.pins("torch==2.12.0", *flags, "--cuda-compat", "minor", gpu=True)
    assert minor["torch"] == "2.12.0"


_FORWARD = (*_LINUX, "--only-default-index", "--driver", "570.211.01", "--cuda", "13.0")


def test_forward_compatibility_names_the_package_that_the_machine_needs(
    ask: Asker, capsys: pytest.CaptureFixture[str]
) -> None:
    _torch_of(ask)
    flags = (*_FORWARD, "--gpu", "h100", "--cuda-compat", "forward")
    code, form = ask("torch", *flags, gpu=True)
    assert code == 0
    assert [p["version"] for p in form["packages"] if p["name"] == "torch"] == ["2.11.0"]
    assert form["needs_driver"] == "580.65.06"
    assert form["needs_package"] == "cuda-compat-13-0"
    lock = ask.folder / "pylock.toml"
    site = ["--default-index", ask.site.url, "--cache-dir", str(ask.folder / "cache")]
    assert main(["resolve", "torch", *flags, *site, "-o", str(lock)]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "On driver 570.211.01 the machine needs the package cuda-compat-13-0." in told
    tool = tomllib.loads(lock.read_text(encoding="utf-8"))["tool"]["cudalock"]
    assert tool["needs-package"] == "cuda-compat-13-0"
    assert tool["target"]["cuda-compat"] == "forward"


def test_forward_compatibility_is_taken_only_when_asked_for(ask: Asker) -> None:
    _torch_of(ask)
    code, form = ask("torch==2.11.0", *_FORWARD, "--gpu", "h100", gpu=True)
    assert code == 1
    assert form["needs_package"] is None
    told = [fact["text"] for fact in form["conflict"]["facts"]]
    assert any("CUDA 13, which needs driver 580.65.06" in text for text in told), told


@pytest.mark.parametrize(
    ("gpu", "says"),
    [
        (("--gpu", "5090"), "is a GeForce or Titan"),
        (("--gpu", "rtx-pro-6000"), "not guaranteed"),
        (("--sm", "9.0"), "--gpu h100 says which GPU it is"),
    ],
)
def test_forward_compatibility_that_is_not_known_to_work_is_asked_wrongly(
    ask: Asker, gpu: tuple[str, str], says: str
) -> None:
    code, form = ask("torch", *_FORWARD, *gpu, "--cuda-compat", "forward", gpu=True)
    assert code == 2
    assert says in form["error"]["message"]
    assert form["error"]["where"] == "--cuda-compat"


def test_a_release_that_the_driver_runs_needs_no_package(ask: Asker) -> None:
    _torch_of(ask)
    flags = (*_LINUX, "--only-default-index", "--driver", "580.65.06", "--cuda", "13.0")
    code, form = ask("torch", *flags, "--gpu", "5090", "--cuda-compat", "forward", gpu=True)
    assert (code, form["needs_package"]) == (0, None)


def test_a_remedy_of_an_older_release_needs_no_package(ask: Asker) -> None:
    _torch_of(ask)
    flags = (*_FORWARD, "--gpu", "h100", "--cuda-compat", "forward")
    code, form = ask("torch==2.10.0", *flags, gpu=True)
    assert code == 1
    commands = {tuple(r["changes"]): r["command"] for r in form["conflict"]["remedies"]}
    words = commands[("--cuda 12.8",)].split()
    assert words[words.index("--gpu") + 1] == "h100"
    code, form = ask(*words[2:], *_LINUX, "--only-default-index", gpu=True)
    assert (code, form["needs_package"]) == (0, None)


def test_leaving_something_out_is_offered_only_when_nothing_else_solves(ask: Asker) -> None:
    ask.site.add("one", "1.0", requires=["right==1.0"])
    ask.site.add("two", "1.0", requires=["right==2.0"])
    code, form = ask("one", "two")
    assert code == 1
    kinds = [fact["kind"] for fact in form["conflict"]["facts"]]
    assert kinds == ["requirement", "requirement", "dependency", "dependency"]
    changes = [remedy["changes"] for remedy in form["conflict"]["remedies"]]
    assert changes == [["leave out one"], ["leave out two"]]
    code, form = ask("one", "right==2.0")
    assert [remedy["changes"] for remedy in form["conflict"]["remedies"]] == [["right==1.0"]]


def test_a_refusal_without_a_remedy_says_that_some_were_tried(
    ask: Asker, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--default-index", ask.site.url, "--cache-dir", str(ask.folder / "cache")]
    assert main(["resolve", "nothing-like-it", "--cpu", *_LINUX, *flags]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "No change of one requirement, release or policy that was tried solves it." in told


def test_variables_of_the_environment_stand_in_for_flags(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    _torch_of(ask)
    monkeypatch.setenv("CUDALOCK_CUDA", "12.8")
    monkeypatch.setenv("CUDALOCK_DRIVER", "570.26")
    monkeypatch.setenv("CUDALOCK_DEFAULT_INDEX", ask.site.url)
    monkeypatch.setenv("CUDALOCK_CACHE_DIR", str(ask.folder / "elsewhere"))
    lock = ask.folder / "pylock.toml"
    assert main(["resolve", "torch", *_GPU, "-o", str(lock)]) == 0
    assert 'version = "2.10.0"' in lock.read_text(encoding="utf-8")
    assert (ask.folder / "elsewhere").is_dir()


def _no_detection(_: object) -> Detection:
    raise AssertionError("this machine was asked")


def test_a_declared_target_asks_this_machine_nothing(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # astral-sh/uv#12994, eegdash/EEGDash#385: a lock made on CI or in a container build.
    monkeypatch.setattr("cudalock.cli.inputs.detect", _no_detection)
    code, form = ask("left", "--cuda", "13.0", "--sm", "12.0", *_LINUX, gpu=True)
    assert code == 0
    assert form["target"]["capabilities"] == ["12.0"]
    assert form["target"]["driver"] is None
    # The set holds no CUDA, so it needs no driver; with CUDA it records the one it needs.
    assert form["needs_driver"] is None


def test_the_lock_of_a_declared_target_records_it_and_the_driver_it_needs(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    _torch_of(ask)
    monkeypatch.setattr("cudalock.cli.inputs.detect", _no_detection)
    lock = ask.folder / "pylock.toml"
    site = ["--default-index", ask.site.url, "--cache-dir", str(ask.folder / "cache")]
    flags = [*_LINUX, "--only-default-index", "--cuda", "13.0", "--sm", "12.0", "-o", str(lock)]
    assert main(["resolve", "torch", *site, *flags]) == 0
    tool = tomllib.loads(lock.read_text(encoding="utf-8"))["tool"]["cudalock"]
    assert (tool["target"]["cuda"], tool["target"]["sm"]) == ("13.0", ["12.0"])
    assert "driver" not in tool["target"]
    assert tool["needs-driver"] == "580.65.06"


def test_a_mig_mask_that_names_no_known_gpu_does_not_lead_to_the_cpu(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # unslothai/unsloth#10985, vllm-project/vllm#42514: a container without nvidia-smi.
    box = Box(ask.folder)
    box.nvml = RecordedNvml(driver="580.95.05", cuda=13000, gpus=[("NVIDIA H100 PCIe", (9, 0))])
    masked = {"CUDA_VISIBLE_DEVICES": "MIG-1d6b9b9f-7c0a-5c1e-9a0e-5a5b7d8c9e00"}
    monkeypatch.setattr("cudalock.cli.inputs.detect", lambda _: box.detect(masked))
    ask.site.add("torch", "2.12.0+cpu", tag=_TAG)
    ask.site.add("torch", "2.11.0+cu130", tag=_TAG)
    code, form = ask("torch", *_LINUX, "--only-default-index", gpu=True)
    assert code == 0
    assert [package["version"] for package in form["packages"]] == ["2.11.0+cu130"]
    assert (form["target"]["cuda"], form["target"]["capabilities"]) == ("13.0", ["9.0"])
    assert form["target"]["cpu"] is False
    told = " ".join(warning["message"] for warning in form["warnings"])
    assert "CUDA_VISIBLE_DEVICES names MIG-1d6b9b9f" in told
    assert "the one GPU counts" in told


def test_without_a_driver_and_without_flags_nothing_is_guessed(
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # astral-sh/uv#12994, eegdash/EEGDash#385: neither a silent CPU nor a silent CUDA.
    monkeypatch.setattr("cudalock.cli.inputs.detect", lambda _: Detection(answers=()))
    lock = tmp_path / "pylock.toml"
    code = main(["resolve", "left", "--default-index", site.url, "-o", str(lock)])
    assert code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "no NVIDIA driver was found on this machine and none was given" in said
    assert all(flag in said for flag in ("--driver", "--driver-cuda", "--cuda", "--sm", "--cpu"))
    assert not lock.exists()
    assert site.server is not None
    assert site.server.asked == []
