"""What `cudalock check` found, in each of its formats."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cudalock.cli.annotations import Finding, format_github, format_markdown, format_sarif
from cudalock.cli.terminal import printable
from cudalock.verify.problems import CheckResult, Problem, worst

__all__ = ["LockReport", "entry_lines", "format_report", "status_of"]

SCHEMA = "cudalock/check/1"
_WIDTH = 80
_WORDS = {"broken": "no", "unknown": "could not tell", "warning": "warning", "invalid": "no lock"}
_LEVELS = {"broken": "error", "unknown": "unknown", "warning": "warning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LockReport:
    """What was found of one lock: ``results`` by what was asked (``lock``, ``here`` …).

    ``invalid`` are the faults of a file that is no lock; then there are no results. ``lines`` are the
    lines of its entries, by project.
    """

    path: str
    results: Mapping[str, CheckResult]
    invalid: tuple[str, ...] = ()
    lines: Mapping[str, int] | None = None

    @property
    def status(self) -> str:
        """``ok``, ``broken``, ``unknown``, or ``invalid``."""
        if self.invalid:
            return "invalid"
        return worst(result.status for result in self.results.values())

    def findings(self) -> Iterator[tuple[str, Problem]]:
        """Yield each problem with what was asked; one that two questions found is told once."""
        seen: set[tuple[str, str]] = set()
        for asked, result in self.results.items():
            for problem in result.problems:
                if (problem.code, problem.message) not in seen:
                    seen.add((problem.code, problem.message))
                    yield asked, problem

    def line(self, package: str | None) -> int:
        """Return the line of a project's first entry, 1 for none."""
        return (self.lines or {}).get(package or "", 1)


def entry_lines(text: str) -> dict[str, int]:
    """Return the line of each project's first ``[[packages]]`` by its name."""
    found: dict[str, int] = {}
    header = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == "[[packages]]":
            header = number
        elif header and (match := re.match(r'\s*name\s*=\s*"([^"]+)"', line)):
            found.setdefault(match[1], header)
            header = 0
    return found


def status_of(reports: Sequence[LockReport]) -> str:
    """Return the status of all locks together."""
    return worst(report.status for report in reports)


def format_report(reports: Sequence[LockReport], *, style: str, quiet: bool = False) -> str:
    """Format what was found as ``text``, ``json``, ``github``, ``sarif`` or ``markdown``."""
    if style == "json":
        return json.dumps(_form(reports), indent=2) + "\n"
    if style == "github":
        return format_github(_annotations(reports))
    if style == "sarif":
        return format_sarif(_annotations(reports))
    if style == "markdown":
        told = "; ".join(_headline(report) for report in reports)
        return format_markdown(_annotations(reports), title=told)
    lines = [line for report in reports for line in _text(report, quiet=quiet)]
    return "".join(f"{printable(line)}\n" for line in lines)


def _headline(report: LockReport) -> str:
    own = report.results.get("lock")
    if report.status != "ok" or own is None:
        return f"{report.path}: {_WORDS.get(report.status, report.status)}"
    target = f" for `{own.name}`" if own.name else ""
    count = f"{own.packages} package" + ("s" if own.packages != 1 else "")
    return f"{report.path}: ok, {count}{target}"


def _text(report: LockReport, *, quiet: bool) -> Iterator[str]:
    if report.status == "ok" and quiet:
        return
    yield _headline(report)
    for fault in report.invalid:
        yield from _wrapped("no lock", fault)
    for asked, problem in report.findings():
        if quiet and problem.severity == "warning":
            continue
        place = "" if asked == "lock" else f"{asked}: "
        yield from _wrapped(_WORDS[problem.severity], f"{place}{problem.message} [{problem.code}]")
        if problem.hint is not None:
            yield from _wrapped("  help", problem.hint)
    for asked, result in report.results.items():
        if asked != "lock" and result.ok:
            yield from _wrapped("ok", f"{asked}: {_YES.get(asked, 'can run it')}")


_YES = {"env": "holds what the lock says", "online": "every wheel is there, with its hash"}


def _wrapped(word: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {word}: ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _annotations(reports: Sequence[LockReport]) -> list[Finding]:
    found = []
    for report in reports:
        found += [
            Finding(code="invalid-lock", level="error", message=fault, path=report.path)
            for fault in report.invalid
        ]
        for asked, problem in report.findings():
            place = "" if asked == "lock" else f"{asked}: "
            hint = "" if problem.hint is None else f" ({problem.hint})"
            found.append(
                Finding(
                    code=problem.code,
                    level=_LEVELS[problem.severity],  # type: ignore[arg-type]  # the table's values are levels.
                    message=f"{place}{problem.message}{hint}",
                    path=report.path,
                    line=report.line(problem.package),
                )
            )
    return found


def _form(reports: Sequence[LockReport]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "status": status_of(reports),
        "locks": [
            {
                "path": report.path,
                "status": report.status,
                "faults": list(report.invalid),
                "checks": [
                    {
                        "asked": asked,
                        "name": result.name,
                        "status": result.status,
                        "packages": result.packages,
                        "problems": [
                            {
                                "code": problem.code,
                                "severity": problem.severity,
                                "message": problem.message,
                                "package": problem.package,
                                "line": report.line(problem.package),
                                "hint": problem.hint,
                            }
                            for problem in result.problems
                        ],
                    }
                    for asked, result in report.results.items()
                ],
            }
            for report in reports
        ],
    }
