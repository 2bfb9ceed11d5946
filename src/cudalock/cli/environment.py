"""The environment that a lock is installed into: its interpreter, and the installer that is run."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cudalock.errors import HostError, UsageError
from cudalock.host.interpreter import Interpreter
from cudalock.host.this_machine import run_command

__all__ = ["ask_interpreter", "check_pip", "find_interpreter", "run_installer"]

_STDERR = 2
# Asked of any CPython 3: what `packaging` calls its platform, as far as Linux and Windows go.
_QUESTION = """
import json, os, platform, sys, sysconfig
try:
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2]
except (AttributeError, OSError, ValueError, IndexError):
    glibc = None
name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
if glibc and name.startswith("linux_"):
    name = "manylinux_" + "_".join(glibc) + name[len("linux"):]
print(json.dumps({
    "version": platform.python_version().rstrip("+"),
    "implementation": sys.implementation.name,
    "platform": name,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
}))
"""


def find_interpreter(given: str | None, environ: Mapping[str, str], folder: Path) -> Path:
    """Return the interpreter to install for: the one given, that of the active environment, or of `.venv`.

    Raises `UsageError` when there is none; the Python that runs cudalock is never taken by itself.
    """
    if given is not None:
        return _in(Path(given).expanduser(), "--python")
    for place, where in ((environ.get("VIRTUAL_ENV"), "VIRTUAL_ENV"), (folder / ".venv", ".venv")):
        if place and Path(place).exists():
            return _in(Path(place), where)
    raise UsageError(
        "expected an environment to install into, found neither an active one nor .venv; make one "
        "(`uv venv`), or name its Python",
        where=str(folder.absolute()),
        flag="--python",
    )


def _in(path: Path, where: str) -> Path:
    if path.is_file():
        return path.absolute()
    for part in ("bin/python", "Scripts/python.exe"):
        if (path / part).is_file():
            return (path / part).absolute()
    raise UsageError(
        f"expected an interpreter or an environment, found neither at {path}",
        where=where,
        flag="--python",
    )


def ask_interpreter(python: Path, environ: Mapping[str, str]) -> Interpreter:
    """Ask an interpreter what it is; raises `HostError` when it does not tell."""
    try:
        answer = run_command((str(python), "-I", "-c", _QUESTION), environ)
        told = json.loads(answer.stdout)
        return Interpreter(
            version=str(told["version"]),
            implementation=str(told["implementation"]),
            platform=str(told["platform"]),
            free_threaded=told["free_threaded"] is True,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostError(
            "expected an interpreter that says what it is, found one that does not",
            where=str(python),
            flag="--python",
        ) from error


def check_pip(python: Path, environ: Mapping[str, str], *, extra: str | None) -> None:
    """Raise `UsageError` unless the environment has a pip that reads locks, and extras of them if needed."""
    try:
        answer = run_command((str(python), "-m", "pip", "--version"), environ)
    except OSError as error:
        raise HostError("cannot ask its pip for its version", where=str(python)) from error
    found = re.match(r"pip (\d+)\.(\d+)\S*", answer.stdout)
    version = (int(found[1]), int(found[2])) if found is not None else (0, 0)
    needed = (26, 1) if extra is None else (26, 3)
    if version < needed:
        what = "" if extra is None else f", for the extra `{extra}` of a lock"
        told = "none" if found is None else found[0].removeprefix("pip ")
        raise UsageError(
            f"expected pip {needed[0]}.{needed[1]} or newer{what}, found {told}",
            where=str(python),
            flag="--installer",
        )


def run_installer(command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Run an installer; what it says goes to stderr. Raises `HostError` when it fails."""
    sys.stderr.flush()
    try:
        code = subprocess.run(  # noqa: S603 - a list of arguments, no shell, an absolute program
            list(command), env=dict(environ), stdout=_STDERR, check=False
        ).returncode
    except OSError as error:
        raise HostError(f"cannot run it: {error.strerror or error}", where=command[0]) from error
    if code != 0:
        raise HostError(
            f"expected the installer to end with 0, found {code}; it says above why",
            where=command[0],
        )
