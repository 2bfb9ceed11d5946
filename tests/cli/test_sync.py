"""`cudalock sync`: the real uv and pip install a lock into a real environment, on a machine that can run it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pip
import pytest

import cudalock
from cudalock.cli import sync
from cudalock.cli.main import main
from cudalock.host.this_machine import detect_interpreter
from cudalock.lock.fitness import Fitness
from default_index_site import Site, default_index
from host_boxes import BLACKWELL, Box, RecordedNvml

_SCHEMA = Path(cudalock.__file__).parent / "cli" / "schemas" / "sync-1.json"
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_TAG = f"cp3{sys.version_info.minor}-cp3{sys.version_info.minor}-manylinux_2_17_x86_64"

pytestmark = pytest.mark.skipif(
    "x86_64" not in detect_interpreter().platform, reason="the wheels here are for Linux on x86_64"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with default_index(tmp_path_factory.mktemp("sync") / "files") as found:
        found.add("kernel", "2.0+cu130", tag=_TAG, requires=["shared"])
        found.add("kernel", "1.0+cu128", tag=_TAG, requires=["shared"])
        found.add("shared", "1.0")
        yield found


@pytest.fixture(scope="module")
def locked(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a lock of two targets."""
    folder = tmp_path_factory.mktemp("project")
    targets = "".join(
        f'[tool.cudalock.targets.{name}]\npython = "{_PYTHON}"\nplatform = "linux-x86_64"\n{rest}\n'
        for name, rest in (
            ("blackwell", 'driver = "590.48.01"\ncuda = "13.0"\nsm = ["12.0"]'),
            ("hopper", 'driver-cuda = "12.8"\ncuda = "12.8"\nsm = ["9.0"]'),
        )
    )
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "x"\nversion = "1"\ndependencies = ["kernel"]\n{targets}',
        encoding="utf-8",
    )
    flags = ["--default-index", site.url, "--only-default-index", "--no-remedies"]
    flags += ["--cache-dir", str(folder / "cache"), "--project", str(folder), "-q"]
    assert main(["resolve", "--target", "blackwell", "--target", "hopper", *flags]) == 0
    return folder


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Box], None]:
    """Put a recorded machine's driver and GPUs in place of this one's; its Python stays."""

    def put(box: Box) -> None:
        monkeypatch.setattr(sync, "detect", lambda _: box.detect(environ={}))

    put(_box(tmp_path, RecordedNvml()))
    return put


def _box(folder: Path, nvml: RecordedNvml | None) -> Box:
    box = Box(folder / f"root-{id(nvml)}")
    if nvml is not None:
        box.nvml = nvml
    return box


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an environment with our own pip, and leave nothing but the lock to say where to fetch from."""
    path = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    [packages] = path.glob("lib/python3*/site-packages")
    own = Path(pip.__file__).parent
    for folder in (own, *own.parent.glob("pip-*.dist-info")):
        shutil.copytree(folder, packages / folder.name)
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "PIP_NO_INDEX": "1",
        "PIP_NO_CACHE_DIR": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_CONFIG": "1",
        "UV_NO_INDEX": "1",
        "UV_CACHE_DIR": str(tmp_path / "uv"),
    }.items():
        monkeypatch.setenv(name, value)
    return path


def installed(environment: Path) -> dict[str, str]:
    [packages] = environment.glob("lib/python3*/site-packages")
    found = (
        path.name.removesuffix(".dist-info").split("-") for path in packages.glob("*.dist-info")
    )
    return {name: version for name, version in found if name in ("kernel", "shared")}


def run(locked: Path, environment: Path, *arguments: str) -> int:
    return main(["sync", "--project", str(locked), "--python", str(environment), *arguments])


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_the_lock_is_installed_where_the_machine_can_run_it(
    locked: Path, environment: Path, capfd: pytest.CaptureFixture[str], installer: str
) -> None:
    code = run(locked, environment, "--installer", installer, "--dry-run")
    assert code == 0, capfd.readouterr()
    assert installed(environment) == {}
    capfd.readouterr()
    assert run(locked, environment, "--installer", installer, "--format", "json") == 0
    form = json.loads(capfd.readouterr().out)
    jsonschema.validate(form, json.loads(_SCHEMA.read_text(encoding="utf-8")))
    assert form["status"] == "installed"
    assert installed(environment) == {"kernel": "2.0+cu130", "shared": "1.0"}


def test_a_target_of_the_lock_is_installed_by_its_extra(
    locked: Path, environment: Path, machine: Callable[[Box], None], tmp_path: Path
) -> None:
    h100 = RecordedNvml(driver="570.86.15", cuda=12080, gpus=[("NVIDIA H100", (9, 0))])
    machine(_box(tmp_path, h100))
    assert run(locked, environment, "--target", "hopper") == 0
    assert installed(environment) == {"kernel": "1.0+cu128", "shared": "1.0"}


def test_a_machine_whose_driver_is_too_old_is_refused_with_the_floor_and_what_runs_there(
    locked: Path,
    environment: Path,
    machine: Callable[[Box], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    h100 = RecordedNvml(driver="570.86.15", cuda=12080, gpus=[("NVIDIA H100", (9, 0))])
    machine(_box(tmp_path, h100))
    assert run(locked, environment) == 1
    words = " ".join(capsys.readouterr().err.split())
    assert "the set needs NVIDIA driver 580.65.06 or newer, found driver 570.86.15" in words
    assert "target `hopper` of the lock runs here: --target hopper" in words
    assert installed(environment) == {}


@pytest.mark.parametrize(
    ("nvml", "code", "words"),
    [
        (None, 1, "found no NVIDIA driver"),
        (RecordedNvml(init=999), 3, "this machine could not be read"),
        (RecordedNvml(gpus=[(BLACKWELL, (12, 0)), ("NVIDIA H100", (9, 0))]), 3,
         "made for compute capability 12.0, and whether it serves NVIDIA H100"),
        (RecordedNvml(gpus=[("Tesla V100", (7, 0))]), 1, "Tesla V100 (compute capability 7.0) is not served"),
        (RecordedNvml(gpus=[]), 3, "which GPUs this machine has could not be read"),
    ],
)  # fmt: skip
def test_no_and_could_not_tell_are_two_answers(
    locked: Path,
    environment: Path,
    machine: Callable[[Box], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    nvml: RecordedNvml | None,
    code: int,
    words: str,
) -> None:
    machine(_box(tmp_path, nvml))
    assert run(locked, environment) == code
    assert words in " ".join(capsys.readouterr().err.split())
    assert installed(environment) == {}


@pytest.mark.usefixtures("machine")
def test_another_python_is_refused(
    locked: Path, environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "pylock.toml"
    text = (locked / "pylock.toml").read_text(encoding="utf-8")
    other.write_text(
        text.replace(f'"=={_PYTHON}.*"', '"==3.8.*"').replace(f"'{_PYTHON}'", "'3.8'"),
        encoding="utf-8",
    )
    assert main(["sync", str(other), "--python", str(environment)]) == 1
    assert "the lock is for Python ==3.8.*, found Python 3." in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.mark.usefixtures("machine")
def test_a_lock_that_says_for_no_machine_is_no_yes(
    environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "pylock.toml"
    other.write_text('lock-version = "1.0"\ncreated-by = "another"\npackages = []\n', "utf-8")
    assert main(["sync", str(other), "--python", str(environment)]) == 3
    assert "nothing in it says for which machine" in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("machine")
def test_which_environment_is_meant_is_never_guessed(
    locked: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sync", "--project", str(locked)]) == 2
    assert "expected an environment to install into" in " ".join(capsys.readouterr().err.split())
    assert main(["sync", "--project", str(locked), "--python", str(tmp_path / "none")]) == 2
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    assert main(["sync", "--project", str(locked), "--python", str(tmp_path / "python")]) == 3
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert main(["sync", "--project", str(locked)]) == 2


@pytest.mark.usefixtures("machine")
def test_the_only_lock_is_meant_and_of_several_none(
    locked: Path, environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (locked / "pylock.toml").read_text(encoding="utf-8")
    folder = tmp_path / "split"
    folder.mkdir()
    (folder / "pylock.blackwell.toml").write_text(text, encoding="utf-8")
    assert run(folder, environment, "--dry-run") == 0
    (folder / "pylock.hopper.toml").write_text(text, encoding="utf-8")
    assert run(folder, environment, "--dry-run") == 2
    assert "found `pylock.blackwell.toml`, `pylock.hopper.toml`" in " ".join(
        capsys.readouterr().err.split()
    )
    assert run(folder, environment, "--target", "blackwell", "--dry-run") == 0
    assert run(tmp_path / "none", environment) == 2


@pytest.mark.usefixtures("machine")
def test_an_installer_that_fails_is_no_success(
    locked: Path, environment: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "pylock.toml"
    text = (locked / "pylock.toml").read_text(encoding="utf-8")
    other.write_text(
        re.sub(r'sha256 = "(\w+)"', lambda m: f'sha256 = "{m[1][::-1]}"', text), "utf-8"
    )
    assert main(["sync", str(other), "--python", str(environment)]) == 3
    assert "expected the installer to end with 0" in " ".join(capfd.readouterr().err.split())


@pytest.mark.usefixtures("machine")
def test_a_pip_that_does_not_read_locks_is_told_before_it_is_run(
    locked: Path, environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [version] = environment.glob("lib/python3*/site-packages/pip/__init__.py")
    text = version.read_text(encoding="utf-8")
    for old, words in (("25.3", "pip 26.1 or newer, found 25.3"), ("26.2", "26.3 or newer, for")):
        version.write_text(
            re.sub(r'__version__ = "[^"]+"', f'__version__ = "{old}"', text), "utf-8"
        )
        target = ["--target", "blackwell"] if old == "25.3" else ["--target", "hopper"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sync, "fitness", lambda *_: Fitness())
            assert run(locked, environment, "--installer", "pip", *target) == 2
        assert words in " ".join(capsys.readouterr().err.split())
    shutil.rmtree(version.parent)
    assert run(locked, environment, "--installer", "pip") == 2
    assert "found none" in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("machine")
def test_a_target_that_the_lock_does_not_have_is_asked_wrongly(
    locked: Path, environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(locked, environment, "--target", "spark") == 2
    assert "(`blackwell`, `hopper`), found `spark`" in " ".join(capsys.readouterr().err.split())
