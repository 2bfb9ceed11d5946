"""Annotations for GitHub Actions: workflow commands on stdout.

"Workflow commands for GitHub Actions": ``::error file={name},line={line},title={title}::{message}``.
A step may make ten errors, ten warnings and ten notices that are shown; at most ten annotations are
written in all, the worst first, and then how many more there would be.
"""

from collections.abc import Iterator

from cudalock.cli.outcome import Finding, Outcome
from cudalock.cli.terminal import printable

__all__ = ["format_github"]

_MOST = 10
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_WORST = ("error", "warning", "note")


def format_github(outcome: Outcome) -> str:
    """Format an outcome as workflow commands, one a line."""
    return "".join(f"{line}\n" for line in _lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    findings = sorted(outcome.findings, key=lambda finding: _WORST.index(finding.level))
    hints = [
        _command("notice", {"title": "cudalock hint"}, f"{remedy.text}\n{remedy.command}")
        for remedy in outcome.remedies
    ]
    # A hint is worth more than the tenth note.
    told = [_annotation(finding) for finding in findings]
    worst = sum(finding.level == "error" for finding in findings)
    told[worst:worst] = hints
    yield from told[:_MOST]
    if len(told) > _MOST:
        # A line of the log, for a further annotation would not be shown.
        yield f"and {len(told) - _MOST} more, which the log above tells"


def _annotation(finding: Finding) -> str:
    place = finding.places[0] if finding.places else None
    title = "cudalock" if finding.rule is None else f"{finding.rule.code} {finding.rule.name}"
    properties = {"title": title}
    if place is not None:
        line = {} if place.line is None else {"line": str(place.line)}
        properties = {"file": place.file, **line, **properties}
    message = finding.message
    if finding.rule is not None:
        message += f"\nHelp: cudalock explain {finding.rule.code}"
    return _command(_COMMANDS[finding.level], properties, message)


def _command(name: str, properties: dict[str, str], message: str) -> str:
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(message)}"


def _data(text: str) -> str:
    """Escape a message as the runner reads it: ``%``, then ends of lines; nothing else is special."""
    shown = printable(text).replace("%", "%25")
    return shown.replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property: as a message, and what ends a property or all of them."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
