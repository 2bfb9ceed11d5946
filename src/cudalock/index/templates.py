"""URL templates of publishers: their placeholders, and what may stand for them.

``{cuda}`` is a CUDA release as folders name it (``cu130``), ``{version}`` a release of the project
asked for. For wheels built against a release of another project, the definition's ``partner``:

``{partner}``               2.10.0
``{partner-minor}``         2.10
``{partner-digits}``        2100
``{partner-minor-digits}``  210

A value never holds more than a version or a label and is percent-encoded; what the template itself
says is taken as it is written, so a literal ``+`` that a server wants encoded is written ``%2B``
(devpi's ``+simple`` is not).
"""

import re
from urllib.parse import quote, urlsplit

from packaging.version import Version

from cudalock.errors import UsageError
from cudalock.wheel.names import format_quoted

__all__ = ["PLACEHOLDERS", "fill_partner", "names_partner", "parse_template", "unknown_placeholder"]

PLACEHOLDERS = (
    *("cuda", "version", "partner", "partner-minor"),
    *("partner-digits", "partner-minor-digits"),
)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PARTNER = re.compile(r"\{(partner(?:-[a-z-]+)?)\}")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def unknown_placeholder(text: str) -> str | None:
    """Return the first placeholder that means nothing, as it is written, or None."""
    return next((m[0] for m in _PLACEHOLDER.finditer(text) if m[1] not in PLACEHOLDERS), None)


def names_partner(text: str) -> bool:
    """Whether a release of the partner is to be filled in."""
    return "{partner" in text


def parse_template(text: str, *, where: str) -> str:
    """Return a URL template without a trailing slash; raise `UsageError` for anything else.

    https only, http for loopback. Placeholders stand in the path, so that no value of theirs can
    name another host; ``{version}`` and a partner never stand together.
    """
    rest = _PLACEHOLDER.sub("x", text)
    if unknown_placeholder(text) is not None or "{" in rest or "}" in rest:
        listed = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise UsageError(
            f"expected only the placeholders {listed}, found {format_quoted(text)}", where=where
        )
    if "{version}" in text and names_partner(text):
        raise UsageError(
            f"expected {{version}} or a {{partner}}, not both, found {format_quoted(text)}",
            where=where,
        )
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"expected a URL, found {format_quoted(text)}", where=where) from error
    secure = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    plain = text.isascii() and text.isprintable() and " " not in text
    if not (secure and host and plain) or "{" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(f"expected an https URL, found {format_quoted(text)}", where=where)
    return text.rstrip("/")


def fill_partner(text: str, release: Version) -> str:
    """Put a release of the partner (its public version) in place of every form of ``{partner}``."""
    minor = ".".join(str(part) for part in (*release.release, 0)[:2])
    forms = {"partner": release.public, "partner-minor": minor}
    forms |= {f"{name}-digits": value.replace(".", "") for name, value in forms.items()}
    return _PARTNER.sub(lambda match: quote(forms.get(match[1], match[0]), safe="{}!"), text)
