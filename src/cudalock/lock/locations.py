"""Where a locked file lies: which URLs and paths a lock may hold.

PEP 751 leaves ``url`` open, and ``packaging.pylock`` takes ``file:``, ``javascript:``, user names
and climbing paths. Here a URL is https (http on loopback, and for hosts the user's own settings
name), spelled in RFC 3986's characters so that every parser sees one host, and carries neither
credentials nor a fragment. A path is relative to the lock and stays below it. Names are decoded
once, never twice (pip CVE-2026-13346).
"""

import re
from collections.abc import Set as AbstractSet
from urllib.parse import unquote, urlsplit

from cudalock.lock.faults import quoted

__all__ = ["credentials_in", "path_fault", "path_file_name", "url_fault", "url_file_name"]

_LONGEST_URL = 8192
_LONGEST_PATH = 4096

# RFC 3986, section 2: unreserved, gen-delims but "#", sub-delims, and percent-encoded octets.
_URL_TEXT = re.compile(r"(?:[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,252})|[0-9a-f:.]{2,45}")
_LOOPBACK = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}|::1")
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CREDENTIALS = re.compile(r"https?://[^/\s?#]*@|://[^/\s?#@:]*:[^/\s?#@]+@", re.IGNORECASE)


def credentials_in(text: str) -> bool:
    """Say whether free text holds a URL with a user name or a password."""
    return _CREDENTIALS.search(text) is not None


def _shown(url: str) -> str:
    """Quote a URL without what may be secret: credentials, the query and the fragment."""
    visible = url.partition("#")[0].partition("?")[0]
    if "@" in visible:
        visible = "***@" + visible.rpartition("@")[2]
    return quoted(visible)


def url_fault(url: str, *, insecure_hosts: AbstractSet[str] = frozenset()) -> str | None:
    """Say why a lock may not hold ``url``, or ``None`` when it may.

    ``insecure_hosts`` are the host names for which the user's own setting allows plain http.
    """
    if len(url) > _LONGEST_URL:
        return f"expected a URL of at most {_LONGEST_URL} characters, found {len(url)}"
    if "#" in url:
        return f"expected a URL without a fragment, found {_shown(url)}"
    if not _URL_TEXT.fullmatch(url):
        return f"expected a URL in the characters of RFC 3986, found {_shown(url)}"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return f"expected a URL, found {_shown(url)}"
    if "@" in parts.netloc:
        return "expected a URL without user name and password, found one that carries them"
    if not _HOST.fullmatch(host):
        return f"expected a URL that names a host, found {_shown(url)}"
    if parts.scheme != "https" and not (
        parts.scheme == "http" and (_LOOPBACK.fullmatch(host) or host in insecure_hosts)
    ):
        return f"expected an https URL (http on loopback only), found {_shown(url)}"
    return None


def _climbs(segments: list[str]) -> bool:
    return any(segment in {".", ".."} for segment in segments)


def url_file_name(url: str) -> str | None:
    """Return the last segment of a URL that passed ``url_fault``, decoded once.

    ``None`` when the path climbs or does not decode: such a URL names no file.
    """
    try:
        decoded = unquote(urlsplit(url).path, errors="strict")
    except ValueError:
        return None
    segments = decoded.split("/")
    # An encoded slash would end a segment in one reader and not in another.
    if _climbs(segments) or decoded.count("/") != urlsplit(url).path.count("/"):
        return None
    return segments[-1]


def path_fault(path: str) -> str | None:
    """Say why a lock may not hold ``path``, or ``None`` when it may."""
    if len(path) > _LONGEST_PATH:
        return f"expected a path of at most {_LONGEST_PATH} characters, found {len(path)}"
    if not path or _CONTROL.search(path):
        return f"expected a path without control characters, found {quoted(path)}"
    segments = path.replace("\\", "/").split("/")
    if not segments[0] or _DRIVE.match(path):
        return f"expected a path relative to the lock, found {quoted(path)}"
    if ".." in segments:
        return f"expected a path below the lock's folder, found {quoted(path)}"
    return None


def path_file_name(path: str) -> str:
    """Return the last segment of a path, in either system's separators."""
    return path.replace("\\", "/").rpartition("/")[2]
