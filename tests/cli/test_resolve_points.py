"""What `cudalock resolve` has to show, on recorded CUDA indices and a default index on loopback."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cudalock
from cudalock.cli.main import main
from cudalock.resolver.request import Request, Requested
from cudalock.session import IndexOptions, Session
from cudalock.wheel.names import parse_requirement
from default_index_site import Site, default_index, stock_demo

_REPOSITORY = Path(__file__).parents[2]
_EXAMPLE = _REPOSITORY / "examples" / "blackwell-sglang"
_SCHEMAS = _REPOSITORY / "src" / "cudalock" / "cli" / "schemas"
_DEMO = ("torch", "torchvision", "sglang-kernel", "flashinfer-python", "flashinfer-jit-cache")
_LINUX = ("--python", "3.12", "--platform", "linux-x86_64")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with default_index(tmp_path_factory.mktemp("demo") / "files") as site:
        stock_demo(site)
        yield site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        yield found


def _flags(site: Site, tmp_path: Path) -> list[str]:
    return ["--default-index", site.url, "--cache-dir", str(tmp_path / "cache")]


def _run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["resolve", *arguments, "--format", "json"])
    form = json.loads(capsys.readouterr().out)
    schema = json.loads((_SCHEMAS / "resolve-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(form, schema)
    return code, form


def _pins(lock: Path) -> dict[str, str]:
    found = tomllib.loads(lock.read_text(encoding="utf-8"))
    return {package["name"]: package["version"] for package in found["packages"]}


def test_the_demonstration_takes_a_set_that_agrees(demo: Site, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(_EXAMPLE, project, ignore=shutil.ignore_patterns("pylock*"))
    flags = [*_flags(demo, tmp_path), "--recorded", "--project", str(project)]
    assert main(["resolve", *flags]) == 0
    pins = _pins(project / "pylock.blackwell.toml")
    assert pins["torch"] == "2.11.0+cu130"
    assert pins["sglang-kernel"].endswith("+cu130")
    assert pins["flashinfer-jit-cache"].partition("+")[0] == pins["flashinfer-python"]
    assert pins["cuda-toolkit"] == "13.0.2"
    for part in ("cuda-nvrtc", "cuda-runtime", "nvjitlink", "cuda-cupti", "nvtx"):
        assert pins[f"nvidia-{part}"].startswith("13.0."), part
    assert (pins["nvidia-cublas"], pins["nvidia-cufft"]) == ("13.1.0.3", "12.0.0.61")
    assert pins["cuda-bindings"].startswith("13.0.")
    assert not [name for name in pins if name.endswith("-cu12")]


def test_without_the_pairings_the_demonstration_takes_a_newer_torch(
    demo: Site, tmp_path: Path
) -> None:
    indices = tmp_path / "indices"
    shutil.copytree(_REPOSITORY / "indices", indices)
    target = cudalock.Target(
        python="3.12",
        platform="manylinux_2_28_x86_64",
        driver=cudalock.parse_driver_version("590.48.01"),
        driver_cuda=cudalock.CudaVersion(major=13, minor=1),
        cuda=cudalock.CudaVersion(major=13, minor=0),
        capabilities=(cudalock.ComputeCapability(major=12, minor=0),),
    )
    request = Request(
        requirements=tuple(
            Requested(requirement=parse_requirement(name), where="test") for name in _DEMO
        )
    )

    def torch() -> str:
        options = IndexOptions(default_index=demo.url, recorded=True, directory=indices)
        with Session(options) as session:
            packages = session.resolve(request, target).packages
        return next(str(p.version) for p in packages if p.project == "torch")

    paired = torch()
    (indices / "knowledge" / "pairings.toml").write_text("", encoding="utf-8")
    assert (paired, torch()) == ("2.11.0+cu130", "2.14.0+cu130")


def test_the_nightly_story_is_refused_by_the_pairing_and_both_remedies_were_solved(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly = str(_EXAMPLE / "nightly")
    flags = [*_flags(demo, tmp_path), "--recorded", "--project", nightly]
    code, form = _run_json(capsys, *flags)
    assert code == 1
    kinds = [fact["kind"] for fact in form["conflict"]["facts"]]
    assert sorted(kinds) == ["pairing", "release", "requirement", "requirement"]
    pairing = next(f for f in form["conflict"]["facts"] if f["kind"] == "pairing")
    assert pairing["text"] == "sgl-kernel 0.3.21+cu130 is built for torch 2.9"
    assert "sgl-kernel==0.3.21" in pairing["source"]
    first, second = form["conflict"]["remedies"]
    assert first["changes"] == ["torch==2.9.1"]
    assert second["changes"] == ["torch==2.11.0", "sglang-kernel==0.4.4"]
    assert "2.11.0.dev20260212 is before 2.11.0" in second["note"]
    # The hint is a command: what it asks for resolves.
    words = second["command"].split()
    requirements = [word for word in words[2:] if "==" in word]
    target = ["--cuda", "13.0", "--driver", "590.48.01", "--sm", "12.0", *_LINUX]
    again = ["resolve", *requirements, *target, *_flags(demo, tmp_path), "--recorded", "--dry-run"]
    assert main(again) == 0


def test_a_cuda_12_driver_takes_the_newest_cuda_12_build(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (
        "cublas-cu12", "cuda-cupti-cu12", "cuda-nvrtc-cu12", "cuda-runtime-cu12", "cufft-cu12",
        "cufile-cu12", "curand-cu12", "cusolver-cu12", "cusparse-cu12", "nvjitlink-cu12",
        "nvtx-cu12",
    ):  # fmt: skip
        if f"nvidia-{name}" not in demo.files:
            demo.add(f"nvidia-{name}", "12.8.90")
    for name, version in (
        ("nvidia-cudnn-cu12", "9.19.0.56"), ("nvidia-nccl-cu12", "2.28.9"),
        ("nvidia-cusparselt-cu12", "0.7.1"), ("nvidia-nvshmem-cu12", "3.4.5"),
    ):  # fmt: skip
        demo.add(name, version)
    extras = ("cublas", "cuda-runtime", "cufft", "cufile", "cuda-cupti", "curand", "cusolver",
              "cusparse", "nvjitlink", "cuda-nvrtc", "nvtx")  # fmt: skip
    asked = {"cuda-runtime": "cudart", "cuda-cupti": "cupti", "cuda-nvrtc": "nvrtc"}
    demo.add(
        "cuda-toolkit",
        "12.8.1",
        requires=[
            f'nvidia-{part}-cu12==12.8.90 ; extra == "{asked.get(part, part)}"' for part in extras
        ],
        extras=[asked.get(part, part) for part in extras],
    )
    flags = ["torch", *_LINUX, "--recorded", *_flags(demo, tmp_path), "--dry-run"]
    code, form = _run_json(capsys, *flags, "--cuda", "12.8", "--driver", "570.26", "--sm", "9.0")
    torch = next(package for package in form["packages"] if package["name"] == "torch")
    assert (code, torch["version"]) == (0, "2.11.0+cu128")
    assert form["needs_driver"] == "570.26"


def test_a_driver_between_two_published_folders_takes_the_one_below_and_says_so(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["torch", *_LINUX, "--recorded", *_flags(demo, tmp_path), "--dry-run"]
    code, form = _run_json(capsys, *flags, "--driver", "590.48.01", "--sm", "12.0")
    torch = next(package for package in form["packages"] if package["name"] == "torch")
    assert code == 0
    assert torch["version"].endswith("+cu130")
    told = [w["message"] for w in form["warnings"] if w["code"] == "unpublished"]
    assert told == ["`pytorch` publishes no cu131: cu130 is taken"]


def test_cuda_13_is_refused_on_a_gpu_it_has_no_target_for(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["torch", *_LINUX, "--recorded", *_flags(demo, tmp_path), "--no-remedies"]
    code, form = _run_json(capsys, *flags, "--cuda", "13.0", "--gpu", "v100")
    assert code == 1
    texts = " ".join(fact["text"] for fact in form["conflict"]["facts"])
    assert "which has no sm_70" in texts
    assert "compute capability 7.0" in texts


def test_the_newest_release_is_held_back_by_the_driver_and_that_is_said(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = "cp312-cp312-manylinux_2_28_x86_64"
    site.add("torch", "2.10.0", tag=tag, requires=["nvidia-cuda-runtime-cu12==12.8.90"])
    site.add("torch", "2.11.0", tag=tag, requires=["cuda-toolkit==13.0.2"])
    site.add("torch", "2.12.0", tag=tag, requires=["cuda-toolkit==13.0.2"])
    site.add("nvidia-cuda-runtime-cu12", "12.8.90")
    flags = ["torch", *_LINUX, "--only-default-index", *_flags(site, tmp_path), "--dry-run"]
    code, form = _run_json(capsys, *flags, "--cuda", "12.8", "--driver", "570.26", "--sm", "9.0")
    torch = next(package for package in form["packages"] if package["name"] == "torch")
    assert (code, torch["version"]) == (0, "2.10.0")
    (told,) = [w["message"] for w in form["warnings"] if w["code"] == "held-back"]
    assert "torch 2.11.0 and 2.12.0" in told
    assert "CUDA 13, which needs driver 580.65.06" in told


def test_the_same_command_twice_gives_the_same_bytes_and_asks_nothing_again(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "1.0", requires=["right>=1"])
    site.add("right", "1.0")
    site.add("right", "2.0")
    lock = tmp_path / "pylock.toml"
    flags = [
        "resolve",
        "left",
        "--cpu",
        "--only-default-index",
        *_flags(site, tmp_path),
        "-o",
        str(lock),
    ]
    assert main(flags) == 0
    first, asked = lock.read_bytes(), len(site.asked)
    assert asked == 4
    lock.unlink()
    assert main(flags) == 0
    assert (lock.read_bytes(), len(site.asked)) == (first, asked)
    assert "with no request" in capsys.readouterr().err
    assert main([*flags, "--offline"]) == 0
    assert (lock.read_bytes(), len(site.asked)) == (first, asked)


def test_offline_without_a_copy_says_what_is_missing(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["left", "--cpu", "--only-default-index", *_flags(site, tmp_path), "--offline"]
    code = main(["resolve", *flags, "-o", str(tmp_path / "pylock.toml")])
    told = capsys.readouterr().err
    assert code == 3
    assert f"{site.url}/left/" in told
    assert "--offline" in told
    assert not (tmp_path / "pylock.toml").exists()


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_real_installer_takes_the_lock(site: Site, tmp_path: Path, installer: str) -> None:
    site.add("bolt", "2.11.0+cu130", requires=["nut"])
    site.add("nut", "1.0")
    lock = tmp_path / "pylock.toml"
    flags = ["resolve", "bolt", "--cuda", "13.0", "--sm", "12.0", "--only-default-index"]
    assert main([*flags, *_flags(site, tmp_path), "-o", str(lock)]) == 0
    into = tmp_path / "installed"
    if installer == "pip":
        command = [sys.executable, "-m", "pip", "install", "--no-deps"]
    else:
        from uv import find_uv_bin

        command = [find_uv_bin(), "pip", "install", "--python", sys.executable, "--no-deps"]
    environ = {
        **os.environ,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
        "UV_NO_CONFIG": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    done = subprocess.run(
        [*command, "--target", str(into), "-r", str(lock)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (into / "bolt.py").read_text(encoding="utf-8") == "VERSION = '2.11.0+cu130'\n"
    assert (into / "nut.py").is_file()


def test_the_library_example_runs(demo: Site) -> None:
    done = subprocess.run(
        [sys.executable, str(_REPOSITORY / "examples" / "library.py"), demo.url],
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "torch 2.11.0+cu130 CUDA 13.0" in done.stdout


@pytest.mark.network
def test_the_demonstration_on_the_live_default_index(tmp_path: Path) -> None:
    lock = tmp_path / "pylock.blackwell.toml"
    flags = ["--recorded", "--project", str(_EXAMPLE), "-o", str(lock)]
    assert main(["resolve", *flags]) == 0
    pins = _pins(lock)
    assert pins["torch"] == "2.11.0+cu130"
    assert pins["cuda-toolkit"].startswith("13.0.")


@pytest.mark.network
def test_sglang_on_the_live_default_index_has_one_toolkit(tmp_path: Path) -> None:
    lock = tmp_path / "pylock.toml"
    target = ["--cuda", "13.0", "--sm", "12.0", "--python", "3.12"]
    flags = ["--platform", "manylinux_2_34_x86_64", "--only-default-index", "-o", str(lock)]
    assert main(["resolve", "sglang==0.5.23", *target, *flags]) == 0
    pins = _pins(lock)
    assert len(pins) > 180
    assert pins["torch"] == "2.14.1"
    for part in ("nvcc", "crt", "nvrtc", "cccl", "runtime"):
        assert pins[f"nvidia-cuda-{part}"].startswith("13.0."), part
    for part in ("nvidia-nvvm", "nvidia-nvjitlink", "cuda-toolkit"):
        assert pins[part].startswith("13.0."), part
