"""Where a resolve's request was written, kept in its lock, and read again for `check`.

Paths are kept relative to the folder of the lock, so a checkout may move. What stood on the command
line is kept as it was: it cannot change behind the lock's back.
"""

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cudalock.cli.inputs import make_request, read_asked, read_project
from cudalock.errors import UsageError
from cudalock.host import Interpreter, NamedTarget, Target, TargetOptions, make_target
from cudalock.lock.asked import request_digest
from cudalock.lock.model import Lock, TomlValue
from cudalock.project import ProjectFile
from cudalock.resolver.request import VERIFY_SM

__all__ = ["describe_inputs", "find_named", "input_files", "read_digest", "read_named_target"]

_PROJECT_FILE = "pyproject.toml"
# The keys of `[tool.cudalock.inputs]` that hold lists, by the argument each comes from.
_LISTS = {
    "arguments": "requirements",
    "files": "requirements_files",
    "constraints": "constraints_files",
    "overrides": "override_files",
    "extras": "extra",
    "groups": "group",
    "prereleases": "prerelease",
}
_PATHS = frozenset({"files", "constraints", "overrides"})
_POLICIES = frozenset({"CUDALOCK_AS_OF", "CUDALOCK_VERIFY_SM"})
_TARGET_FLAGS = (
    "python", "platform", "driver", "driver_cuda", "cuda", "cuda_compat", "sm", "gpu", "cpu",
)  # fmt: skip


def describe_inputs(
    args: Namespace, environ: Mapping[str, str], folder: Path
) -> dict[str, TomlValue]:
    """Describe where the request of a `resolve` command line is written; ``folder`` is the lock's."""
    described: dict[str, TomlValue] = {}
    for key, name in _LISTS.items():
        values: list[str] = list(getattr(args, name))
        if values:
            described[key] = [_relative(v, folder) if key in _PATHS else v for v in values]
    project = Path(args.project or ".") / _PROJECT_FILE
    if project.is_file():
        described["project"] = _relative(str(project.parent), folder)
    as_of = args.as_of or environ.get("CUDALOCK_AS_OF", "").strip()
    if as_of:
        described["as-of"] = as_of
    verify_sm = args.verify_sm or environ.get("CUDALOCK_VERIFY_SM", "").strip()
    if verify_sm:
        described["verify-sm"] = verify_sm
    if args.variants:
        described["variants"] = True
    if any(getattr(args, name) for name in _TARGET_FLAGS) or any(
        environ.get(f"CUDALOCK_{name.upper()}") for name in _TARGET_FLAGS
    ):
        described["flags"] = True
    return described


def _relative(path: str, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # pragma: no cover - another drive of Windows has no relative path
        return Path(path).absolute().as_posix()


def _texts(inputs: Mapping[str, TomlValue], key: str, folder: Path) -> list[str]:
    value = inputs.get(key, [])
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError("expected a list", where=f"tool.cudalock.inputs.{key}")
    texts = [str(item) for item in value]
    return [str(folder / text) for text in texts] if key in _PATHS else texts


def input_files(inputs: Mapping[str, TomlValue], folder: Path) -> list[Path]:
    """Return the files that the inputs of a lock in ``folder`` are read from, without includes."""
    found = [Path(text) for key in sorted(_PATHS) for text in _texts(inputs, key, folder)]
    project = inputs.get("project")
    return [folder / project / _PROJECT_FILE, *found] if isinstance(project, str) else found


def read_digest(
    inputs: Mapping[str, TomlValue],
    target: Target,
    *,
    folder: Path,
    environ: Mapping[str, str],
) -> tuple[str, ProjectFile | None]:
    """Read the inputs of a lock in ``folder`` again; return their digest and the project's file.

    Raises `UsageError` where one of them cannot be read, or is there no more.
    """
    values = {name: _texts(inputs, key, folder) for key, name in _LISTS.items()}
    as_of, verify_sm = inputs.get("as-of"), inputs.get("verify-sm")
    args = Namespace(
        **values,
        verify_sm=verify_sm if verify_sm in VERIFY_SM else None,
        as_of=as_of if isinstance(as_of, str) else None,
        variants=inputs.get("variants") is True,
    )
    place = inputs.get("project")
    project = None
    if isinstance(place, str):
        project = read_project(folder / place, needed=True)
    named = find_named(project, target.name)
    quiet = {key: value for key, value in environ.items() if key not in _POLICIES}
    asked = read_asked(args, quiet, project, named, folder)
    request, sources = make_request(args, quiet, project, target, asked=asked)
    return request_digest(request, sources), project


def find_named(project: ProjectFile | None, name: str | None) -> NamedTarget | None:
    """Return a project's target by its name, None where there is none of that name."""
    targets = () if project is None else project.targets
    return next((target for target in targets if target.name == name), None)


def read_named_target(project: ProjectFile | None, target: Target, lock: Lock) -> Target | None:
    """Return a lock's named target as its project describes it today.

    None where the project does not name it, and where its lock was made with other values than the
    project's (a flag outranks a named target), which the record then tells.
    """
    named = find_named(project, target.name)
    inputs = lock.tool.get("inputs")
    if named is None or (isinstance(inputs, Mapping) and inputs.get("flags") is True):
        return None
    interpreter = Interpreter(
        version=target.python,
        implementation=target.implementation,
        platform=target.platform,
        free_threaded=target.free_threaded,
    )
    today = make_target(TargetOptions(), named=named, detected=None, interpreter=interpreter)
    return replace(today, origins=(), warnings=())
