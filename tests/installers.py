"""Installers of several releases, each in an environment of its own, and how each installs a lock.

They come from the package index, the one thing in `make test` that does: once a session, with the
person's own settings for reaching it. What they install comes from loopback.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

__all__ = ["INSTALLERS", "Installer", "install", "make_environment", "prepare"]

_UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """``requirement`` is what to install it by; ``extras`` says whether it chooses extras of a lock."""

    name: str
    requirement: str
    extras: bool


INSTALLERS = (
    Installer(name="pip", requirement="pip==26.1.2", extras=False),
    Installer(name="pip", requirement="pip==26.2.1", extras=False),
    Installer(name="pip", requirement="pip==26.3", extras=True),
    Installer(name="uv", requirement="uv", extras=True),
    # `locked` has the releases of its dependencies that pdm was tested with.
    Installer(name="pdm", requirement="pdm[locked]", extras=True),
)


def prepare(installer: Installer, folder: Path, environ: Mapping[str, str]) -> Path:
    """Return the environment of an installer in ``folder``, made once for all processes of a session."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / installer.requirement.replace("=", "-").replace("[", "-").strip("]")
    done = path / "made"
    with FileLock(f"{path}.lock"):
        if not done.exists():
            make_environment(path)
            command = [str(_UV), "pip", "install", "--quiet", "--python", str(path)]
            subprocess.run([*command, installer.requirement], env=dict(environ), check=True)
            done.touch()
    return path


def make_environment(path: Path) -> Path:
    """Make an empty environment of the Python that runs this; nothing is fetched."""
    own = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1"}
    command = [str(_UV), "venv", "--quiet", "--clear", "--python", sys.executable, str(path)]
    subprocess.run(command, env=own, check=True)
    return path


def install(
    installer: Installer, home: Path, lock: Path, environment: Path, *, extra: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Install a lock into an environment. The lock alone says where to fetch from.

    For pdm the lock stands beside its project, whose environment is `.venv`.
    """
    python = str(environment / "bin" / "python")
    chosen = f"{lock}[{extra}]" if extra else str(lock)
    program = str(home / "bin" / installer.name)
    commands: dict[str, Sequence[str]] = {
        "pip": [
            program,
            "--python",
            python,
            "install",
            "--no-deps",
            "--no-cache-dir",
            "-r",
            chosen,
        ],
        "uv": [program, "pip", "sync", "--python", python, str(lock)]
        + (["--extra", extra] if extra else []),
        "pdm": [program, "sync", "-p", str(lock.parent), "-L", str(lock), "--no-self"]
        # Without a word pdm takes every extra of the lock that the project has.
        + (["-G", extra] if extra else ["--prod"]),
    }
    return subprocess.run(
        commands[installer.name],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(environment / "home"),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": "",
            "PIP_NO_INDEX": "1",
            "PIP_NO_INPUT": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_CACHE_DIR": str(environment / "cache"),
            "UV_NO_CONFIG": "1",
            "UV_NO_INDEX": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "PDM_LOCK_FORMAT": "pylock",
            "PDM_CHECK_UPDATE": "0",
            "PDM_IGNORE_ACTIVE_VENV": "1",
            "NO_PROXY": "127.0.0.1",
        },
        cwd=lock.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
