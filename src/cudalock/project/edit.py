"""Adding to a ``pyproject.toml`` that a person wrote: one table more, and every other byte as it was.

tomlkit finds the place, beside the targets that are there. What it writes is taken only if it is the old text
with one piece put in; where it is not (tables out of order), the table goes to the end of the file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from cudalock.errors import UsageError
from cudalock.project.pyproject import read_toml

__all__ = ["add_target"]

_Value = str | bool | Sequence[str]


def add_target(text: str, name: str, values: Mapping[str, _Value], *, where: str) -> str:
    """Return the text with ``[tool.cudalock.targets.NAME]`` added; line ends are those of the text.

    Raises `UsageError` for text that is not TOML, a target that is there with other values, and a file in
    which the table has no place (``tool`` as an inline table). The same values change nothing.
    """
    before = _data(text, where)
    targets: Any = before
    for key in ("tool", "cudalock", "targets"):
        targets = targets.get(key, {}) if isinstance(targets, dict) else {}
    if isinstance(targets, dict) and name in targets:
        if targets[name] == _plain(values):
            return text
        raise UsageError(
            f"expected no target `{name}` there, found one; change it by hand, or name another",
            where=f"{where}: tool.cudalock.targets.{name}",
            flag="--target",
        )
    wanted = _with_target(before, name, values)
    for attempt in (_beside(text, name, values), _behind(text, name, values)):
        changed = None if attempt is None else _inserted(text, attempt)
        if changed is not None and _parses_to(changed, wanted):
            return changed
    raise UsageError(
        "expected a file in which a table can be added to `tool`, found an inline table; write it as "
        f"[tool.cudalock.targets.{name}]",
        where=where,
    )


def _data(text: str, where: str) -> dict[str, Any]:
    return dict(read_toml(text, where=where))


def _plain(values: Mapping[str, _Value]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, str | bool) else list(value)
        for key, value in values.items()
    }


def _with_target(
    data: Mapping[str, Any], name: str, values: Mapping[str, _Value]
) -> dict[str, Any] | None:
    """Return the data as it should be; None where something else stands in the place of a table."""
    tool: Any = data.get("tool", {})
    own: Any = tool.get("cudalock", {}) if isinstance(tool, dict) else None
    targets: Any = own.get("targets", {}) if isinstance(own, dict) else None
    if not isinstance(targets, dict):
        return None
    own = {**own, "targets": {**targets, name: _plain(values)}}
    return {**data, "tool": {**tool, "cudalock": own}}


def _parses_to(text: str, wanted: dict[str, Any] | None) -> bool:
    try:
        return wanted is not None and _data(text, "") == wanted
    except UsageError:
        return False


def _beside(text: str, name: str, values: Mapping[str, _Value]) -> str | None:
    try:
        document: Any = tomlkit.parse(text)
        level = document
        for key in ("tool", "cudalock", "targets"):
            if key not in level:
                level[key] = tomlkit.table(is_super_table=True)
            level = level[key]
        table = tomlkit.table()
        for key, value in _plain(values).items():
            table[key] = value
        level[name] = table
        return tomlkit.dumps(document)
    except (TOMLKitError, TypeError, ValueError, AttributeError):
        # A file that tomllib reads and tomlkit does not, or a value where a table should be.
        return None


def _behind(text: str, name: str, values: Mapping[str, _Value]) -> str:
    table: dict[str, Any] = {"tool": {"cudalock": {"targets": {name: _plain(values)}}}}
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + tomlkit.dumps(table)


def _inserted(old: str, new: str) -> str | None:
    """Return ``new`` if it is ``old`` with one piece put in, that piece with the line ends of ``old``."""
    start = 0
    while start < len(old) and start < len(new) and old[start] == new[start]:
        start += 1
    rest = old[start:]
    if len(new) < len(old) or not new.endswith(rest):
        return None
    piece = new[start : len(new) - len(rest)]
    # A blank line stands before and behind a table, whoever wrote it.
    if rest and not piece.endswith("\n\n") and not rest.startswith(("\n", "\r\n")):
        piece += "\n"
    if "\r\n" in old:
        piece = piece.replace("\r\n", "\n").replace("\n", "\r\n")
    return old[:start] + piece + rest
