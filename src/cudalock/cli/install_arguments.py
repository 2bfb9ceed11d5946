"""The flags of the commands before and after a lock: ``init`` and ``sync``."""

import argparse
from collections.abc import Callable
from typing import Any

__all__ = ["add_install_commands"]


def add_install_commands(
    commands: "argparse._SubParsersAction[Any]",
    add_common: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add ``init`` and ``sync``; ``add_common`` adds the flags that every command has."""
    _add_init(commands, add_common)
    _add_sync(commands, add_common)


def _add_init(
    commands: "argparse._SubParsersAction[Any]",
    add_common: Callable[[argparse.ArgumentParser], None],
) -> None:
    parser = commands.add_parser(
        "init",
        help="write [tool.cudalock] into pyproject.toml",
        description="Add a named target to pyproject.toml, and leave the rest of the file as it is.",
        allow_abbrev=False,
    )
    parser.add_argument("--project", metavar="DIR", help="the folder of pyproject.toml (.)")
    group = parser.add_argument_group("target (this machine where none of these is given)")
    group.add_argument("--target", metavar="NAME", help="its name (default)")
    group.add_argument("--python", metavar="X.Y", help="the Python version")
    group.add_argument("--platform", metavar="TAG", help="linux-x86_64, linux-aarch64, win-amd64 …")
    group.add_argument("--driver", metavar="VERSION", help="the NVIDIA driver: 590.48.01")
    group.add_argument("--driver-cuda", metavar="X.Y", help="the CUDA that driver supports")
    group.add_argument("--cuda", metavar="X.Y", help="the newest CUDA the set may be built for")
    group.add_argument("--cuda-compat", choices=("strict", "minor", "forward"))
    group.add_argument("--sm", metavar="X.Y", action="append", default=[])
    group.add_argument("--gpu", metavar="NAME", action="append", default=[])
    group.add_argument("--cpu", action="store_true", help="no GPU: wheels without CUDA")
    parser.add_argument(
        "--dry-run", action="store_true", help="print what the file would be, and write nothing"
    )
    add_common(parser)


def _add_sync(
    commands: "argparse._SubParsersAction[Any]",
    add_common: Callable[[argparse.ArgumentParser], None],
) -> None:
    parser = commands.add_parser(
        "sync",
        help="install a lock here, if this machine can run it",
        description="Install a lock with uv or pip, after checking that this machine can run it.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "lock", metavar="LOCK", nargs="?", help="the lock (pylock.NAME.toml, else pylock.toml)"
    )
    parser.add_argument("--project", metavar="DIR", help="the folder of the lock (.)")
    parser.add_argument(
        "--target", metavar="NAME", help="the target to install (the lock's default)"
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="the interpreter to install for ($VIRTUAL_ENV, else .venv of the project)",
    )
    parser.add_argument(
        "--installer", choices=("uv", "pip"), default="uv", help="who installs it (uv)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check, say what would be installed, install nothing"
    )
    add_common(parser)
