"""SARIF 2.1.0 (OASIS): the form that code scanning reads; one run, one result a finding."""

import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import quote

from cudalock.cli.outcome import Finding, Outcome, Place
from cudalock.cli.terminal import printable
from cudalock.explain.rules import Rule

__all__ = ["sarif_form"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_form(outcome: Outcome) -> dict[str, object]:
    """Return the log of one run. Remedies stand in the message of the first error."""
    rules: dict[str, Rule] = {}
    for finding in outcome.findings:
        if finding.rule is not None:
            rules.setdefault(finding.rule.code, finding.rule)
    results = [
        _result(finding, outcome if number == 0 else None, list(rules))
        for number, finding in enumerate(outcome.findings)
    ]
    driver: dict[str, object] = {
        "name": "cudalock",
        "rules": [_rule(rule) for rule in rules.values()],
    }
    with suppress(PackageNotFoundError):
        driver["version"] = version("cudalock")
    run = {
        "tool": {"driver": driver},
        # That no set was found is a result of a run that went well; an error of ours is not.
        "invocations": [{"executionSuccessful": outcome.status in ("locked", "refused")}],
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": _text(rule.title)},
        "fullDescription": {"text": _text(rule.summary)},
        # §3.49.13: plain text for who cannot show Markdown.
        "help": {"text": _text(rule.page), "markdown": rule.page},
    }


def _result(finding: Finding, outcome: Outcome | None, rules: list[str]) -> dict[str, object]:
    message = finding.message
    for remedy in outcome.remedies if outcome is not None else ():
        message += f"\n\nHint: {remedy.text}: {remedy.command}"
    result: dict[str, object] = {"level": finding.level, "message": {"text": _text(message)}}
    if finding.rule is not None:
        result["ruleId"] = finding.rule.code
        result["ruleIndex"] = rules.index(finding.rule.code)
    if finding.places:
        result["locations"] = [_location(finding.places[0])]
    if finding.places[1:]:
        result["relatedLocations"] = [_location(place) for place in finding.places[1:]]
    return result


def _location(place: Place) -> dict[str, object]:
    where: dict[str, object] = {"artifactLocation": {"uri": quote(place.file)}}
    if place.line is not None:
        where["region"] = {"startLine": place.line}
    return {"physicalLocation": where}


_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")


def _text(text: str) -> str:
    """Escape a plain text message: §3.11.5 has braces doubled, §3.11.6 a link's bracket escaped."""
    shown = printable(text).replace("{", "{{").replace("}", "}}")
    return _LINK.sub(r"\\[", shown)
