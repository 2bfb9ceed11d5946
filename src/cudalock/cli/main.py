"""The entry point: one command, one exit code, and no traceback for a person.

0 yes, 1 no (proved), 2 asked wrongly, 3 could not tell, 130 interrupted. Every error that cudalock
raises carries its code; anything else is a defect of ours and says so.
"""

import os
import sys

from cudalock.cli.stamp import repeat_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from cudalock.cli.terminal import Terminal
    from cudalock.errors import CudalockError

__all__ = ["main", "report_error"]


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["check"]:
        # Nothing is imported for an answer that was given before and still holds.
        answer = repeat_answer(arguments, os.environ)
        if answer is not None:
            sys.stdout.write(answer)
            return 0
    return _main(arguments)


def _main(arguments: list[str]) -> int:
    from cudalock.cli.arguments import parse_arguments  # noqa: PLC0415 - see `main`
    from cudalock.cli.terminal import Terminal, printable  # noqa: PLC0415 - as above
    from cudalock.errors import CudalockError, UsageError  # noqa: PLC0415 - as above

    try:
        # Asking for the version costs a third of a `check`.
        version = _version() if "--version" in arguments else ""
        args = parse_arguments(arguments, version=version)
    except UsageError as error:
        sys.stderr.write(f"error: {printable(str(error))}\n")
        return error.exit_code
    args.words = arguments
    terminal = Terminal(
        environ=os.environ, color=args.color, quiet=args.quiet, verbose=args.verbose
    )
    try:
        return _run(args, terminal)
    except KeyboardInterrupt:
        terminal.say("interrupted")
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; what is still buffered must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except CudalockError as error:
        if args.format == "json" and args.command != "resolve":
            _print_error(error)
        report_error(error, terminal)
        return error.exit_code
    except Exception as error:
        # The last door: whatever comes here is a defect of ours, and is told as one.
        if os.environ.get("CUDALOCK_TRACEBACK"):
            raise
        terminal.error(
            f"a defect of cudalock: {type(error).__name__}: {error}\n"
            "Please report it; CUDALOCK_TRACEBACK=1 shows where it happened."
        )
        return 3


def _run(args: "Namespace", terminal: "Terminal") -> int:
    match args.command:
        case "check":
            from cudalock.cli.check_command import run_check  # noqa: PLC0415 - as below

            return run_check(args, os.environ, terminal)
        case "tree" | "why":
            from cudalock.cli.tree import run_tree, run_why  # noqa: PLC0415 - as below

            return run_tree(args) if args.command == "tree" else run_why(args)
        case "diff":
            from cudalock.cli.diff import run_diff  # noqa: PLC0415 - as below

            return run_diff(args)
        case "export":
            from cudalock.cli.export import run_export  # noqa: PLC0415 - as below

            return run_export(args)
        case "outdated":
            from cudalock.cli.outdated import run_outdated  # noqa: PLC0415 - as below

            return run_outdated(args, os.environ, terminal)
        case "detect":
            from cudalock.cli.detect import run_detect  # noqa: PLC0415 - one command's imports

            return run_detect(args, os.environ, terminal)
        case "index" if args.action == "list":
            from cudalock.cli.index_list import run_index_list  # noqa: PLC0415 - as above

            return run_index_list(args)
        case "index":
            from cudalock.cli.index_command import run_index  # noqa: PLC0415 - as above

            return run_index(args, os.environ, terminal)
        case "explain":
            from cudalock.cli.explain_command import run_explain  # noqa: PLC0415 - as above

            return run_explain(args)
        case "init":
            from cudalock.cli.init import run_init  # noqa: PLC0415 - as above

            return run_init(args, os.environ, terminal)
        case "sync":
            from cudalock.cli.sync import run_sync  # noqa: PLC0415 - as above

            return run_sync(args, os.environ, terminal)
        case "inspect":
            from cudalock.cli.inspect_command import run_inspect  # noqa: PLC0415 - as above

            return run_inspect(args, os.environ, terminal)
        case _:
            from cudalock.cli.resolve import run_resolve  # noqa: PLC0415 - as above

            return run_resolve(args, os.environ, terminal)


def _print_error(error: "CudalockError") -> None:
    """Print an error as data: ``cudalock/error/1``. `resolve` has it in its own form."""
    import json  # noqa: PLC0415 - only a failed command with this format pays for it

    form = {
        "schema": "cudalock/error/1",
        "status": "error" if error.exit_code == 2 else "unknown",
        "error": {
            "code": error.code,
            "message": error.message,
            "where": error.where,
            "flag": error.flag,
        },
    }
    sys.stdout.write(json.dumps(form, indent=2) + "\n")


def report_error(error: "CudalockError", terminal: "Terminal") -> None:
    """Tell an error, the flag that would change the outcome, and what was seen all the same."""
    from cudalock.explain.report import format_seen  # noqa: PLC0415 - only for what fails
    from cudalock.explain.rules import rule_of  # noqa: PLC0415 - as above
    from cudalock.resolver.conflict import UnprovedError  # noqa: PLC0415 - as above

    rule = rule_of(error.code)
    # A flag or a file that was not understood says itself what to do.
    terminal.error(str(error), "" if rule is None or error.exit_code == 2 else rule.code)
    if error.flag is not None:
        terminal.say(f"  the flag that decides this: {error.flag}")
    if isinstance(error, UnprovedError) and (seen := format_seen(error.seen)):
        terminal.say(f"\n{seen}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - rarely asked

    try:
        return version("cudalock")
    except PackageNotFoundError:  # pragma: no cover - run from a folder that was never installed
        return "unknown"
