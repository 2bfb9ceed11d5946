"""``cudalock explain``: the page of help on a rule, or the list of all; asks nobody."""

import difflib
import json
import sys
from argparse import Namespace

from cudalock.errors import UsageError
from cudalock.explain.help_text import format_page, format_rules
from cudalock.explain.rules import RULES, Rule, find_rule

__all__ = ["run_explain"]

_SCHEMA = "cudalock/explain/1"


def run_explain(args: Namespace) -> int:
    """Print one page, or a table of all rules; return 0. Raises `UsageError` for an unknown one."""
    rules = RULES if args.rule is None else (_asked(args.rule),)
    match args.format:
        case "json":
            form = {"schema": _SCHEMA, "rules": [_form(rule) for rule in rules]}
            told = json.dumps(form, indent=2, ensure_ascii=False) + "\n"
        case "markdown" if args.rule is None:
            rows = [f"| {rule.code} | {rule.name} | {rule.title} |\n" for rule in rules]
            told = "| code | name | about |\n| --- | --- | --- |\n" + "".join(rows)
        case "markdown":
            told = rules[0].page
        case _:
            told = format_rules(rules) if args.rule is None else format_page(rules[0])
    sys.stdout.write(told)
    return 0


def _asked(text: str) -> Rule:
    rule = find_rule(text)
    if rule is not None:
        return rule
    words = [word for each in RULES for word in (each.code, *each.words)]
    spelled = {word.lower(): word for word in words}
    near = difflib.get_close_matches(text.lower(), spelled, n=3)
    meant = f"; is {' or '.join(f'`{spelled[word]}`' for word in near)} meant?" if near else ""
    raise UsageError(
        f"expected a rule such as CUDA203 or unknown-cuda, found `{text}`{meant} "
        "(`cudalock explain` lists all)",
        where="command line",
    )


def _form(rule: Rule) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "words": list(rule.words),
        "title": rule.title,
        "summary": rule.summary,
        "page": rule.page,
    }
