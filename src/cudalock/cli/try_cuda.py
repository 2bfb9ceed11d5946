"""``cudalock resolve --try-cuda all``: for which CUDA releases is there a set? A small table."""

import sys
import textwrap
from argparse import Namespace
from collections.abc import Iterable, Sequence
from itertools import count, groupby

from cudalock.cli.inputs import Inputs
from cudalock.cli.json_form import format_json, target_form
from cudalock.cli.markdown_form import escape_cell
from cudalock.cli.terminal import Status, Terminal, printable
from cudalock.errors import UsageError
from cudalock.explain.releases import ReleaseAnswer, try_releases
from cudalock.explain.report import format_target
from cudalock.host import Target, every_release
from cudalock.resolver.request import Request
from cudalock.resolver.resolution import Resolution
from cudalock.session import Session

__all__ = ["run_try_cuda"]

_SCHEMA = "cudalock/try-cuda/1"
_WIDTH = 80
_WORDS = {"yes": "yes", "no": "no", "unknown": "could not tell"}


def run_try_cuda(
    args: Namespace, terminal: Terminal, inputs: Inputs, session: Session, status: Status
) -> int:
    """Try every release and print the table; return 0 if one works, 1 if none, 3 if not told."""
    target = inputs.target
    if target.cpu:
        raise UsageError("expected a target with CUDA", flag="--try-cuda")
    if args.format in ("github", "sarif"):
        message = f"expected --format text, json or markdown, found `{args.format}`"
        raise UsageError(message, flag="--try-cuda")
    most = len(every_release(target))
    tried = count(1)

    def solve(request: Request, one: Target) -> Resolution:
        status.lead = f"CUDA {one.cuda} ({next(tried)} of {most}): "
        status.update("resolving")
        return session.attempt(request, one)

    answers = list(try_releases(inputs.request, target, solve=solve))
    status.stop()
    asked = {entry.project for entry in inputs.request.requirements}
    terminal.say(format_target(target))
    terminal.say()
    sys.stdout.write(_told(answers, target, asked, args))
    return _exit_code(answers)


def _exit_code(answers: Iterable[ReleaseAnswer]) -> int:
    found = {answer.answer for answer in answers}
    return 0 if "yes" in found else 3 if "unknown" in found else 1


def _told(
    answers: Sequence[ReleaseAnswer], target: Target, asked: set[str], args: Namespace
) -> str:
    if args.format == "json":
        return format_json(_form(answers, target))
    rows = [_row(list(same), asked) for _, same in groupby(answers, key=_same)]
    if args.format == "markdown":
        cells = [" | ".join(escape_cell(cell) for cell in row) for row in rows]
        head = "| CUDA | a set? | which, or why not |\n| --- | --- | --- |\n"
        return head + "".join(f"| {row} |\n" for row in cells)
    return _table(rows, cut=not args.verbose)


def _same(answer: ReleaseAnswer) -> object:
    return answer.answer, answer.packages, answer.reason


def _row(same: Sequence[ReleaseAnswer], asked: set[str]) -> tuple[str, str, str]:
    """Tell releases next to each other of which the same holds: versions, or what stands against."""
    first, last = same[0], same[-1]
    releases = str(first.cuda) if first is last else f"{first.cuda} to {last.cuda}"
    if first.answer == "yes":
        told = ", ".join(f"{p} {version}" for p, version in first.packages if p in asked)
    else:
        code = "" if first.rule is None else f"{first.rule.code}: "
        told = code + " ".join(first.reason.split())
    return releases, _WORDS[first.answer], told


_HEAD = ("CUDA", "a set?", "which, or why not")


def _table(rows: Sequence[tuple[str, str, str]], *, cut: bool) -> str:
    """Lay rows out in 80 columns; what does not fit of a reason is cut, or goes on below."""
    first, second = (max(len(row[i]) for row in (_HEAD, *rows)) for i in range(2))
    lines = []
    for one, two, three in (_HEAD, *rows):
        line = f"{one.ljust(first)}  {two.ljust(second)}  {printable(three)}".rstrip()
        if len(line) <= _WIDTH:
            lines.append(line)
        elif cut:
            lines.append(f"{line[: _WIDTH - 1].rstrip()}…")
        else:
            lines += textwrap.wrap(line, _WIDTH, subsequent_indent=" " * (first + second + 4))
    return "".join(f"{line}\n" for line in lines)


def _form(answers: Sequence[ReleaseAnswer], target: Target) -> dict[str, object]:
    return {
        "schema": _SCHEMA,
        "status": {0: "yes", 1: "no", 3: "unknown"}[_exit_code(answers)],
        "target": target_form(target),
        "releases": [
            {
                "cuda": str(answer.cuda),
                "answer": answer.answer,
                "code": None if answer.rule is None else answer.rule.code,
                "reason": answer.reason or None,
                "packages": [
                    {"name": project, "version": version} for project, version in answer.packages
                ],
            }
            for answer in answers
        ],
    }
