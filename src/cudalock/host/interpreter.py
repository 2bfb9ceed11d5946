"""Which Python: a version as people write it, and the interpreter a lock may be made for."""

import re
from dataclasses import dataclass

from cudalock.errors import UsageError

__all__ = ["Interpreter", "PythonChoice", "parse_python"]

_PYTHON = re.compile(
    r"(?:(?:cpython|python|py|cp)[@-]?)?"
    r"(?P<major>3)(?:\.(?P<minor>[0-9]{1,2})|(?P<glued>[0-9]{1,2}))"
    r"(?:\.(?P<micro>[0-9]{1,2})(?P<pre>(?:a|b|rc)[0-9]{1,2})?)?"
    r"(?P<threads>t|\+freethreaded)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonChoice:
    """A CPython version, ``3.12`` or ``3.12.4``, and whether it runs without the GIL."""

    version: str
    free_threaded: bool = False

    def __str__(self) -> str:
        return f"{self.version}t" if self.free_threaded else self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python that was found: its full version, its implementation, and its platform tag.

    ``platform`` is what the running system is, such as ``manylinux_2_36_x86_64`` or
    ``macosx_14_0_arm64``; it need not be one that CUDA wheels exist for.
    """

    version: str
    implementation: str
    platform: str
    free_threaded: bool = False


def parse_python(text: str) -> PythonChoice:
    """Read ``3.12``, ``3.12.4``, ``3.13t``, ``cp312`` or ``cpython@3.12``.

    Raises:
        UsageError: it is no version of CPython 3.

    """
    found = _PYTHON.fullmatch(text.strip().lower())
    if found is None or (found["glued"] and found["micro"]):
        raise UsageError(f"expected a CPython version such as `3.12`, found `{text[:80]}`")
    minor = int(found["minor"] or found["glued"])
    free_threaded = found["threads"] is not None
    # "3.1" is most often a 3.10 that passed through a number.
    if minor < 7:
        raise UsageError(f"expected CPython 3.7 or newer, found `{text[:80]}`")
    if free_threaded and minor < 13:
        raise UsageError(f"expected CPython 3.13 or newer without the GIL, found `{text[:80]}`")
    version = f"3.{minor}"
    if found["micro"]:
        version = f"{version}.{int(found['micro'])}{found['pre'] or ''}"
    return PythonChoice(version=version, free_threaded=free_threaded)
