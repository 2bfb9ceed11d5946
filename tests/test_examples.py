"""The examples do what they say, and the API reference is current."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import cudalock
from cudalock.cli.main import main
from cudalock.host import Interpreter, make_target
from cudalock.lock import read_lock
from cudalock.lock.several import lock_of_target
from cudalock.project import parse_pyproject
from default_index_site import Site, default_index

_EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_REPOSITORY = _EXAMPLES.parent


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        yield found


def resolve(site: Site, folder: Path, *arguments: str) -> int:
    flags = ["--default-index", site.url, "--only-default-index", "--no-remedies"]
    flags += ["--project", str(folder), "--cache-dir", str(folder / "cache")]
    return main(["resolve", *arguments, *flags])


def stock_fleet(site: Site) -> None:
    """Put on the index what each of the fleet's machines needs, and nothing that two could share by luck."""
    tag = "cp312-cp312-manylinux_2_28_"
    for project, version in (("torch", "2.11.0"), ("torchvision", "0.26.0")):
        requires = [] if project == "torch" else ["torch==2.11.0"]
        for label, machine in (
            ("cu128", "x86_64"),
            ("cu130", "x86_64"),
            ("cu130", "aarch64"),
            ("cpu", "x86_64"),
        ):
            site.add(project, f"{version}+{label}", tag=tag + machine, requires=requires)


def test_the_fleet_gets_one_lock_with_each_machines_build(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    shutil.copytree(_EXAMPLES / "fleet", folder, ignore=shutil.ignore_patterns("pylock*"))
    stock_fleet(site)
    names = ("hopper", "blackwell", "spark", "ci")
    assert resolve(site, folder, *(word for name in names for word in ("--target", name))) == 0
    lock = read_lock(folder / "pylock.toml")
    assert lock.extras == ("blackwell", "ci", "spark")
    found = {}
    for name, machine in zip(names, ("x86_64", "x86_64", "aarch64", "x86_64"), strict=True):
        target = cudalock.Target(python="3.12", platform=f"manylinux_2_28_{machine}", name=name)
        found[name] = [p.wheels[0].name for p in lock_of_target(lock, target).packages]
    assert {name: [w.split("-")[1] for w in wheels] for name, wheels in found.items()} == {
        "hopper": ["2.11.0+cu128", "0.26.0+cu128"],
        "blackwell": ["2.11.0+cu130", "0.26.0+cu130"],
        "spark": ["2.11.0+cu130", "0.26.0+cu130"],
        "ci": ["2.11.0+cpu", "0.26.0+cpu"],
    }
    assert all(wheel.endswith("_aarch64.whl") for wheel in found["spark"])


@pytest.mark.parametrize("folder", ["fleet", "docker", "blackwell-sglang"])
def test_a_target_of_an_example_needs_nothing_of_the_machine_it_is_locked_on(folder: str) -> None:
    path = _EXAMPLES / folder / "pyproject.toml"
    project = parse_pyproject(path.read_text(encoding="utf-8"), where=str(path))
    nowhere = Interpreter(version="3.8.1", implementation="cpython", platform="macosx_14_0_arm64")
    assert project.targets
    for named in project.targets:
        target = make_target(named.options, named=named, detected=None, interpreter=nowhere)
        assert target.python == "3.12"


def test_the_installer_installs_what_was_locked(site: Site, tmp_path: Path) -> None:
    site.add("left", "1.0", requires=["right"])
    right = site.add("right", "2.0")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n', "utf-8")
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert resolve(site, folder, "left", "--cpu", "--python", minor) == 0
    command = [sys.executable, str(_EXAMPLES / "installer.py"), str(folder / "pylock.toml")]
    environ = {**os.environ, "no_proxy": "127.0.0.1"}

    def install(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments], env=environ, capture_output=True, text=True, check=False
        )

    done = install(str(folder / "site"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "left 1.0\nright 2.0\n"
    assert (folder / "site" / "right.py").read_text(encoding="utf-8") == "VERSION = '2.0'\n"
    # Another extra than the lock has, and other bytes than were locked, are told apart.
    assert install(str(folder / "other"), "cu128").returncode == 2
    right.write_bytes(right.read_bytes() + b"\0")
    refused = install(str(folder / "other"))
    assert refused.returncode == 3
    assert "expected the bytes that were locked" in refused.stderr
    assert not (folder / "other" / "right.py").exists()


@pytest.mark.parametrize("name", ["pre-commit/.pre-commit-config.yaml", "github-action/action.yml", "github-action/workflow.yml"])  # fmt: skip
def test_what_is_yaml_can_be_read(name: str) -> None:
    assert yaml.safe_load((_EXAMPLES / name).read_text(encoding="utf-8"))


def test_the_shell_of_the_examples_is_sound() -> None:
    action = yaml.safe_load((_EXAMPLES / "github-action/action.yml").read_text(encoding="utf-8"))
    texts = [step["run"] for step in action["runs"]["steps"]]
    texts.append((_EXAMPLES / "docker/start.sh").read_text(encoding="utf-8"))
    for text in texts:
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_the_api_reference_is_current() -> None:
    script = _REPOSITORY / "scripts" / "api_reference.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (_REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in cudalock.__all__)
