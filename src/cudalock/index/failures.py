"""The ways an index gives no usable answer, each an `IndexAccessError` that carries its value.

None of them says anything about what the index holds: "absent" is an answer, not a failure. The
messages never hold userinfo or a query, where secrets travel; callers pass addresses that
`address.shown_url` has cleaned.
"""

from cudalock.errors import IndexAccessError

__all__ = [
    "BodyError",
    "HashMismatchError",
    "HttpStatusError",
    "NotAPageError",
    "OfflineError",
    "RangeError",
    "RedirectError",
    "TransportError",
]


class TransportError(IndexAccessError):
    """No response came: the connection, the name or the certificate failed.

    ``retryable`` is False where asking again gives the same answer (a refused connection, a name
    that does not exist, a certificate that is not trusted).
    """

    code = "transport"

    def __init__(self, message: str, *, where: str | None = None, retryable: bool = True) -> None:
        super().__init__(message, where=where)
        self.retryable = retryable


class BodyError(IndexAccessError):
    """A response's body was cut, too long, too slow, or in a coding that was not asked for."""

    code = "body"

    def __init__(self, message: str, *, where: str | None = None, retryable: bool = True) -> None:
        super().__init__(message, where=where)
        self.retryable = retryable


class HttpStatusError(IndexAccessError):
    """The server answered with a status that is neither success nor "absent"."""

    code = "http-status"

    def __init__(self, message: str, *, status: int, where: str | None = None) -> None:
        super().__init__(message, where=where)
        self.status = status


class RedirectError(IndexAccessError):
    """A redirect leads nowhere, in a circle, or where it must not lead."""

    code = "redirect"


class RangeError(IndexAccessError):
    """A server does not serve parts of a file, and the file is too large to be read whole."""

    code = "range"


class OfflineError(IndexAccessError):
    """The network may not be used and the cache has no copy."""

    code = "offline"


class NotAPageError(IndexAccessError):
    """What came is not a project page (PEP 503 or PEP 691), so it lists nothing and denies nothing."""

    code = "not-a-page"


class HashMismatchError(IndexAccessError):
    """The bytes of a file are not what is claimed of them: an index, or who sent them, is wrong.

    ``found`` is the sha256 of the bytes, ``claims`` are those that were expected, as listed.
    """

    code = "hash-mismatch"

    def __init__(
        self, message: str, *, found: str, claims: tuple[str, ...], where: str | None = None
    ) -> None:
        super().__init__(message, where=where)
        self.found = found
        self.claims = claims
