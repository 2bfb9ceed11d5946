"""Real pip and real uv install what ``format_lock`` wrote, from an index on loopback."""

import functools
import hashlib
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from builders import make_wheel
from cudalock.lock import Lock, LockedPackage, LockedWheel, TomlValue, write_lock

UV = Path(sys.executable).with_name("uv")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Serve a folder on loopback; yield the folder and its URL."""
    folder = tmp_path_factory.mktemp("index")
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


VARIANTS: Mapping[str, TomlValue] = {
    "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["nvidia"]},
    "variants": {
        "cu130_sm120": {"nvidia": {"cuda_version_lower_bound": ["13.0"], "sm_arch": ["120_real"]}},
        "null": {},
    },
}


def entry(
    index: tuple[Path, str],
    name: str,
    version: str,
    *,
    marker: str | None = None,
    requires: tuple[str, ...] = (),
    dependencies: tuple[tuple[str, str | None], ...] = (),
    label: str = "",
    variants: Mapping[str, TomlValue] | None = None,
) -> LockedPackage:
    folder, address = index
    wheel = make_wheel(folder, name, version, requires=requires, requires_python=">=3.9")
    if label:
        wheel = wheel.rename(folder / f"{wheel.stem}-{label}.whl")
    return LockedPackage(
        name=name,
        version=version,
        marker=marker,
        requires_python=">=3.9",
        index=f"{address}/simple/",
        dependencies=dependencies,
        wheels=(
            LockedWheel(
                name=wheel.name,
                url=f"{address}/{wheel.name.replace('+', '%2B')}",
                size=wheel.stat().st_size,
                hashes={"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()},
            ),
        ),
        variants_json=variants,
        tool={wheel.name: {"hash": "computed", "runtime": 13}},
    )


@pytest.fixture
def lock(index: tuple[Path, str]) -> Lock:
    return Lock(
        requires_python=">=3.9",
        extras=("cu128",),
        dependency_groups=("default",),
        packages=(
            entry(index, "left", "1.0+cu130", marker="'cu128' not in extras",
                  requires=("right",), dependencies=(("right", "2.4+cu130"),)),
            entry(index, "left", "1.0+cu128", marker="'cu128' in extras"),
            entry(index, "right", "2.4+cu130"),
        ),
        tool={"target": {"driver-cuda": "13.1", "sm": ["12.0"]}},
    )  # fmt: skip


def installers(lock_file: Path, target: Path, extra: str = "") -> dict[str, list[str]]:
    pip_file = f"{lock_file}[{extra}]" if extra else str(lock_file)
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check"]
    uv = [str(UV), "pip", "install", "--no-deps", "--python", sys.executable]
    return {
        "pip": [*pip, "--no-cache-dir", "--target", str(target), "-r", pip_file],
        "uv": [*uv, "--target", str(target), "-r", str(lock_file)]
        + (["--extra", extra] if extra else []),
        "uv-sync": [str(UV), "pip", "sync", "--python", sys.executable, "--target", str(target)]
        + [str(lock_file)]
        + (["--extra", extra] if extra else []),
    }


def install(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "PIP_NO_INPUT": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_CONFIG": "1",
        "UV_CACHE_DIR": str(folder / "uv-cache"),
        "UV_LINK_MODE": "copy",
        # Nothing but the lock may say where to fetch from.
        "PIP_NO_INDEX": "1",
        "UV_NO_INDEX": "1",
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def installed(target: Path) -> dict[str, str]:
    return {path.stem: path.read_text().split("'")[1] for path in target.glob("*.py")}


def test_pip_is_new_enough_to_read_locks() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, text=True, check=True
    ).stdout
    match = re.match(r"pip (\d+)\.(\d+)", found)
    assert match is not None
    assert tuple(map(int, match.groups())) >= (26, 1)


@pytest.mark.parametrize("installer", ["pip", "uv", "uv-sync"])
@pytest.mark.parametrize("extra", ["", "cu128"])
def test_the_lock_installs(lock: Lock, tmp_path: Path, installer: str, extra: str) -> None:
    lock_file, target = tmp_path / "pylock.toml", tmp_path / "site"
    write_lock(lock_file, lock)
    result = install(installers(lock_file, target, extra)[installer], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    left = "1.0+cu128" if extra else "1.0+cu130"
    assert installed(target) == {"left": left, "right": "2.4+cu130"}


@pytest.mark.parametrize("installer", ["pip", "uv", "uv-sync"])
def test_metadata_of_variants_beside_an_ordinary_wheel_is_ignored(
    index: tuple[Path, str], tmp_path: Path, installer: str
) -> None:
    lock_file, target = tmp_path / "pylock.toml", tmp_path / "site"
    write_lock(lock_file, Lock(packages=(entry(index, "top", "3.0", variants=VARIANTS),)))
    assert "[packages.variants-json]" in lock_file.read_text()
    result = install(installers(lock_file, target)[installer], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert installed(target) == {"top": "3.0"}


@pytest.mark.parametrize(
    ("installer", "words"),
    [
        ("pip", "Invalid wheel filename"),
        ("uv", "doesn't have a source distribution or wheel"),
        ("uv-sync", "doesn't have a source distribution or wheel"),
    ],
)
def test_a_variant_in_a_lock_is_refused_by_installers_that_do_not_know_variants(
    index: tuple[Path, str], tmp_path: Path, installer: str, words: str
) -> None:
    # When this fails, an installer has learnt them, and `--variants` may say so.
    lock_file, target = tmp_path / "pylock.toml", tmp_path / "site"
    variant = entry(index, "bottom", "3.0", label="cu130_sm120", variants=VARIANTS)
    write_lock(lock_file, Lock(packages=(variant,)))
    result = install(installers(lock_file, target)[installer], tmp_path)
    assert result.returncode != 0
    assert words in result.stdout + result.stderr


@pytest.mark.parametrize("installer", ["pip", "uv", "uv-sync"])
def test_a_wrong_hash_is_refused(lock: Lock, tmp_path: Path, installer: str) -> None:
    lock_file, target = tmp_path / "pylock.toml", tmp_path / "site"
    write_lock(lock_file, lock)
    right = next(package for package in lock.packages if package.name == "right")
    digest = right.wheels[0].hashes["sha256"]
    lock_file.write_text(lock_file.read_text().replace(digest, digest[::-1]))
    result = install(installers(lock_file, target)[installer], tmp_path)
    assert result.returncode != 0
    assert "hash" in (result.stdout + result.stderr).lower()
    assert "right" not in installed(target)


def test_a_lock_beside_its_wheels_installs(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    wheel = make_wheel(tmp_path / "wheels", "left", "1.0+cu130")
    locked = LockedWheel(
        name=wheel.name,
        path=f"wheels/{wheel.name}",
        hashes={"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()},
    )
    lock_file = tmp_path / "pylock.toml"
    package = LockedPackage(name="left", version="1.0+cu130", wheels=(locked,))
    write_lock(lock_file, Lock(packages=(package,)))
    for installer, command in installers(lock_file, tmp_path / "site").items():
        target = tmp_path / installer
        command[command.index(str(tmp_path / "site"))] = str(target)
        result = install(command, tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr
        assert installed(target) == {"left": "1.0+cu130"}
