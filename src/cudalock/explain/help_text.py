"""A page of help for a terminal: its Markdown laid out in 80 columns, without marks of emphasis.

The pages use a small part of Markdown, which `tests/explain/test_rules.py` holds them to: one
heading, headings of sections, paragraphs, lists and indented examples.
"""

import textwrap
from collections.abc import Iterable

from cudalock.explain.rules import Rule

__all__ = ["format_page", "format_rules"]

_WIDTH = 80


def format_page(rule: Rule) -> str:
    """Lay out a rule's page as text of 80 columns; examples stay as they are."""
    blocks = rule.page.strip("\n").split("\n\n")
    laid = [f"{rule.code}: {rule.title}", *(_laid_out(block) for block in blocks[1:])]
    laid.append(f"Also found as: {', '.join(rule.words)}.")
    return "\n\n".join(laid) + "\n"


def _laid_out(block: str) -> str:
    if block.startswith("## "):
        return block.removeprefix("## ")
    if block.startswith("    "):
        return block
    if not block.startswith("- "):
        return _filled(block)
    items = block.removeprefix("- ").split("\n- ")
    return "\n".join(_filled(item, first="- ", rest="  ") for item in items)


def _filled(text: str, *, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def format_rules(rules: Iterable[Rule]) -> str:
    """List rules, one a line: code, name and title."""
    rows = [(rule.code, rule.name, rule.title) for rule in rules]
    width = max(len(name) for _, name, _ in rows)
    return "".join(f"{code}  {name.ljust(width)}  {title}\n" for code, name, title in rows)
