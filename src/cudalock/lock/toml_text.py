"""TOML 1.0 text for plain data, by hand: deterministic, and a hundred times faster than tomlkit.

Strings are always basic strings on one line, so no text can end a value, open a table or start a
comment; that also lets ``comments.py`` put comments between any two lines. What a terminal would
obey (control characters, bidirectional overrides) is escaped although TOML admits some of it raw.
Callers have checked the data with ``rules.py``: keys and strings hold no lone surrogate.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from cudalock.lock.faults import UNSAFE_TO_SHOW
from cudalock.lock.model import TomlValue

__all__ = ["format_array", "format_key", "format_string", "format_tables", "format_value"]

_WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# TOML, "String": these five have short forms; other control characters are written \uXXXX.
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"


def format_string(text: str) -> str:
    """Return ``text`` as a basic string, quotes included."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{UNSAFE_TO_SHOW.sub(_escape, plain)}"'


def format_key(key: str) -> str:
    """Return ``key`` bare where TOML allows it, else quoted."""
    return key if _BARE_KEY.fullmatch(key) else format_string(key)


def format_value(value: TomlValue) -> str:
    """Return any plain value on one line; the keys of inline tables are sorted."""
    match value:
        case str():
            return format_string(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Mapping():
            pairs = (f"{format_key(key)} = {format_value(value[key])}" for key in sorted(value))
            return f"{{{', '.join(pairs)}}}"
        case Sequence():
            return f"[{', '.join(format_value(item) for item in value)}]"
        case _:  # pragma: no cover - mypy proves that nothing is left
            assert_never(value)


def format_array(key: str, items: Sequence[str]) -> Iterator[str]:
    """Yield the lines of an array of values already formatted, one a line."""
    yield f"{key} = ["
    for item in items:
        yield f"    {item},"
    yield "]"


def _is_flat(table: Mapping[str, TomlValue]) -> bool:
    return all(isinstance(item, str | int) for item in table.values())


def format_tables(header: str, table: Mapping[str, TomlValue]) -> Iterator[str]:
    """Yield ``[header]`` and the lines below it: plain keys first, then its tables, each sorted.

    A table of scalars that fits one line stays inline, and so does whatever lies in an array.
    """
    plain: list[str] = []
    nested: list[tuple[str, Mapping[str, TomlValue]]] = []
    for name in sorted(table):
        value = table[name]
        key = format_key(name)
        line = f"{key} = {format_value(value)}"
        if isinstance(value, Mapping) and not (_is_flat(value) and len(line) <= _WIDTH):
            nested.append((key, value))
        elif isinstance(value, Sequence) and not isinstance(value, str) and len(line) > _WIDTH:
            plain.extend(format_array(key, [format_value(item) for item in value]))
        else:
            plain.append(line)
    # A table that only holds tables needs no header of its own.
    if plain:
        yield from ("", f"[{header}]", *plain)
    for key, value in nested:
        yield from format_tables(f"{header}.{key}", value)
