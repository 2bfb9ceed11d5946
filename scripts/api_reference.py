"""Writes docs/api.md from the docstrings of what `import cudalock` offers.

``python scripts/api_reference.py`` writes it, ``--check`` exits 1 when it would change.
"""

import dataclasses
import enum
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import cudalock

__all__ = ["PATH", "reference"]

PATH = Path(__file__).resolve().parent.parent / "docs" / "api.md"
_HEAD = """# API reference

What `import cudalock` offers, by name. Written by `scripts/api_reference.py` from the docstrings; what may be
relied on, and for how long, is in [versioning.md](versioning.md).
"""
_MODULES = re.compile(
    r"\b(?:cudalock|collections|packaging|concurrent|pathlib|typing)(?:\.[a-z_]+)*\.(?=[A-Z])"
)


def reference() -> str:
    """Return the whole text."""
    lines = [_HEAD]
    for name in sorted(cudalock.__all__, key=str.lower):
        lines += _entry(name, getattr(cudalock, name))
    return "\n".join(lines)


def _entry(name: str, value: object) -> Iterator[str]:
    kind = "class " if isinstance(value, type) else ""
    yield f"## {kind}`{name}`\n"
    if isinstance(value, type):
        bases = [
            base.__name__ for base in value.__bases__ if base.__module__.startswith("cudalock")
        ]
        if bases:
            yield f"A {' and '.join(f'`{base}`' for base in bases)}.\n"
        if not issubclass(value, BaseException | enum.Enum):
            yield from _code(name, value)
        yield _doc(value) + "\n"
        yield from _members(value)
    else:
        yield from _code(name, value)
        yield _doc(value) + "\n"


def _code(name: str, value: object) -> Iterator[str]:
    if not callable(value) or (isinstance(value, type) and getattr(value, "_is_protocol", False)):
        return
    yield f"```python\n{_signature(name, value)}\n```\n"


def _signature(name: str, value: Callable[..., object]) -> str:
    parameters = inspect.signature(value)
    kept = [p for p in parameters.parameters.values() if p.name != "self"]
    shown = [_parameter(p) for p in kept]
    keyword = next(
        (i for i, p in enumerate(kept) if p.kind is inspect.Parameter.KEYWORD_ONLY), None
    )
    if keyword is not None:
        shown.insert(keyword, "*")
    result = parameters.return_annotation
    told = "" if result in (inspect.Signature.empty, None) else f" -> {_annotation(result)}"
    line = f"{name}({', '.join(shown)}){told}"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){told}"


def _parameter(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is inspect.Parameter.empty:
        return text
    default = repr(parameter.default)
    return text + (" = ..." if "factory" in default else f" = {default}")


def _annotation(annotation: object) -> str:
    if isinstance(annotation, str):
        return annotation
    return _MODULES.sub("", inspect.formatannotation(annotation)).replace("NoneType", "None")


def _members(value: type) -> Iterator[str]:
    if issubclass(value, BaseException):
        own = vars(value).get("exit_code")
        if own is not None:
            yield f"Exit code {own}.\n"
        return
    fields = (
        {field.name for field in dataclasses.fields(value)}
        if dataclasses.is_dataclass(value)
        else set()
    )
    for name, member in vars(value).items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__  # noqa: PLW2901 - what it wraps has the signature
        if inspect.isfunction(member):
            yield f"- `{_signature(name, member)}`: {_line(member)}"
        elif (isinstance(member, property) or hasattr(member, "func")) and member.__doc__:
            yield f"- `{name}`: {_line(member)}"
    yield ""


def _doc(value: object) -> str:
    return (inspect.getdoc(value) or "").replace("``", "`")


def _line(value: object) -> str:
    return " ".join(_doc(value).split())


def main(arguments: list[str]) -> int:
    """Write the file, or say whether it is current."""
    text = reference()
    if arguments == ["--check"]:
        current = PATH.is_file() and PATH.read_text(encoding="utf-8") == text
        print("current" if current else "docs/api.md would change: python scripts/api_reference.py")
        return 0 if current else 1
    PATH.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
