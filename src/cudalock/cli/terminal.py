"""The terminal: colour, width, progress, and nothing unescaped from anywhere else.

stdout is data, stderr is talk. Colour: ``--color``, then ``NO_COLOR``, then ``FORCE_COLOR`` or
``CLICOLOR_FORCE``, then whether stderr is a terminal. Progress is shown only on a terminal, never
on CI, and only for what takes longer than a second; rich, which draws it, is imported then.
"""

import re
import sys
import textwrap
from collections.abc import Mapping
from shutil import get_terminal_size
from threading import Timer
from types import TracebackType
from typing import Literal, Self, TextIO

__all__ = ["Color", "Status", "Terminal", "one_line", "printable", "without_commands"]

Color = Literal["auto", "always", "never"]
_CODES = {
    "error": "1;31",
    "warning": "1;33",
    "hint": "1;36",
    "note": "1;34",
    "strong": "1",
    "good": "1;32",
}
_WIDEST = 100
_PLAIN_WIDTH = 80


def printable(text: str) -> str:
    """Return text in which no character can control a terminal; lines stay lines.

    What comes from an index or a file may hold escape sequences and characters that turn the
    reading direction: each is shown as its code.
    """
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def one_line(text: str) -> str:
    """Return text as `printable` does, with the ends of its lines shown as codes, too.

    For a text that has one line unless somebody put another into it.
    """
    return printable(text.replace("\n", "\\x0a").replace("\t", "\\x09"))


_COMMAND = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


def without_commands(text: str) -> str:
    """Return text in which a runner of GitHub Actions finds no workflow command.

    It reads both ends of a step's output: a line that begins with ``::`` is a command, and so is
    ``##[`` anywhere in one.
    """
    return _COMMAND.sub(r"\1\\x3a", text).replace("##[", "#\\x23[")


class Terminal:
    """Where the command talks. ``quiet`` drops everything but errors."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        color: Color = "auto",
        quiet: bool = False,
        verbose: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        """Take the settings; ``stream`` is stderr unless given."""
        self._stream = stream or sys.stderr
        self.quiet = quiet
        self.verbose = verbose
        self.interactive = self._stream.isatty() and not environ.get("CI")
        self._colored = _wants_color(environ, color, self._stream)
        self._in_actions = environ.get("GITHUB_ACTIONS") == "true"
        columns = get_terminal_size((_PLAIN_WIDTH, 24)).columns
        self.width = min(columns, _WIDEST) if self.interactive else _PLAIN_WIDTH

    def say(self, text: str = "") -> None:
        """Say something, unless quiet. Lines longer than the terminal are wrapped."""
        if not self.quiet:
            self._write(text)

    def done(self, what: str, rest: str) -> None:
        """Say what was done, in front of the rest of its sentence."""
        if not self.quiet:
            what = printable(what)
            wrapped = self._wrapped(what + printable(rest))
            # A phrase that was wrapped in its middle is told without colour.
            head = self._styled(what, "good") if wrapped.startswith(what) else ""
            self._raw(head + wrapped.removeprefix(what) if head else wrapped)

    def note(self, text: str, rule: str = "") -> None:
        """Say something that explains the outcome."""
        self._labelled("note", text, rule)

    def warn(self, text: str, rule: str = "") -> None:
        """Say something that a person should know; ``rule`` is the code of its rule."""
        self._labelled("warning", text, rule)

    def hint(self, text: str) -> None:
        """Say what was tried and works."""
        self._labelled("hint", text)

    def error(self, text: str, rule: str = "") -> None:
        """Say why it did not work; said even when quiet."""
        self._labelled("error", text, rule, always=True)

    def _labelled(self, label: str, text: str, rule: str = "", *, always: bool = False) -> None:
        if self.quiet and not always:
            return
        first, _, rest = printable(text).partition("\n")
        head = f"{label}[{rule}]:" if rule else f"{label}:"
        wrapped = self._wrapped(f"{head} {first}", indent="  ")
        colored = self._styled(head, label) + wrapped.removeprefix(head)
        self._raw("\n".join([colored, *(self._wrapped(r) for r in rest.splitlines())]))

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._colored else text

    def _write(self, text: str) -> None:
        self._raw("\n".join(self._wrapped(line) for line in printable(text).split("\n")))

    def _wrapped(self, line: str, indent: str = "") -> str:
        if len(line) <= self.width:
            return line
        lead = line[: len(line) - len(line.lstrip())]
        return textwrap.fill(
            line.strip(),
            self.width,
            initial_indent=lead,
            subsequent_indent=lead + (indent or "  "),
            break_long_words=False,
            break_on_hyphens=False,
        )

    def _raw(self, text: str) -> None:
        self._stream.write((without_commands(text) if self._in_actions else text) + "\n")
        self._stream.flush()

    def status(self, text: str) -> "Status":
        """Return a context in which progress is shown, if this is a terminal."""
        return Status(text, show=self.interactive and not self.quiet)


def _wants_color(environ: Mapping[str, str], color: Color, stream: TextIO) -> bool:
    if color != "auto":
        return color == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


class Status:
    """A line that says what is going on, drawn from one second on and removed at the end.

    ``lead`` stands before whatever it says.
    """

    lead = ""

    def __init__(self, text: str, *, show: bool, after: float = 1.0) -> None:
        self._text = text
        self._timer = Timer(after, self._draw) if show else None
        self._drawn: object = None

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the line; it does not come back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._drawn is not None:
            self._drawn.stop()  # type: ignore[attr-defined]  # rich's Status, imported late

    def update(self, text: str) -> None:
        """Change what the line says."""
        self._text = printable(f"{self.lead}{text}")
        if self._drawn is not None:
            self._drawn.update(self._text)  # type: ignore[attr-defined]  # as above

    def _draw(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - only for what takes long
        from rich.markup import escape  # noqa: PLC0415 - as above

        drawn = Console(stderr=True).status(escape(self._text))
        drawn.start()
        self._drawn = drawn
