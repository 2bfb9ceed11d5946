"""Which index is the default one, when no flag says so: what the user has told uv, or pip.

No address of a registry stands in this program. ``CUDALOCK_DEFAULT_INDEX`` comes first; then what
uv is set to, asked of uv itself (``uv pip compile - --emit-index-url`` on empty input); then
``PIP_INDEX_URL``, where uv has no setting of its own; and at last the index uv has built in.

Asking costs tens of milliseconds, so the answer is kept until one of its inputs changes: uv
itself, its variables, or a file it reads its settings from. An address that holds credentials is
never kept, and the inputs are kept as a digest only.
"""

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudalock.errors import UsageError
from cudalock.host.this_machine import CommandAnswer, run_command
from cudalock.project.index_url import IndexUrl, parse_index_url, redact

__all__ = ["DefaultIndex", "ask_default_index", "find_uv"]

_SCHEMA = "cudalock/default-index/1"
_FLAG = "--default-index"
_LARGEST_SETTINGS = 1 << 20
_LARGEST_ENTRY = 1 << 16
# What uv reads an index from, beside files. Left out when its built-in index is asked for.
_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE")
# Where uv looks for the settings of the user and of the machine.
_FOLDER_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "APPDATA", "PROGRAMDATA")
_CREDENTIAL = re.compile(r"UV_INDEX_\w+_(?:USERNAME|PASSWORD)|UV_PUBLISH_\w+|UV_\w*TOKEN\w*")

_Run = Callable[[Sequence[str], Mapping[str, str]], CommandAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultIndex:
    """The default index and what named it: a variable, uv's settings, or uv itself."""

    url: IndexUrl
    source: str


def ask_default_index(
    *,
    environ: Mapping[str, str],
    cache_dir: Path,
    run: _Run = run_command,
    folder: Path | None = None,
    uv: Path | None = None,
) -> DefaultIndex:
    """Say which index is the default one for a project in ``folder`` (here, if not given).

    ``uv`` is the program to ask; by default the one that was installed beside this package.

    Raises:
        UsageError: a setting is no address, or uv is missing, refuses its settings, or does not
            answer. The message holds no credentials.

    """
    own = environ.get("CUDALOCK_DEFAULT_INDEX", "").strip()
    if own:
        return _named(own, "CUDALOCK_DEFAULT_INDEX")
    folder = Path.cwd() if folder is None else folder
    program = uv or find_uv(environ)
    pip = environ.get("PIP_INDEX_URL", "").strip()
    kept = cache_dir / "default-index" / "v1.json"
    digest = _digest_inputs(environ, folder, program, asks_both=bool(pip))
    answer = _read_kept(kept, digest)
    if answer is None:
        address = _ask_uv(program, environ, folder, run)
        # uv does not say whether somebody chose its answer. It is asked again without any
        # setting, and only where the difference matters.
        built_in = _ask_uv(program, _without_settings(environ), folder, run) if pip else None
        answer = (address, built_in != address)
        if not address.has_credentials:
            _keep(kept, digest, address, chosen=answer[1])
    address, chosen = answer
    if pip and not chosen:
        return _named(pip, "PIP_INDEX_URL")
    return DefaultIndex(url=address, source="uv")


def find_uv(environ: Mapping[str, str]) -> Path:
    """Find uv: the one installed with this package, else the one on the ``PATH``.

    Raises:
        UsageError: there is none.

    """
    name = "uv.exe" if sys.platform == "win32" else "uv"
    # What `uv.find_uv_bin` does first, without importing the package for it.
    beside = Path(sys.executable).parent / name
    if beside.is_file():
        return beside
    try:
        from uv import find_uv_bin  # noqa: PLC0415 - rarely needed.

        return Path(find_uv_bin())
    except (ImportError, OSError):
        # Not installed as a package, or installed without its program.
        pass
    for part in environ.get("PATH", os.defpath).split(os.pathsep):
        found = Path(part) / name
        if found.is_absolute() and found.is_file():
            return found
    raise UsageError(
        "expected uv, which knows the default index, found none; install it or name the index",
        where="PATH",
        flag=_FLAG,
    )


def _named(text: str, variable: str) -> DefaultIndex:
    # uv lets an address carry a name, as in `company=https://…`.
    named = re.fullmatch(r"[A-Za-z0-9._-]{1,100}=(.+)", text)
    url = parse_index_url(named[1] if named else text, where=variable, flag=_FLAG)
    return DefaultIndex(url=url, source=variable)


def _ask_uv(program: Path, environ: Mapping[str, str], folder: Path, run: _Run) -> IndexUrl:
    command = [
        str(program),
        "--directory",
        str(folder),
        "pip",
        "compile",
        "-",
        "--emit-index-url",
        "--quiet",
        "--no-header",
        # Empty input needs no particular Python; without this, uv looks for one, for longer.
        "--python",
        sys.executable,
    ]
    # Whatever the settings say, nothing is downloaded to answer this.
    settings = {**environ, "UV_PYTHON_DOWNLOADS": "never", "UV_OFFLINE": "1", "NO_COLOR": "1"}
    try:
        answer = run(command, settings)
    except OSError as error:
        raise UsageError(
            f"cannot ask uv for the default index: {redact(str(error)[:200])}",
            where=str(program),
            flag=_FLAG,
        ) from error
    if answer.returncode != 0:
        said = redact(" ".join(answer.stderr.split())[:400])
        message = f"uv does not tell the default index, it says: {said}"
        raise UsageError(message, where="uv's settings", flag=_FLAG)
    for line in answer.stdout.splitlines():
        option, _, value = line.partition(" ")
        if option in {"--index-url", "-i"}:
            return parse_index_url(value, where="uv's settings", flag=_FLAG)
    raise UsageError(
        "expected uv to tell a default index, found that it is set to have none",
        where="uv's settings",
        flag=_FLAG,
    )


def _without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    left = {key: value for key, value in environ.items() if key not in _INDEX_VARIABLES}
    return {**left, "UV_NO_CONFIG": "1"}


def _digest_inputs(
    environ: Mapping[str, str], folder: Path, program: Path, *, asks_both: bool
) -> str:
    """Digest everything uv's answer depends on; settings files by what is in them."""
    digest = hashlib.sha256()

    def add(*parts: str) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogateescape")
            digest.update(len(data).to_bytes(8, "big") + data)

    add(_SCHEMA, str(asks_both), str(folder), str(program), sys.executable)
    try:
        status = program.stat()
        add(str(status.st_mtime_ns), str(status.st_size))
    except OSError:
        add("missing")
    for key in sorted(environ):
        settles = key.startswith("UV_") and _CREDENTIAL.fullmatch(key) is None
        if settles or key in _FOLDER_VARIABLES:
            add(key, environ[key])
    for path in _settings_files(environ, folder):
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST_SETTINGS)
        except (OSError, ValueError):
            continue
        add(str(path), hashlib.sha256(data).hexdigest())
    return digest.hexdigest()


def _settings_files(environ: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """List the files that uv may read its settings from ("Configuration files" in its guide)."""
    for parent in (folder, *folder.parents):
        yield parent / "uv.toml"
        yield parent / "pyproject.toml"
    if environ.get("UV_CONFIG_FILE"):
        yield folder / environ["UV_CONFIG_FILE"]
    roots = [environ.get("XDG_CONFIG_HOME"), environ.get("APPDATA"), environ.get("PROGRAMDATA")]
    roots += environ.get("XDG_CONFIG_DIRS", "").split(os.pathsep)
    if environ.get("HOME"):
        roots.append(str(Path(environ["HOME"]) / ".config"))
    if sys.platform != "win32":
        roots += ["/etc/xdg", "/etc"]
    for root in roots:
        if root:
            yield Path(root) / "uv" / "uv.toml"


def _read_kept(path: Path, digest: str) -> tuple[IndexUrl, bool] | None:
    """Read a kept answer; one that is stale, broken or not ours is none."""
    try:
        with path.open("rb") as file:
            entry = json.loads(file.read(_LARGEST_ENTRY))
        if not isinstance(entry, dict) or entry.get("inputs") != digest:
            return None
        return parse_index_url(str(entry["url"])), entry["chosen"] is True
    except (OSError, ValueError, KeyError, RecursionError, UsageError):
        return None


def _keep(path: Path, digest: str, url: IndexUrl, *, chosen: bool) -> None:
    """Keep an answer without credentials; a cache that cannot be written costs time only."""
    entry = {"chosen": chosen, "inputs": digest, "url": url.without_credentials()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(entry, file, sort_keys=True)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
    except OSError:
        return
