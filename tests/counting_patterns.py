"""Regular expressions that count their steps: how reading grows is measured without a clock.

A pattern is run by its own parse tree, as Python's engine does it: from left to right, the first
alternative that fits, possessive repeats that give nothing back. Each look at a character is a step.
The engine has shortcuts that look at fewer; it never needs more. A repeat that may give back is
refused: our readers must not have any.
"""

import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["CountingPattern", "Steps"]

_PARSER: Any = importlib.import_module("re._parser")


class Steps:
    """How many characters were looked at so far."""

    def __init__(self) -> None:
        self.count = 0


class _Match:
    def __init__(self, text: str, spans: dict[int, tuple[int, int]], last: int | None) -> None:
        self._text = text
        self._spans = spans
        self.lastindex = last

    def start(self) -> int:
        return self._spans[0][0]

    def end(self) -> int:
        return self._spans[0][1]

    def __getitem__(self, group: int) -> str | None:
        span = self._spans.get(group)
        return None if span is None else self._text[span[0] : span[1]]


class CountingPattern:
    """A pattern with ``search`` and ``findall``, of the same results and with a count."""

    def __init__(self, pattern: re.Pattern[str], steps: Steps) -> None:
        self._tree = _PARSER.parse(pattern.pattern, pattern.flags)
        self._fold = bool(pattern.flags & re.IGNORECASE)
        self._groups = pattern.groups
        self._steps = steps
        self._text = ""
        self._spans: dict[int, tuple[int, int]] = {}
        self._last: int | None = None

    def search(self, text: str, start: int = 0) -> _Match | None:
        self._text = text.lower() if self._fold else text
        for at in range(max(start, 0), len(text) + 1):
            self._spans, self._last = {}, None
            end = next(self._run(list(self._tree), 0, at), None)
            if end is not None:
                return _Match(text, {**self._spans, 0: (at, end)}, self._last)
        return None

    def findall(self, text: str) -> list[tuple[str, ...]]:
        found, at = [], 0
        while (match := self.search(text, at)) is not None:
            found.append(tuple(match[group] or "" for group in range(1, self._groups + 1)))
            at = match.end() + (match.end() == match.start())
        return found

    def _run(self, ops: Sequence[Any], index: int, at: int) -> Iterator[int]:
        """Yield where the rest of a sequence ends, in the order an engine tries."""
        if index == len(ops):
            yield at
            return
        name, value = str(ops[index][0]), ops[index][1]
        for end in self._one(name, value, at):
            yield from self._run(ops, index + 1, end)

    def _one(self, name: str, value: Any, at: int) -> Iterator[int]:  # noqa: ANN401 - of a parse tree
        match name:
            case "LITERAL" | "NOT_LITERAL" | "IN":
                if self._fits(name, value, at):
                    yield at + 1
            case "BRANCH":
                for branch in value[1]:
                    spans, last = dict(self._spans), self._last
                    yield from self._run(list(branch), 0, at)
                    self._spans, self._last = spans, last
            case "SUBPATTERN":
                for end in self._run(list(value[3]), 0, at):
                    if value[0] is not None:
                        self._spans[value[0]] = (at, end)
                        self._last = value[0]
                    yield end
            case "POSSESSIVE_REPEAT":
                yield from self._repeat(value, at)
            case "ASSERT" | "ASSERT_NOT":
                held = next(self._run(list(value[1]), 0, at), None) is not None
                if held is (name == "ASSERT"):
                    yield at
            case "AT":
                self._steps.count += 1
                assert str(value) == "AT_END_STRING"
                if at == len(self._text):
                    yield at
            case _:
                raise AssertionError(f"{name} may give back what it took")

    def _repeat(self, value: Any, at: int) -> Iterator[int]:  # noqa: ANN401 - of a parse tree
        least, most, body = value
        ops, count = list(body), 0
        while count < most:
            end = next(self._run(ops, 0, at), None)
            if end is None or end == at:
                break
            at, count = end, count + 1
        if count >= least:
            yield at

    def _fits(self, name: str, value: Any, at: int) -> bool:  # noqa: ANN401 - of a parse tree
        self._steps.count += 1
        if at >= len(self._text):
            return False
        code = ord(self._text[at])
        if name == "IN":
            return self._in_set(value, code)
        wanted = ord(chr(value).lower()) if self._fold else value
        return (code == wanted) is (name == "LITERAL")

    @staticmethod
    def _in_set(members: Any, code: int) -> bool:  # noqa: ANN401 - of a parse tree
        negated = found = False
        for kind, value in members:
            match str(kind):
                case "NEGATE":
                    negated = True
                case "LITERAL":
                    found = found or code == value
                case "RANGE":
                    found = found or value[0] <= code <= value[1]
                case other:
                    raise AssertionError(f"a set of {other}")
        return found is not negated
