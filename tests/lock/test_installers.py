"""The install matrix: which wheels land when real installers take a lock of several targets.

A lock of two targets (the default for CUDA 13.0, the extra ``cu128``), and one that holds another machine and
another Python besides.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudalock.cli.main import main
from cudalock.host.this_machine import detect_interpreter
from default_index_site import Site, default_index
from installers import INSTALLERS, Installer, install, make_environment, prepare

_MINOR = sys.version_info.minor
_NATIVE = f"cp3{_MINOR}-cp3{_MINOR}-manylinux_2_28_x86_64"

pytestmark = [
    pytest.mark.installers,
    pytest.mark.skipif(
        "x86_64" not in detect_interpreter().platform, reason="the wheels are for Linux on x86_64"
    ),
]

_PROJECT = """
[project]
name = "fleet"
version = "1"
requires-python = ">=3.9"
dependencies = ["kernel"]

# pdm chooses an extra of a lock only where the project has one of that name.
[project.optional-dependencies]
cu128 = []
spark = []
"""


def target(name: str, rest: str, *, python: int = _MINOR, machine: str = "x86_64") -> str:
    return (
        f'[tool.cudalock.targets.{name}]\npython = "3.{python}"\nplatform = "linux-{machine}"\n'
        f"{rest}\n"
    )


_BLACKWELL = target("blackwell", 'driver = "590.48.01"\ncuda = "13.0"\nsm = ["12.0"]')
_CU128 = target("cu128", 'driver-cuda = "12.8"\ncuda = "12.8"\nsm = ["9.0"]')
_CI = target("ci", "cpu = true", python=_MINOR + 1)
_SPARK = target("spark", 'driver = "590.48.01"\ncuda = "13.0"\nsm = ["12.1"]', machine="aarch64")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    other = _NATIVE.replace(f"3{_MINOR}", f"3{_MINOR + 1}")
    with default_index(tmp_path_factory.mktemp("matrix") / "files") as found:
        for version, tag in (
            ("2.0+cu130", _NATIVE),
            ("2.0+cu130", other),
            ("1.5+cu130", _NATIVE.replace("x86_64", "aarch64")),
        ):
            found.add("kernel", version, tag=tag, requires=["shared", "runtime-of-13"])
        found.add("kernel", "1.0+cu128", tag=_NATIVE, requires=["shared", "runtime-of-12"])
        found.add("kernel", "2.0+cpu", tag=other, requires=["shared"])
        for name in ("shared", "runtime-of-12", "runtime-of-13"):
            found.add(name, "1.0")
        yield found


def lock(site: Site, folder: Path, *targets: str) -> Path:
    (folder / "pyproject.toml").write_text(_PROJECT + "\n".join(targets), encoding="utf-8")
    names = [text.partition("targets.")[2].partition("]")[0] for text in targets]
    flags = [word for name in names for word in ("--target", name)]
    flags += ["--default-index", site.url, "--only-default-index", "--no-remedies", "-q"]
    flags += ["--project", str(folder), "--cache-dir", str(folder / "cache")]
    assert main(["resolve", *flags]) == 0
    return folder / "pylock.toml"


@pytest.fixture(params=INSTALLERS, ids=lambda installer: installer.requirement)
def installer(request: pytest.FixtureRequest) -> Installer:
    found: Installer = request.param
    return found


@pytest.fixture
def home(
    installer: Installer,
    tmp_path_factory: pytest.TempPathFactory,
    outside_environment: dict[str, str],
) -> Path:
    base = tmp_path_factory.getbasetemp()
    # Every process of a parallel run has a folder of its own in one that they share.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return prepare(installer, shared / "installers", outside_environment)


def installed(environment: Path) -> dict[str, str]:
    [packages] = environment.glob("lib/python3*/site-packages")
    return {
        path.stem: path.read_text(encoding="utf-8").split("'")[1]
        for path in packages.glob("*.py")
        if path.stem in ("kernel", "shared", "runtime_of_12", "runtime_of_13")
    }


DEFAULT = {"kernel": "2.0+cu130", "shared": "1.0", "runtime_of_13": "1.0"}
EXTRA = {"kernel": "1.0+cu128", "shared": "1.0", "runtime_of_12": "1.0"}


@pytest.mark.parametrize("targets", [(_BLACKWELL, _CU128), (_BLACKWELL, _CU128, _CI, _SPARK)],
                         ids=["two-targets", "a-fleet"])  # fmt: skip
def test_the_default_and_the_extra_land(
    site: Site, tmp_path: Path, installer: Installer, home: Path, targets: tuple[str, ...]
) -> None:
    path = lock(site, tmp_path, *targets)
    environment = make_environment(tmp_path / ".venv")
    result = install(installer, home, path, environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert installed(environment) == DEFAULT
    other = make_environment(tmp_path / ".venv")
    result = install(installer, home, path, other, extra="cu128")
    if installer.extras:
        assert result.returncode == 0, result.stdout + result.stderr
        assert installed(other) == EXTRA
    else:
        # It knows no extras of a lock, and says so: it never takes the default for one.
        assert result.returncode != 0
        assert installed(other) == {}


def test_the_extra_of_another_machine_brings_no_wheel_that_is_not_for_it(
    site: Site, tmp_path: Path, installer: Installer, home: Path
) -> None:
    if not installer.extras:
        pytest.skip("it chooses no extras")
    path = lock(site, tmp_path, _BLACKWELL, _CU128, _SPARK)
    environment = make_environment(tmp_path / ".venv")
    result = install(installer, home, path, environment, extra="spark")
    if installer.name == "pdm":
        # It leaves out what has no wheel for the machine, and says nothing of it.
        assert "kernel" not in installed(environment)
        return
    assert result.returncode != 0
    assert installed(environment) == {}
