"""One requirement that a person wrote, and where they wrote it.

The grammar is that of the dependency specifiers specification (PEP 508), read by ``packaging``.
Whatever is wrong with the text, what leaves this module is a `UsageError` that names the place.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement

from cudalock.errors import UsageError
from cudalock.project.index_url import parse_index_url, redact

__all__ = ["RequestedRequirement", "near_name", "parse_requirement"]

_LONGEST = 8192
# ``int`` refuses text of more than 4300 digits with a bare ``ValueError``, and only when the
# version is compared. No real version comes near this many.
_WHEEL_ADDRESS = re.compile(
    r"https?://[^\s?#]{1,4000}/([A-Za-z0-9][A-Za-z0-9_.]*)-[^/\s?#;]{1,400}\.whl(?=[\s?#;]|\Z)"
)
_DIGITS = re.compile(r"\d{300}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedRequirement:
    """A requirement and its place; ``hashes`` are ``sha256:hex`` as ``--hash`` gave them."""

    requirement: Requirement
    where: str
    hashes: tuple[str, ...] = ()


def parse_requirement(
    text: str, *, where: str, hashes: tuple[str, ...] = ()
) -> RequestedRequirement:
    """Read one requirement, such as ``name[extra]>=1; marker``, ``name @ https://…`` or a wheel's address.

    Raises:
        UsageError: the text is not a requirement, or is a path or another address without a name.

    """
    text = text.strip()
    if len(text) > _LONGEST:
        raise UsageError(
            f"expected a requirement of at most {_LONGEST} characters, found {len(text)}",
            where=where,
        )
    # pip's requirements files may hold a wheel's address alone; its file name names the project.
    wheel = _WHEEL_ADDRESS.match(text)
    if wheel is not None:
        text = f"{wheel.group(1).replace('_', '-')} @ {text}"
    refusal = _refuse_nameless(text)
    if refusal is not None:
        raise UsageError(refusal, where=where)
    if _DIGITS.search(text):
        raise UsageError("expected a requirement, found a number of 300 digits in it", where=where)
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        reason = error.message if error.span is not None else str(error)
        message = (
            f"expected a requirement, found `{redact(_short(text))}`: {redact(_short(reason))}"
        )
        raise UsageError(message, where=where) from error
    except (ValueError, RecursionError) as error:
        message = f"expected a requirement, found `{redact(_short(text))}`"
        raise UsageError(message, where=where) from error
    if requirement.url is not None:
        # Called for its refusals: an address that no client could ask is refused where it stands.
        parse_index_url(requirement.url, where=where)
    return RequestedRequirement(requirement=requirement, where=where, hashes=hashes)


def near_name(name: str, known: Iterable[str]) -> str:
    """Word the nearest known name as `` (did you mean `x`?)``, or nothing when none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake pays for this import.

    near = get_close_matches(name[:200], sorted(known), n=1, cutoff=0.6)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _refuse_nameless(text: str) -> str | None:
    """Say why a path or a bare address is not taken: neither names the project it is."""
    shown = redact(_short(text))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,19}://", text):
        return f"expected a requirement, found the address `{shown}`; write `NAME @ {shown}`"
    if text.startswith((".", "/", "~", "\\", "file:")) or re.match(r"[A-Za-z]:[\\/]", text):
        return (
            f"expected a requirement, found the path `{shown}`; only wheels of an index are locked"
        )
    if "@" not in text and text.lower().endswith((".whl", ".tar.gz", ".zip")):
        return (
            f"expected a requirement, found the file `{shown}`; only wheels of an index are locked"
        )
    return None


def _short(text: str) -> str:
    """Keep a message readable whatever was pasted; control characters are made visible."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:400])
    return text if len(text) <= 160 else f"{text[:160]}…"
