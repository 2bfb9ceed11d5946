"""``cudalock sync``: a lock installed here by uv or pip, if this machine can run it."""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from cudalock.cli.default_index import find_uv
from cudalock.cli.environment import ask_interpreter, check_pip, find_interpreter, run_installer
from cudalock.cli.terminal import Terminal
from cudalock.errors import HostError, LockMismatchError, UsageError
from cudalock.host import Detection, Interpreter, detect
from cudalock.lock import Lock, lock_file_name, read_lock
from cudalock.lock.fitness import Fitness, fitness, machine_target
from cudalock.lock.several import target_extras

__all__ = ["run_sync"]

_SCHEMA = "cudalock/sync/1"


def run_sync(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Check the machine and install: 0 done, 1 it cannot run the lock, 3 that could not be told.

    Nothing is changed unless the answer is yes.
    """
    folder = Path(args.project) if args.project else Path()
    path = _find_lock(args, folder)
    lock = read_lock(path)
    python = find_interpreter(args.python, environ, folder)
    interpreter = ask_interpreter(python, environ)
    detection = detect(environ)
    name = _check(args, path, lock, interpreter, detection)
    extra = target_extras(lock).get(name) if name is not None else None
    command = _command(args, environ, python, path, extra)
    run_installer(command, environ)
    if args.format == "json":
        form = {
            "schema": _SCHEMA,
            "status": "would-install" if args.dry_run else "installed",
            "lock": str(path),
            "target": name,
            "python": str(python),
            "command": command,
        }
        sys.stdout.write(json.dumps(form, indent=2) + "\n")
    word = "would be installed" if args.dry_run else "is installed"
    terminal.done(f"{path} {word}", f" for {python}.")
    return 0


def _find_lock(args: Namespace, folder: Path) -> Path:
    if args.lock is not None:
        return Path(args.lock)
    if args.target is not None:
        own = folder / lock_file_name(args.target)
        if own.exists():
            return own
    default = folder / "pylock.toml"
    others = [] if default.exists() else sorted(folder.glob("pylock.*.toml"))
    if args.target is None and len(others) > 1:
        names = ", ".join(f"`{path.name}`" for path in others)
        raise UsageError(
            f"expected one lock, found {names}; name its target", where=str(folder), flag="--target"
        )
    return others[0] if args.target is None and others else default


def _check(
    args: Namespace, path: Path, lock: Lock, interpreter: Interpreter, detection: Detection
) -> str | None:
    """Return the target to install, or raise with what stands against it here."""
    targets = target_extras(lock)
    name = args.target if args.target is not None else next(iter(targets), None)
    found = _fitness(lock, name, interpreter, detection)
    if found.runs:
        return name
    others = [
        other
        for other in targets
        if other != name and _fitness(lock, other, interpreter, detection).runs
    ]
    also = f"\n  target `{others[0]}` of the lock runs here: --target {others[0]}" if others else ""
    where = str(path)
    if found.refusals:
        told = "\n  ".join(found.refusals)
        raise LockMismatchError(
            f"this machine cannot run the lock; nothing was installed:\n  {told}{also}\n ",
            where=where,
            flag="--target" if others else None,
        )
    told = "\n  ".join(found.doubts)
    raise HostError(
        "could not tell whether this machine can run the lock; nothing was installed:\n"
        f"  {told}{also}\n ",
        where=where,
    )


def _fitness(
    lock: Lock, name: str | None, interpreter: Interpreter, detection: Detection
) -> Fitness:
    return fitness(lock, machine_target(interpreter, name), detection)


def _command(
    args: Namespace, environ: Mapping[str, str], python: Path, path: Path, extra: str | None
) -> list[str]:
    """Return the installer's command line: uv makes the environment the lock's, pip only adds to it."""
    dry = ["--dry-run"] if args.dry_run else []
    if args.installer == "pip":
        check_pip(python, environ, extra=extra)
        chosen = f"{path}[{extra}]" if extra else str(path)
        return [str(python), "-m", "pip", "install", "--no-deps", *dry, "-r", chosen]
    chosen_extra = ["--extra", extra] if extra else []
    uv = str(find_uv(environ))
    known = ["--preview-features", "pylock"]  # else uv warns that locks are new to it
    return [uv, *known, "pip", "sync", "--python", str(python), *dry, str(path), *chosen_extra]
