"""Markdown for a comment on a pull request, or for a job's summary."""

import re
from collections.abc import Iterator

from cudalock.cli.outcome import Finding, Outcome
from cudalock.cli.terminal import printable, without_commands

__all__ = ["escape_cell", "escape_markdown", "format_markdown"]

_HEADINGS = {
    "locked": "cudalock: locked",
    "refused": "cudalock: no set of wheels fits",
    "unknown": "cudalock: could not tell",
    "error": "cudalock: asked wrongly",
}
# A backslash is enough for what Markdown reads. Mentions and references to issues are found in the
# text that comes out of it, so a comment goes into the middle of them.
_ESCAPES = str.maketrans(
    {special: f"\\{special}" for special in "\\`*_[]>|~$^"}
    | {"&": "&amp;", "<": "&lt;", "@": "@<!-- -->", "#": "#<!-- -->"}
)


def format_markdown(outcome: Outcome) -> str:
    """Format an outcome as Markdown (GFM)."""
    return "\n\n".join(_blocks(outcome)) + "\n"


def _blocks(outcome: Outcome) -> Iterator[str]:
    yield f"### {_HEADINGS[outcome.status]}"
    if outcome.target:
        yield escape_markdown(outcome.target)
    for finding in outcome.findings:
        if finding.level == "error":
            yield _finding(finding)
    for remedy in outcome.remedies:
        yield escape_markdown(f"Hint: {remedy.text}")
        yield _fenced(remedy.command)
    if outcome.packages:
        yield _table(outcome)
    told = [_item(finding) for finding in outcome.findings if finding.level != "error"]
    if told:
        yield "\n".join(told)


def _finding(finding: Finding) -> str:
    head = "" if finding.rule is None else f"**{finding.rule.code}** {finding.rule.name}\n\n"
    # A clause a line, as in the terminal: two spaces at the end break a line.
    lines = [escape_markdown(line) for line in finding.message.split("\n")]
    return head + "  \n".join(lines)


def _item(finding: Finding) -> str:
    code = "" if finding.rule is None else f"[{finding.rule.code}]"
    head = escape_markdown(f"{finding.level}{code}:")
    return f"- **{head}** {escape_markdown(' '.join(finding.message.split()))}"


def _table(outcome: Outcome) -> str:
    count = len(outcome.packages)
    place = f" in `{outcome.lock}`" if outcome.lock not in (None, "-") else ""
    title = escape_markdown(f"{count} {'package' if count == 1 else 'packages'}{place}:")
    rows = [" | ".join(escape_cell(cell) for cell in row) for row in outcome.packages]
    head = "| project | version | CUDA | index |\n| --- | --- | --- | --- |"
    return "\n".join([title, "", head, *(f"| {row} |" for row in rows)])


def _fenced(text: str) -> str:
    """Fence a command, which is one line, by more backticks than it holds in a row."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    shown = without_commands(printable(text).replace("\n", "\\x0a"))
    fence = "`" * max(longest + 1, 3)
    return f"{fence}console\n{shown}\n{fence}"


def escape_markdown(text: str) -> str:
    """Escape one line, but for the code between single backticks, which stays code.

    Nothing in it becomes a link, a mention, a reference to an issue, HTML, or a block of its own.
    """
    line = _one_line(text)
    parts = line.split("`")
    if len(parts) % 2 == 0 or "" in parts[1::2]:
        # Not pairs of single backticks: then none of them is a mark.
        return _plain(line)
    return "".join(
        f"`{part}`" if number % 2 else _plain(part, first=number == 0)
        for number, part in enumerate(parts)
    )


def escape_cell(text: str) -> str:
    """Escape a table's cell, in which nothing is code."""
    return _plain(_one_line(text), first=False)


def _one_line(text: str) -> str:
    # What is piped through a log of GitHub Actions is read for commands, too.
    return without_commands(printable(text).replace("\n", " ").replace("\t", " ").strip())


def _plain(text: str, *, first: bool = True) -> str:
    """Escape what GFM gives a meaning: within a line, and at its beginning where it is ``first``."""
    escaped = text.translate(_ESCAPES).replace("://", "&#58;//").replace("www.", "www&#46;")
    if not first:
        return escaped
    escaped = re.sub(r"^([-+=])", r"\\\1", escaped)
    return re.sub(r"^([0-9]+)([.)])", r"\1\\\2", escaped)
