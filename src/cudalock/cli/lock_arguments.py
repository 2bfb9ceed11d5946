"""The flags of the commands that read locks."""

import argparse
from collections.abc import Callable
from typing import Any

__all__ = ["CHECK_FORMATS", "add_lock_commands"]

CHECK_FORMATS = ("text", "json", "github", "sarif", "markdown")


def add_lock_commands(
    commands: "argparse._SubParsersAction[Any]",
    add_common: Callable[..., None],
) -> None:
    """Add the commands; ``add_common`` adds what every command has, with the formats it offers."""
    check = commands.add_parser(
        "check",
        help="say whether a lock still keeps its promises, or a machine can run it",
        description="Check locks without the network: inputs, closure, one CUDA, hashes, tags.",
        allow_abbrev=False,
    )
    check.add_argument(
        "locks", metavar="LOCK", nargs="*", help="locks (every pylock*.toml of the project)"
    )
    check.add_argument(
        "--project", metavar="DIR", help="the folder of pyproject.toml and locks (.)"
    )
    group = check.add_argument_group("beside the lock itself")
    group.add_argument("--here", action="store_true", help="can this machine run it?")
    group.add_argument(
        "--target", metavar="NAME", help="can this target of [tool.cudalock.targets] run it?"
    )
    group.add_argument(
        "--fleet", metavar="FILE", help="a table of machines against locks (docs/checking.md)"
    )
    group.add_argument("--env", metavar="PATH", help="does this environment hold what it says?")
    group.add_argument(
        "--online",
        action="store_true",
        help="ask the indices: still there, with the same hash, not yanked?",
    )
    add_common(check, formats=CHECK_FORMATS)
