"""The command line: every flag, its words and its help.

The same words as uv, pip and cargo for the same things. Values are read further on, where their
meaning is known; a flag that is not understood ends with exit code 2, as every usage error.
"""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from cudalock.cli.install_arguments import add_install_commands
from cudalock.cli.lock_arguments import add_lock_commands
from cudalock.errors import UsageError

__all__ = ["parse_arguments"]


class _Parser(argparse.ArgumentParser):
    """argparse, with its errors raised as ours."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `{self.prog} --help` lists the flags", where="command line")


def parse_arguments(argv: Sequence[str], *, version: str) -> argparse.Namespace:
    """Parse a command line; raise `UsageError`. ``--help`` and ``--version`` exit as usual."""
    parser = _Parser(
        prog="cudalock",
        description=(
            "Resolves Python wheels built for CUDA: writes a lock that runs on the target, "
            "or explains, with proof, why there is none."
        ),
        epilog="exit codes: 0 yes, 1 no (proved), 2 asked wrongly, 3 could not tell",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cudalock {version}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_resolve(commands)
    _add_detect(commands)
    _add_index(commands)
    _add_inspect(commands)
    _add_explain(commands)
    add_lock_commands(commands, _add_common)
    add_install_commands(commands, _add_common)
    return parser.parse_args(list(argv))


def _add_common(
    parser: argparse.ArgumentParser, *, formats: Sequence[str] = ("text", "json")
) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--format", choices=tuple(formats), default="text", help="what stdout gets (text)"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="say only errors")
    group.add_argument("-v", "--verbose", action="store_true", help="say more")
    group.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def _add_resolve(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = commands.add_parser(
        "resolve",
        help="write a lock that runs on the target, or explain why there is none",
        description="Write pylock.toml for a target, or explain why no set of wheels fits it.",
        allow_abbrev=False,
    )
    _add_inputs(parser)
    _add_target(parser, several=True)
    _add_indices(parser)
    policy = parser.add_argument_group("choice")
    policy.add_argument(
        "--prerelease",
        metavar="NAME",
        action="append",
        default=[],
        help="let pre-releases and nightlies of a project in (repeatable)",
    )
    policy.add_argument(
        "--as-of",
        metavar="DATE",
        help="only files published by then: 2026-02-20 (its end, in UTC) or an RFC 3339 time; by "
        "upload time, else by the day in a nightly's version",
    )
    policy.add_argument(
        "--variants",
        action="store_true",
        help="consider wheel variants (PEP 825), which pip and uv do not install from a lock yet",
    )
    policy.add_argument(
        "--verify-sm",
        choices=("off", "auto", "strict"),
        help="how much of the wheels' device code to read: none, enough to know that it is not all "
        "wrong, or until every library is known to serve every GPU (auto)",
    )
    policy.add_argument(
        "--hash-missing",
        choices=("download", "error"),
        default="error",
        help="download a wheel whose hash the index leaves open, to compute it (error)",
    )
    policy.add_argument(
        "--no-remedies", action="store_true", help="do not look for changes that would solve"
    )
    policy.add_argument(
        "--try-cuda",
        choices=("all",),
        help="lock nothing; say for each CUDA release the driver runs whether there is a set",
    )
    lock = parser.add_argument_group("lock")
    lock.add_argument(
        "-o", "--output", metavar="FILE", help="the lock to write (pylock[.TARGET].toml; - stdout)"
    )
    lock.add_argument(
        "--split", action="store_true", help="a lock a target, where several are named"
    )
    lock.add_argument(
        "--upgrade",
        metavar="NAME",
        nargs="?",
        const="*",
        action="append",
        default=[],
        help="let go of the pin that the lock has for a project, or without NAME of all (repeatable)",
    )
    lock.add_argument(
        "--locked", action="store_true", help="write nothing, and exit 1 if the lock would change"
    )
    lock.add_argument(
        "--frozen", action="store_true", help="take the lock as it is; ask no index, change nothing"
    )
    lock.add_argument("--dry-run", action="store_true", help="resolve, and write nothing")
    _add_common(parser, formats=("text", "json", "github", "sarif", "markdown"))


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "requirements", metavar="REQ", nargs="*", help="a requirement: torch==2.9.1"
    )
    group = parser.add_argument_group("requirements")
    group.add_argument(
        "-r",
        "--requirements",
        dest="requirements_files",
        metavar="FILE",
        action="append",
        default=[],
        help="a requirements file, pyproject.toml or script (repeatable)",
    )
    group.add_argument(
        "--project", metavar="DIR", help="the folder of pyproject.toml and the lock (.)"
    )
    group.add_argument("--extra", metavar="NAME", action="append", default=[])
    group.add_argument("--group", metavar="NAME", action="append", default=[])
    group.add_argument(
        "-c",
        "--constraint",
        dest="constraints_files",
        metavar="FILE",
        action="append",
        default=[],
        help="versions to stay within, for what is installed anyway (repeatable)",
    )
    group.add_argument(
        "--override",
        dest="override_files",
        metavar="FILE",
        action="append",
        default=[],
        help="requirements that replace every other one on their projects (repeatable)",
    )


def _add_target(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    group = parser.add_argument_group("target (the machine to lock for; this one if not given)")
    if several:
        group.add_argument(
            "--target",
            dest="targets",
            metavar="NAME",
            action="append",
            default=[],
            help="a target of [tool.cudalock.targets]; several make one lock (repeatable)",
        )
    else:
        group.add_argument("--target", metavar="NAME", help="a target of [tool.cudalock.targets]")
    group.add_argument("--python", metavar="X.Y", help="the Python version")
    group.add_argument(
        "--platform",
        metavar="TAG",
        help="linux-x86_64, linux-aarch64, win-amd64 or manylinux_2_34_x86_64",
    )
    group.add_argument("--driver", metavar="VERSION", help="the NVIDIA driver: 590.48.01")
    group.add_argument("--driver-cuda", metavar="X.Y", help="the CUDA that driver supports: 13.1")
    group.add_argument(
        "--cuda", metavar="X.Y", help="the newest CUDA the set may be built for (or: any)"
    )
    group.add_argument(
        "--cuda-compat",
        choices=("strict", "minor", "forward"),
        help="strict: built with that CUDA or older; minor: any minor of its major; forward: as "
        "strict, and newer than the driver with a cuda-compat package, on data-centre GPUs (strict)",
    )
    group.add_argument(
        "--sm",
        metavar="X.Y",
        action="append",
        default=[],
        help="a compute capability in the box: 12.0 or sm_120 (repeatable)",
    )
    group.add_argument(
        "--gpu", metavar="NAME", action="append", default=[], help="a GPU by name: rtx-pro-6000"
    )
    group.add_argument("--cpu", action="store_true", help="no GPU: wheels without CUDA")


def _add_indices(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("indices")
    group.add_argument("--default-index", metavar="URL", help="the default index (what uv uses)")
    group.add_argument(
        "--index",
        metavar="[NAME=]URL|NAME",
        action="append",
        default=[],
        help="another index, another address of a known one, or a known one for all it builds (repeatable)",
    )
    group.add_argument(
        "--find-links", metavar="URL|DIR", action="append", default=[], help="more wheels"
    )
    group.add_argument(
        "--exclude-index",
        metavar="NAME",
        action="append",
        default=[],
        help="leave a publisher's index out (repeatable)",
    )
    group.add_argument(
        "--only-default-index", action="store_true", help="leave all publishers' indices out"
    )
    group.add_argument(
        "--recorded", action="store_true", help="answer from the recorded pages where there are any"
    )
    group.add_argument("--offline", action="store_true", help="use the cache only")
    group.add_argument("--cache-dir", metavar="DIR", help="where pages and metadata are kept")


def _add_detect(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = commands.add_parser(
        "detect",
        help="show the driver, CUDA and GPUs of this machine, and how they are known",
        description="Ask every source on this machine, and show each answer.",
        allow_abbrev=False,
    )
    _add_common(parser)


def _add_index(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = commands.add_parser(
        "index",
        help="show what publishers serve, and what is wrong with an index",
        description="Show the publishers that are known, what one serves, and what is wrong with it.",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="the publishers that are known; asks nobody")
    _add_common(listed)
    shown = actions.add_parser("show", help="what a publisher serves, by project and CUDA release")
    shown.add_argument("--python", metavar="X.Y", help="only wheels for this Python (any)")
    shown.add_argument(
        "--platform", metavar="TAG", help="only wheels for this platform: linux-aarch64 (any)"
    )
    examined = actions.add_parser("doctor", help="what is wrong with a publisher's index")
    for each in (shown, examined):
        each.add_argument("name", metavar="NAME", help="a publisher, or the URL of an index")
        each.add_argument(
            "--only",
            metavar="PROJECT",
            action="append",
            default=[],
            help="ask for this project only (repeatable; needed for a URL)",
        )
        group = each.add_argument_group("indices")
        group.add_argument("--default-index", metavar="URL", help="the default index")
        group.add_argument("--recorded", action="store_true", help="answer from recorded pages")
        group.add_argument("--offline", action="store_true", help="use the cache only")
        group.add_argument("--cache-dir", metavar="DIR", help="where pages and metadata are kept")
        _add_common(each)


def _add_inspect(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = commands.add_parser(
        "inspect",
        help="show what a wheel is built for, from its bytes",
        description="Read a wheel, library by library: architectures, PTX, and what it needs.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "wheel", metavar="WHEEL", help="a file, a URL, or a requirement: torch==2.11.0"
    )
    parser.add_argument(
        "--tier",
        choices=("T1", "T2", "T3", "T4"),
        default="T4",
        help="how deep: names, heads of libraries, until the target's code is seen, whole (T4)",
    )
    _add_target(parser)
    _add_indices(parser)
    _add_common(parser)


def _add_explain(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = commands.add_parser(
        "explain",
        help="help on a rule: what it says, why, and what to do; asks nobody",
        description="Show the page of help on a rule code of a message, or list all rules.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "rule", metavar="CODE", nargs="?", help="a code (CUDA203) or its name (unknown-cuda)"
    )
    _add_common(parser, formats=("text", "json", "markdown"))
