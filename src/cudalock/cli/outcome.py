"""What `resolve` found, as findings with their rules and places: what every report is made from.

The forms for GitHub, SARIF and Markdown are made from an `Outcome`, and so may those of any other
command. Texts here are as they came; each form escapes them for where it goes.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from cudalock.cli.report import NOTES
from cudalock.cli.terminal import one_line
from cudalock.errors import CudalockError
from cudalock.explain.report import conflict_rule, format_chain, format_seen, format_target
from cudalock.explain.rules import Rule, rule_of
from cudalock.host import Target
from cudalock.resolver.conflict import Conflict, ConflictFact, UnprovedError
from cudalock.resolver.facts import FactKind
from cudalock.resolver.resolution import Resolution

__all__ = [
    "Finding",
    "Outcome",
    "Place",
    "ToldRemedy",
    "error_outcome",
    "find_place",
    "locked_outcome",
    "read_text",
    "refused_outcome",
]

Level = Literal["error", "warning", "note"]
ReadText = Callable[[str], str | None]
"""Return a file's text, None where it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file of the user's, and the line (from 1) where it is known."""

    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to tell; the first of ``places`` is the nearest."""

    level: Level
    message: str
    rule: Rule | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRemedy:
    """A change that was solved, and the command that asks for it."""

    command: str
    changes: tuple[str, ...]
    note: str = ""

    @property
    def text(self) -> str:
        """The change in words, with what should be known of it."""
        words = " and ".join(f"`{change}`" for change in self.changes)
        return f"with {words} the set resolves" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came out. ``packages`` are rows of project, version, CUDA and index."""

    status: Literal["locked", "refused", "unknown", "error"]
    target: str = ""
    findings: tuple[Finding, ...] = ()
    remedies: tuple[ToldRemedy, ...] = ()
    packages: tuple[tuple[str, str, str, str], ...] = ()
    lock: str | None = None


def locked_outcome(resolution: Resolution, lock: str | None, told: Sequence[str] = ()) -> Outcome:
    """Return the outcome of a set; ``told`` is what was to be said of the input."""
    findings = [_warning("input", message) for message in told]
    findings += [_warning(warning.code, warning.message) for warning in resolution.warnings]
    return Outcome(
        status="locked",
        target=format_target(resolution.target),
        findings=tuple(findings),
        packages=tuple(
            (
                package.project,
                str(package.version),
                str(package.variant.cuda or package.variant.runtime or ""),
                package.file.index,
            )
            for package in resolution.packages
        ),
        lock=lock,
    )


def _warning(code: str, message: str) -> Finding:
    level: Level = "note" if code in NOTES else "warning"
    return Finding(level=level, message=one_line(message), rule=rule_of(code))


def refused_outcome(
    conflict: Conflict,
    target: Target,
    remedies: Sequence[ToldRemedy],
    told: Sequence[str] = (),
    *,
    read: ReadText | None = None,
) -> Outcome:
    """Return the outcome of a proved "no": one finding a conflict, at the user's requirements."""
    findings = [
        Finding(
            level="error",
            message=format_chain(conflict, facts),
            rule=conflict_rule(replace(conflict, facts=facts)),
            places=tuple(_places(facts, read or read_text)),
        )
        for facts in (conflict.facts, *conflict.also)
    ]
    findings += [_warning("input", message) for message in told]
    return Outcome(
        status="refused",
        target=format_target(target),
        findings=tuple(findings),
        remedies=tuple(remedies),
    )


def _places(facts: Iterable[ConflictFact], read: ReadText) -> list[Place]:
    own = (FactKind.REQUIREMENT, FactKind.CONSTRAINT, FactKind.OVERRIDE)
    sources = [s for f in facts if f.fact.kind in own for s in f.sources]
    found = (find_place(source, read) for source in sources)
    return list(dict.fromkeys(place for place in found if place is not None))


def error_outcome(
    error: CudalockError, target: Target | None, *, read: ReadText | None = None
) -> Outcome:
    """Return the outcome of an error: ``error`` when asked wrongly, ``unknown`` when not told."""
    message = str(error)
    if isinstance(error, UnprovedError) and (seen := format_seen(error.seen)):
        message += f"\n{seen}"
    if error.flag is not None:
        message += f"\nThe flag that decides this: {error.flag}"
    place = None if error.where is None else find_place(error.where, read or read_text)
    finding = Finding(
        level="error",
        message=message,
        rule=rule_of(error.code),
        places=() if place is None else (place,),
    )
    return Outcome(
        status="error" if error.exit_code == 2 else "unknown",
        target="" if target is None else format_target(target),
        findings=(finding,),
    )


_LINE = re.compile(r"(?P<file>.+?\.\w+):(?P<line>[0-9]{1,7})")
_KEY = re.compile(r"(?P<file>.+?\.toml): (?P<key>.+)")
_LARGEST = 4 * 1024 * 1024


def read_text(file: str) -> str | None:
    """Read a file of the user's once more, to find a line in it; None where that fails."""
    path = Path(file)
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def find_place(where: str, read: ReadText) -> Place | None:
    """Find the file and line of ``requirements.txt:3`` or ``pyproject.toml: project.dependencies[1]``.

    None for what is no file, as the command line. Of a value that a TOML file holds twice, or in
    another spelling, the line is not known.
    """
    numbered = _LINE.fullmatch(where)
    if numbered is not None:
        return Place(file=_relative(numbered["file"]), line=int(numbered["line"]))
    keyed = _KEY.fullmatch(where)
    if keyed is None:
        return None
    text = read(keyed["file"])
    line = None if text is None else _line_of(text, keyed["key"])
    return Place(file=_relative(keyed["file"]), line=line)


def _line_of(text: str, key: str) -> int | None:
    """Return the line of a string in a TOML text: the only one that holds it in quotes."""
    try:
        value: object = tomllib.loads(text)
        for part in re.findall(r"[^.\[\]]+|\[\d+\]", key):
            number = re.fullmatch(r"\[(\d+)\]", part)
            value = value[int(number[1])] if number else value[part]  # type: ignore[index]  # or TypeError
    except (tomllib.TOMLDecodeError, RecursionError, LookupError, TypeError):
        return None
    if not isinstance(value, str):
        return None
    lines = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if f'"{value}"' in line or f"'{value}'" in line
    ]
    return lines[0] if len(lines) == 1 else None


def _relative(file: str) -> str:
    """Return a path as it is from here, where it lies below; reports are read beside the files."""
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_posix()
