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
    why = commands.add_parser(
        "why",
        help="say why a project is in a lock",
        description="What asked for it, by which evidence it was taken, and what was held back.",
        allow_abbrev=False,
    )
    why.add_argument("name", metavar="NAME", help="a project")
    _add_lock(why)
    add_common(why)
    tree = commands.add_parser(
        "tree",
        help="show who requires whom in a lock",
        description="Draw a lock from what was asked for, or from one project.",
        allow_abbrev=False,
    )
    tree.add_argument("name", metavar="NAME", nargs="?", help="a project to begin with")
    tree.add_argument("--invert", action="store_true", help="show who requires it")
    tree.add_argument("--depth", metavar="N", type=int, help="no deeper than that")
    _add_lock(tree)
    add_common(tree)
    diff = commands.add_parser(
        "diff",
        help="show what changed between two locks",
        description="Compare two locks: CUDA, driver and GPUs first, then every entry.",
        allow_abbrev=False,
    )
    diff.add_argument("old", metavar="A", help="a lock")
    diff.add_argument("new", metavar="B", help="another lock")
    add_common(diff, formats=("text", "json", "markdown"))
    outdated = commands.add_parser(
        "outdated",
        help="ask the indices for newer releases of what is locked",
        description="Ask every entry's own index for newer releases, and say what excludes them.",
        allow_abbrev=False,
    )
    _add_lock(outdated)
    outdated.add_argument("--cache-dir", metavar="DIR", help="where pages are kept")
    add_common(outdated)
    export = commands.add_parser(
        "export",
        help="print a lock in another form",
        description="Print a lock as a requirements file with hashes, or as a CycloneDX document.",
        allow_abbrev=False,
    )
    export.add_argument(
        "--to",
        choices=("requirements", "cyclonedx"),
        default="requirements",
        help="which form (requirements)",
    )
    export.add_argument("-o", "--output", metavar="FILE", help="the file to write (stdout)")
    _add_lock(export)
    add_common(export, formats=("text",))


def _add_lock(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lock", metavar="FILE", help="the lock (the only one of the project)")
    parser.add_argument("--project", metavar="DIR", help="the folder of the lock (.)")
