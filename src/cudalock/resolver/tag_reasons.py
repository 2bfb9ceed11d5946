"""Which part of a wheel's tags the target does not accept: its Python, its glibc, its platform."""

from cudalock.errors import UsageError
from cudalock.host import Platform, parse_platform
from cudalock.wheel.filename import WheelFile

__all__ = ["GLIBC", "tag_rejection"]

GLIBC = "glibc "
"""How the kind of a rejection begins that names the glibc a wheel needs: ``glibc 2.28``."""


def tag_rejection(wheel: WheelFile, pythons: frozenset[tuple[str, str]], platform: str) -> str:
    """Return ``python``, ``platform``, or ``glibc X.Y`` where a newer glibc is all that is missing.

    ``pythons`` are the interpreter and ABI parts of the tags that the target accepts, ``platform``
    its most demanding platform tag.
    """
    fitting = [tag for tag in wheel.tags if (tag.interpreter, tag.abi) in pythons]
    if not fitting:
        return "python"
    target = parse_platform(platform)
    needed = [
        found.glibc
        for tag in fitting
        if (found := _read(tag.platform)) is not None
        and found.machine == target.machine
        and found.glibc is not None
    ]
    if target.glibc is None or not needed:
        return "platform"
    return f"{GLIBC}{needed[0][0]}.{min(minor for _, minor in needed)}"


def _read(tag: str) -> Platform | None:
    """Read a wheel's platform tag, None for one that no target here can have."""
    if not tag.startswith("manylinux"):
        return None
    try:
        return parse_platform(tag)
    except UsageError:
        return None
