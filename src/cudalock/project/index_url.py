"""The address of an index, in a type that does not show its credentials.

An index address may hold a user, a password or a token. ``str``, ``repr``, ``format`` and the
errors of this module show the address without them, so that a lock, a log line or a traceback
cannot leak what nobody meant to print. Only `IndexUrl.reveal` gives the whole address, and only
the client that sends the request has a reason to call it.

The syntax is that of RFC 3986; which address is the default one is asked elsewhere.
"""

import re
from typing import NoReturn
from urllib.parse import SplitResult, urlsplit, urlunsplit

from cudalock.errors import UsageError

__all__ = ["IndexUrl", "parse_index_url", "redact"]

_LONGEST = 4096
_HIDDEN = "***"

# The scheme is bounded so that a long word without a colon costs linear time, and the user part
# runs to the last "@" before the path, because people paste passwords that hold an "@".
_USER_PART = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,19}://)[^/\s?#\"'<>`]*@")
# Everything after "?" may be a signed token; the values are hidden and the names are not kept.
_QUERY = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,19}://[^\s?#\"'<>`]*)\?[^\s#\"'<>`]+")


def redact(text: str) -> str:
    """Hide the user part and the query of every URL inside ``text``; linear in its length."""
    return _QUERY.sub(rf"\1?{_HIDDEN}", _USER_PART.sub(rf"\1{_HIDDEN}@", text))


class IndexUrl:
    """An http or https address whose credentials are not shown.

    Made by `parse_index_url`. Two are equal when their whole addresses are, credentials included.
    It is not a dataclass: ``dataclasses.asdict`` and JSON encoders would copy the secret out.
    """

    __slots__ = ("__url",)

    __url: str

    def __init__(self, url: str) -> None:
        object.__setattr__(self, "_IndexUrl__url", url)

    def reveal(self) -> str:
        """Give the whole address, credentials included: for the request itself, never for print."""
        return self.__url

    def without_credentials(self) -> str:
        """Give the address with neither user part nor query: what a lock may name."""
        parts = urlsplit(self.__url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def has_credentials(self) -> bool:
        """Whether the address holds anything that may be a secret."""
        return self.without_credentials() != self.__url

    @property
    def host(self) -> str:
        """The host name, lower case, without port or credentials."""
        return urlsplit(self.__url).hostname or ""

    def __str__(self) -> str:
        return redact(self.__url)

    def __repr__(self) -> str:
        return f"IndexUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexUrl) and other.reveal() == self.__url

    def __hash__(self) -> int:
        return hash((IndexUrl, self.__url))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an IndexUrl does not change: {name}")

    def __reduce__(self) -> tuple[type["IndexUrl"], tuple[str]]:
        return IndexUrl, (self.__url,)


def parse_index_url(text: str, *, where: str | None = None, flag: str | None = None) -> IndexUrl:
    """Read an http or https address; the fragment is dropped.

    Whether plain http is wise is the caller's question: what the user's own setting says is taken.

    Raises:
        UsageError: the text is no such address. The message holds no credentials.

    """
    text = text.strip()
    if len(text) > _LONGEST:
        message = f"expected an address of at most {_LONGEST} characters, found {len(text)}"
        raise UsageError(message, where=where, flag=flag)
    parts = _split(text)
    if parts is None:
        message = f"expected an http or https URL, found `{redact(text)}`"
        raise UsageError(message, where=where, flag=flag)
    return IndexUrl(urlunsplit(parts._replace(fragment="")))


def _split(text: str) -> SplitResult | None:
    # `urlsplit` deletes tabs and newlines without a word, so they are refused before it sees them.
    if not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return None
    return parts
