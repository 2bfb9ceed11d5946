"""Keeping the comments a person added to a lock when a new one takes its place.

Line based: the new text is ``format_lock``'s, whose lines are one value or less each and never
part of a longer string, so a comment may stand between any two of them or end any one. The old
text may be anything. Every line of code has an *anchor*: its table (for a package: which entry),
its key, and inside an array the element. The rules:

- Whole-line comments belong to the line of code below them, with the blank lines among them. They
  go where that anchor stands in the new text. If it is gone they move up: to the array's key, the
  table's header, the ``[[packages]]`` header. If the package is gone, they go too. Outside the
  packages they end up at the top of the file.
- A comment at the end of a line stays while the key and its value are the same.
- The comments before the first key are the file's header; cudalock's own line there is replaced.
- What stands below the last line of code stays at the end.

Merging the result with the same new text again gives the same bytes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from cudalock.lock.pairing import pair_entries

__all__ = ["merge_comments"]

# (table, key, element, occurrence); empty texts where a part does not apply.
_Anchor: TypeAlias = tuple[str, str, str, int]

_GENERATED = "# Made by cudalock"
# TOML, "Whitespace": tab and space, and nothing else that Unicode calls white.
_BLANK = " \t"
_BLANK_END = " \t\r"
_TOP: _Anchor = ("", "", "", 0)
# What TOML forbids in a comment (a tab is allowed); such a line was no comment to begin with.
_FORBIDDEN = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_ELEMENT_NAME = re.compile(r"""\bname\s*=\s*("[^"]*"|'[^']*')""")
_SPACE = re.compile(r"\s+")
# Whatever can change the state of the scan: quotes, brackets, a comment, an escape.
_NOTABLE = re.compile(r"""\"{3}|'{3}|["'\[\]#]""")
_BASIC_END = re.compile(r"""(?:[^"\\]|\\.)*+("|$)""")
_LITERAL_END = re.compile(r"""[^']*+('|$)""")


@dataclass(slots=True)
class _Scan:
    """Where in the old text we are: inside a string of several lines, and how deep in arrays."""

    string: str = ""
    depth: int = 0

    def comment_start(self, line: str) -> int | None:
        """Read one line; return where its comment starts."""
        place = self._leave_string(line, 0) if self.string else 0
        while match := _NOTABLE.search(line, place):
            mark, place = match.group(), match.end()
            if mark == "#":
                return match.start()
            if mark in {"[", "]"}:
                self.depth = max(0, self.depth + (1 if mark == "[" else -1))
            elif len(mark) == 3:
                self.string = mark
                place = self._leave_string(line, place)
            else:
                end = (_BASIC_END if mark == '"' else _LITERAL_END).match(line, place)
                place = len(line) if end is None else end.end()
        return None

    def _leave_string(self, line: str, place: int) -> int:
        """Return where the string of several lines ends in this one, or the line's end."""
        while True:
            found = line.find(self.string, place)
            if found < 0:
                return len(line)
            escapes = len(line[place:found]) - len(line[place:found].rstrip("\\"))
            if self.string == '"""' and escapes % 2:
                place = found + 1
                continue
            self.string = ""
            return found + 3


@dataclass(slots=True)
class _Line:
    """One line of code: the comments above it, itself, and the comment at its end."""

    anchor: _Anchor
    above: list[str]
    code: str
    tail: str


@dataclass(slots=True)
class _Outline:
    """A text cut into lines of code. ``entries`` are the packages: name and marker, by order."""

    lines: list[_Line] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)


def _table_of(header: str) -> str:
    return header.strip().strip("[]").replace(" ", "").replace("\t", "")


def _element_of(code: str) -> str:
    named = _ELEMENT_NAME.search(code)
    return named.group(1)[1:-1] if named else _SPACE.sub("", code).rstrip(",")


class _Outliner:
    """Builds an outline; keeps the table, the key and the entry the next line belongs to."""

    def __init__(self) -> None:
        self.outline = _Outline()
        self.scan = _Scan()
        self.table = ""
        self.key = ""
        self.seen: dict[tuple[str, str, str], int] = defaultdict(int)

    def read(self, text: str) -> _Outline:
        pending: list[str] = []
        for line in text.removesuffix("\n").split("\n") if text else ():
            inside_string, depth = bool(self.scan.string), self.scan.depth
            start = self.scan.comment_start(line.removesuffix("\r"))
            code = line.removesuffix("\r") if start is None else line[:start]
            if inside_string:
                # The rest of a long string has no anchor of its own; nothing stands above it.
                continue
            bare = code.strip(_BLANK)
            if not bare:
                pending.append(line.rstrip(_BLANK_END))
                continue
            tail = (
                ""
                if start is None
                else (code[len(code.rstrip(_BLANK)) :] + line[start:]).rstrip(_BLANK_END)
            )
            anchor = self._anchor(bare, depth)
            self.outline.lines.append(_Line(anchor, pending, bare, tail))
            pending = []
        self.outline.after = pending
        return self.outline

    def _anchor(self, code: str, depth: int) -> _Anchor:
        element = ""
        if depth:
            element = _element_of(code)
        elif code.startswith("["):
            self._open_table(code)
        else:
            key, _, value = code.partition("=")
            self.key = key.strip()
            self._name_entry(value.strip())
        place = (self.table, self.key, element)
        self.seen[place] += 1
        return (*place, self.seen[place])

    def _open_table(self, header: str) -> None:
        # The header's own brackets are not an array's.
        self.scan.depth = 0
        name = _table_of(header)
        self.key = ""
        if header.startswith("[[") and name == "packages":
            self.outline.names.append("")
            self.outline.markers.append("")
        is_entry = name == "packages" or name.startswith("packages.")
        if is_entry and self.outline.names:
            self.table = f"{len(self.outline.names) - 1}:{name}"
        else:
            self.table = name

    def _name_entry(self, value: str) -> None:
        if self.table.endswith(":packages") and value[:1] in {'"', "'"}:
            if self.key == "name":
                self.outline.names[-1] = value[1:-1]
            elif self.key == "marker":
                self.outline.markers[-1] = value


def _moved_entries(old: _Outline, new: _Outline) -> dict[int, int]:
    """Return which package of the old text is which of the new one, by position."""
    places: dict[str, tuple[list[int], list[int]]] = {}
    for side, outline in enumerate((old, new)):
        for position, name in enumerate(outline.names):
            places.setdefault(name, ([], []))[side].append(position)
    moved: dict[int, int] = {}
    for olds, news in places.values():
        pairing = pair_entries(
            [old.markers[position] for position in olds],
            [new.markers[position] for position in news],
        )
        moved.update((olds[before], news[after]) for before, after in pairing.matched)
    return moved


def _move(anchor: _Anchor, moved: dict[int, int]) -> _Anchor | None:
    """Translate an anchor of the old text; ``None`` when its package is gone."""
    table, key, element, occurrence = anchor
    position, separator, name = table.partition(":")
    if not separator or not position.isdecimal():
        return anchor
    new = moved.get(int(position))
    return None if new is None else (f"{new}:{name}", key, element, occurrence)


def _homes(anchor: _Anchor) -> Iterator[_Anchor]:
    """Yield where comments may stand, nearest first: their own line, then what contains it."""
    table, key, _, _ = anchor
    yield anchor
    yield (table, key, "", 1)
    yield (table, "", "", 1)
    position, separator, _ = table.partition(":")
    if separator:
        yield (f"{position}:packages", "", "", 1)
    yield _TOP


def _is_kept(comment: str) -> bool:
    return not _FORBIDDEN.search(comment)


def _is_ours(comment: str) -> bool:
    return comment.lstrip(_BLANK).startswith(_GENERATED)


def _comments(lines: Iterable[str]) -> list[str]:
    return [line.strip(_BLANK) for line in lines if line.strip(_BLANK)]


def merge_comments(old_text: str, new_text: str) -> str:
    """Return ``new_text``, which ``format_lock`` wrote, with the comments of ``old_text``.

    The result is the same TOML data as ``new_text`` for any ``old_text``. Linear; raises nothing.
    """
    # Most locks hold no comment but ours, and then there is nothing to keep.
    first, _, rest = old_text.partition("\n")
    if "#" not in (rest if first.startswith(_GENERATED) else old_text):
        return new_text
    old, new = _Outliner().read(old_text), _Outliner().read(new_text)
    moved = _moved_entries(old, new)
    # Whatever stands above the first line of code is the header.
    known = {line.anchor for line in new.lines[1:]} | {_TOP}
    blocks: dict[_Anchor, list[str]] = {}
    homeless: dict[_Anchor, list[str]] = defaultdict(list)
    tails: dict[_Anchor, tuple[str, str]] = {}
    for position, line in enumerate(old.lines):
        kept = [comment for comment in line.above if _is_kept(comment)]
        above = [comment for comment in kept if not _is_ours(comment)]
        anchor = _move(line.anchor, moved)
        if position == 0:
            blocks[_TOP] = kept if _comments(above) else []
        elif anchor is not None and _comments(above):
            home = next(home for home in _homes(anchor) if home in known)
            if home == anchor:
                blocks[home] = above
            else:
                homeless[home].extend(_comments(above))
        if anchor is not None and line.tail and _is_kept(line.tail):
            tails[anchor] = (_SPACE.sub("", line.code), line.tail)
    after = [line for line in old.after if _is_kept(line) and not _is_ours(line)]
    return _render(new, blocks, homeless, tails, after)


def _render(
    new: _Outline,
    blocks: dict[_Anchor, list[str]],
    homeless: dict[_Anchor, list[str]],
    tails: dict[_Anchor, tuple[str, str]],
    after: list[str],
) -> str:
    lines: list[str] = []
    for position, line in enumerate(new.lines):
        anchor = _TOP if position == 0 else line.anchor
        if position == 0:
            lines.extend(_header(line.above, blocks.get(_TOP, [])))
        else:
            lines.extend(blocks.get(anchor, line.above))
        indent = "    " if line.anchor[2] not in {"", "]"} else ""
        lines.extend(f"{indent}{comment}" for comment in homeless.get(anchor, []))
        code, tail = tails.get(line.anchor, ("", ""))
        kept = tail if code == _SPACE.sub("", line.code) else ""
        lines.append(f"{indent}{line.code}{kept}")
    if _comments(after):
        lines.extend(after)
    return "\n".join(lines) + "\n"


def _header(generated: list[str], old: list[str]) -> list[str]:
    """Put cudalock's own line where the old one stood, or first."""
    kept = [line for line in old if not _is_ours(line)]
    places = [place for place, line in enumerate(old) if _is_ours(line)]
    place = places[0] if places else 0
    return [*kept[:place], *generated, *kept[place:]]
