"""Findings in files, in the forms that CI systems show beside a change.

- GitHub's workflow commands: it shows ten a step, so ten are written and the rest counted.
- SARIF 2.1.0 (OASIS): one run, a rule for each code that was found.
- Markdown: a table for a pull request.

A `Finding` knows nothing of locks, so any command may hand its own over.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cudalock.cli.terminal import printable

__all__ = ["Finding", "format_github", "format_markdown", "format_sarif", "markdown_table"]

_MOST = 10
_COMMANDS = {"error": "error", "unknown": "warning", "warning": "notice"}
_LEVELS = {"error": "error", "unknown": "warning", "warning": "note"}
_WORDS = {"error": "no", "unknown": "could not tell", "warning": "warning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: where (``path``, as the person names it, and ``line`` from 1) and what.

    ``level`` is ``error`` for what is proved, ``unknown`` for what could not be told.
    """

    code: str
    level: Literal["error", "unknown", "warning"]
    message: str
    path: str
    line: int = 1


def format_github(findings: Sequence[Finding]) -> str:
    """Format workflow commands, errors first: at most ten, then how many more there are."""
    ordered = sorted(findings, key=lambda f: list(_COMMANDS).index(f.level))
    kept = ordered if len(ordered) <= _MOST else ordered[: _MOST - 1]
    lines = [
        f"::{_COMMANDS[f.level]} file={_property(f.path)},line={f.line},"
        f"title={_property(f'cudalock: {f.code}')}::{_data(f.message)}"
        for f in kept
    ]
    if len(ordered) > len(kept):
        rest = len(ordered) - len(kept)
        lines.append(f"::notice title=cudalock::{rest} more findings, not shown")
    return "".join(f"{line}\n" for line in lines)


def _data(text: str) -> str:
    """Escape as the runner's toolkit does: what would end the command, or begin another."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def format_sarif(findings: Sequence[Finding]) -> str:
    """Format one SARIF log with one run."""
    codes = sorted({finding.code for finding in findings})
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "cudalock",
                        "rules": [{"id": code} for code in codes],
                    }
                },
                "results": [
                    {
                        "ruleId": finding.code,
                        "ruleIndex": codes.index(finding.code),
                        "level": _LEVELS[finding.level],
                        "message": {"text": finding.message},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": finding.path},
                                    "region": {"startLine": finding.line},
                                }
                            }
                        ],
                    }
                    for finding in findings
                ],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def format_markdown(findings: Sequence[Finding], *, title: str) -> str:
    """Format a heading and a table; a heading alone where nothing was found."""
    lines = [f"### {_cell(title)}"]
    if findings:
        rows = [
            (_WORDS[f.level], f"`{f.path}:{f.line}`", f"**{f.code}**: {f.message}")
            for f in findings
        ]
        lines += ["", markdown_table(("", "where", "what"), rows)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Keep text in its cell: no ends of lines, no bars, no tags."""
    plain = " ".join(printable(text).split()).replace("|", "\\|")
    return plain.replace("<", "&lt;").replace(">", "&gt;")


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table without a newline at its end; every cell keeps what it holds in itself."""
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
