"""When a listed file was published, and whether that is within ``--as-of``.

An index says it as an upload time (PEP 700); where it does not, a nightly's version or label says the
day. A file of which neither is known has no date: that is unknown, and no reason to take or refuse it.

The rule of ``--as-of`` is that of uv's ``exclude-newer``: a file counts if it was uploaded before a
point in time. A date alone is the end of that day, in UTC, so that the answer is the same on every
machine.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from packaging.version import Version

from cudalock.errors import UsageError
from cudalock.wheel.evidence import label_of
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.names import format_quoted

__all__ = [
    "AsOf",
    "Published",
    "nightly_day",
    "parse_as_of",
    "parse_upload_time",
    "published",
]

# RFC 3339, section 5.6: a date and a time with its offset. PEP 700 asks for UTC and up to six digits
# of a second; `2026-01-14T09:03:53.503430Z` and `2026-01-14T09:03:47Z` are both found on indices.
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})\Z", re.ASCII
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_DIGITS = re.compile(r"\d{8}\Z", re.ASCII)
# PEP 427, which defines wheels, is of September 2012: what says it is older has a wrong clock.
_FIRST_WHEEL = datetime(2012, 9, 1, tzinfo=UTC)
_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """When a file was published: at ``start``, or on the day that ends before ``end`` (UTC).

    ``source`` is where that is said.
    """

    start: datetime
    end: datetime
    source: Literal["upload time", "version", "label"]

    def __str__(self) -> str:
        day = self.start.date().isoformat()
        return f"uploaded {day}" if self.source == "upload time" else f"{day} by its {self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """The point in time before which a file was published to count; ``text`` as it was written."""

    text: str
    limit: datetime

    def __str__(self) -> str:
        return self.text

    def admits(self, when: Published) -> bool | None:
        """Whether a file counts; None when only its day is known and the limit lies within it."""
        if when.source == "upload time":
            return when.start < self.limit
        if when.end <= self.limit:
            return True
        return False if when.start >= self.limit else None


def parse_as_of(text: str, *, where: str) -> AsOf:
    """Parse `2026-02-20` (the end of that day, UTC) or an RFC 3339 time with its offset.

    Raises `UsageError` for anything else; `where` names the flag, variable or key.
    """
    limit = None
    if _DAY.match(text):
        day = _calendar_day(text.replace("-", ""))
        limit = None if day is None else _start_of(day) + _ONE_DAY
    else:
        limit = _parse_time(text)
    if limit is None:
        raise UsageError(
            "expected a date (2026-02-20) or a time with its zone (2026-02-20T12:00:00Z), found "
            f"{format_quoted(text)}",
            where=where,
        )
    return AsOf(text=text, limit=limit)


def parse_upload_time(text: str | None) -> datetime | None:
    """Return an upload time in UTC; None for one that cannot be read, or cannot be true."""
    time = None if text is None else _parse_time(text)
    return None if time is None or time < _FIRST_WHEEL else time


def _parse_time(text: str) -> datetime | None:
    found = _TIME.match(text)
    if found is None:
        return None
    day, clock, fraction, offset = found.groups()
    zone = "+00:00" if offset in "Zz" else offset
    try:
        return datetime.fromisoformat(
            f"{day}T{clock}.{(fraction or '0')[:6]:0<6}{zone}"
        ).astimezone(UTC)
    except (ValueError, OverflowError):
        # The 30th of February, or a time that lies beyond the calendar once it is in UTC.
        return None


def _calendar_day(digits: str) -> date | None:
    """Return the day that eight digits are, if there is such a day and one after it."""
    try:
        day = date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None
    return day if day < date.max else None


def _day_of(digits: str) -> date | None:
    """Return the day that eight digits are, if it is one that a wheel can have."""
    day = _calendar_day(digits)
    return None if day is None or day < _FIRST_WHEEL.date() else day


def _start_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def nightly_day(version: Version) -> date | None:
    """Return the day that `.devYYYYMMDD` names; None for any other version."""
    digits = "" if version.dev is None else str(version.dev)
    return _day_of(digits) if _DIGITS.match(digits) else None


def published(file: ListedFile) -> Published | None:
    """Say when a file was published: by its index, else by its version, else by its label.

    A label's date is taken of nightlies and pre-releases only: in a release it may be anything.
    """
    time = parse_upload_time(file.upload_time)
    if time is not None:
        return Published(start=time, end=time, source="upload time")
    version = file.wheel.version
    day = nightly_day(version)
    if day is not None:
        return _on(day, "version")
    written = label_of(version.local).date
    if written is not None and (file.nightly or version.is_prerelease):
        day = _day_of(written)
    return None if day is None else _on(day, "label")


def _on(day: date, source: Literal["version", "label"]) -> Published:
    start = _start_of(day)
    return Published(start=start, end=start + _ONE_DAY, source=source)
