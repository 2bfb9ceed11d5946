"""When to ask again, and how long to wait before (RFC 9110, sections 10.2.3 and 15)."""

__all__ = ["RETRIED_STATUSES", "RETRY_AFTER_LIMIT", "parse_http_date", "retry_delay"]

RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
RETRY_AFTER_LIMIT = 30.0
_FIRST_DELAY = 0.25
_DELAY_LIMIT = 8.0


def retry_delay(attempt: int, retry_after: str | None, *, now: float, jitter: float) -> float:
    """Return the seconds to wait after ``attempt`` (0 is the first) failed.

    Retry-After, seconds or a date, is obeyed up to 30 s; what cannot be read or lies in the past
    asks for nothing. ``now`` is the time of day in seconds since 1970. ``jitter``, from 0 to 1,
    spreads clients that failed together: up to half as much again is added.
    """
    delay: float = min(_FIRST_DELAY * 2.0**attempt, _DELAY_LIMIT)
    asked = _parse_retry_after(retry_after, now)
    if asked is not None:
        delay = max(delay, min(asked, RETRY_AFTER_LIMIT))
    return delay * (1 + jitter / 2)


def _parse_retry_after(text: str | None, now: float) -> float | None:
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    moment = parse_http_date(text)
    return None if moment is None else moment - now


def parse_http_date(text: str) -> float | None:
    """Return the seconds since 1970 of an HTTP date, None for what is none."""
    if len(text) > 64:
        return None
    from datetime import UTC  # noqa: PLC0415 - the mail package is slow to load and rarely needed
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - as above

    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
