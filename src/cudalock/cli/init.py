"""``cudalock init``: a named target in ``pyproject.toml``, and every other byte as it was."""

import codecs
import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from cudalock.cli.terminal import Terminal
from cudalock.errors import UsageError
from cudalock.host import (
    Target,
    TargetOptions,
    detect,
    detect_interpreter,
    make_target,
    needs_detection,
)
from cudalock.lock import content_digest, lock_file_name, write_atomically
from cudalock.project import parse_pyproject
from cudalock.project.edit import add_target

__all__ = ["run_init"]

_SCHEMA = "cudalock/init/1"
_LARGEST_FILE = 4 * 1024 * 1024


def run_init(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Add a target to pyproject.toml: the one of the flags, or this machine; return 0."""
    path = (Path(args.project) if args.project else Path()) / "pyproject.toml"
    name = args.target or "default"
    lock = lock_file_name(name)
    options = TargetOptions(
        python=args.python,
        platform=args.platform,
        driver=args.driver,
        driver_cuda=args.driver_cuda,
        cuda=args.cuda,
        cuda_compat=args.cuda_compat,
        sm=tuple(args.sm),
        gpu=tuple(args.gpu),
        cpu=args.cpu,
    )
    wanted = needs_detection(options, named=None, environ=environ)
    target = make_target(
        options,
        named=None,
        detected=detect(environ) if wanted else None,
        interpreter=detect_interpreter(),
        environ=environ,
    )
    for warning in target.warnings:
        terminal.warn(str(warning))
    content = _read(path)
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        old = content.removeprefix(mark).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"expected UTF-8, found another byte at offset {error.start}"
        raise UsageError(message, where=str(path)) from error
    new = add_target(old, name, _values(args, target), where=str(path))
    # What is written must be what `resolve` reads.
    parse_pyproject(new, where=str(path))
    if args.format == "json":
        form = {"schema": _SCHEMA, "path": str(path), "target": name, "changed": new != old}
        sys.stdout.write(json.dumps(form, indent=2) + "\n")
    elif args.dry_run:
        sys.stdout.write(new)
    if args.dry_run or new == old:
        terminal.say(f"{path} {'would change' if new != old else 'has it already'}.")
        return 0
    write_atomically(path, mark + new.encode(), expected=content_digest(content))
    terminal.done(f"Wrote [tool.cudalock.targets.{name}]", f" into {path}.")
    terminal.say(f"`cudalock resolve --target {name}` locks for it, into {lock}.")
    return 0


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(
            "expected a pyproject.toml to add to, found none; `uv init` makes one",
            where=str(path),
            flag="--project",
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", where=str(path)) from error
    if len(content) > _LARGEST_FILE:
        message = f"expected at most {_LARGEST_FILE} bytes, found {len(content)}"
        raise UsageError(message, where=str(path))
    return content


def _values(args: Namespace, target: Target) -> dict[str, str | bool | tuple[str, ...]]:
    """Return the keys of a named target; what was given stays as it was written."""
    minor = target.python_minor + ("t" if target.free_threaded else "")
    values: dict[str, str | bool | tuple[str, ...]] = {
        "python": args.python or minor,
        "platform": args.platform or target.platform,
    }
    if target.cpu:
        return {**values, "cpu": True}
    driver = target.driver is not None and target.origin("driver") is not None
    if driver:
        values["driver"] = args.driver or str(target.driver)
    if args.driver_cuda or (not driver and target.driver_cuda is not None):
        values["driver-cuda"] = args.driver_cuda or str(target.driver_cuda)
    if args.cuda or target.cuda is not None:
        values["cuda"] = args.cuda or str(target.cuda)
    if args.cuda_compat:
        values["cuda-compat"] = args.cuda_compat
    if args.sm or (not args.gpu and target.capabilities):
        values["sm"] = tuple(args.sm) or tuple(str(c) for c in target.capabilities)
    if args.gpu:
        values["gpu"] = tuple(args.gpu)
    return values
