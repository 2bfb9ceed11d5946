"""Web addresses: what may be asked for, where credentials belong, and what may be shown (RFC 3986).

An address is made normal once, here, and is plain ASCII from then on. Userinfo is taken out of it at
once, so that no address that is kept, compared, cached or printed holds a secret.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from cudalock.errors import UsageError

__all__ = ["WEB_URL", "Origin", "join_url", "origin_of", "shown_url", "split_userinfo"]

_DEFAULT_PORTS = {"http": 80, "https": 443}

# Printable ASCII without the backslash, which browsers read as a slash and others do not. The
# authority has no userinfo, and a port is at most five digits.
WEB_URL = re.compile(
    r"(?i:https?)://(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
    r"(?:[/?][!-\[\]-~]*)?\Z"
)
_USERINFO = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]*://)([^/?#\\]*)@", re.DOTALL)

# For showing: whatever comes before an at sign in what might be an authority.
_SECRET = re.compile(r"\A((?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]*)[^/?#\\]*@", re.DOTALL)


class Origin(NamedTuple):
    """What credentials are bound to: scheme, host and port, all three."""

    scheme: str
    host: str
    port: int


def split_userinfo(url: str) -> tuple[str, tuple[str, str] | None]:
    """Split an http(s) address into itself without userinfo and fragment, and (user, password).

    Raises `UsageError` for anything that is not a plain http or https address.
    """
    match = _USERINFO.match(url)
    credentials = None
    if match is not None:
        user, _, password = match[2].partition(":")
        credentials = (unquote(user), unquote(password))
        url = match[1] + url[match.end() :]
    url = url.partition("#")[0]
    if not WEB_URL.match(url):
        raise UsageError("expected an http or https URL", where=shown_url(url))
    origin_of(url)
    return url, credentials


def origin_of(url: str) -> Origin:
    """Return the origin of a normal address; raise `UsageError` for a port above 65535."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    try:
        port = parts.port
    except ValueError as error:
        raise UsageError("expected a port of at most 65535", where=shown_url(url)) from error
    return Origin(scheme, (parts.hostname or "").lower(), port or _DEFAULT_PORTS[scheme])


def join_url(base: str, reference: str) -> str | None:
    """Resolve a reference; None when the result is no plain http(s) address without userinfo.

    The fragment is dropped. A reference with white space or control characters inside is refused,
    because `urljoin` would silently remove them and name another host.
    """
    reference = reference.strip(" \t\r\n\f").partition("#")[0]
    if any(not "!" <= c <= "~" for c in reference):
        return None
    try:
        joined = urljoin(base, reference)
        if WEB_URL.match(joined):
            origin_of(joined)
            return joined
    except (ValueError, UsageError):
        pass
    return None


def shown_url(url: str) -> str:
    """Return an address as it may be shown or kept: no userinfo, no query, no control characters."""
    bare = _SECRET.sub(r"\1", url.strip(), count=1).partition("#")[0].partition("?")[0]
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in bare)
