"""When a file was published, and what `--as-of` makes of it."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from cudalock.errors import UsageError
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.published import (
    Published,
    nightly_day,
    parse_as_of,
    parse_upload_time,
    published,
)


def _file(version: str, *, upload_time: str | None = None, nightly: bool = False) -> ListedFile:
    wheel = parse_wheel_file(f"torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl")
    return ListedFile(
        wheel=wheel,
        url=f"https://wheels.test/{wheel.filename}",
        index="wheels",
        index_url="https://wheels.test/",
        upload_time=upload_time,
        nightly=nightly,
    )


def _admits(limit: str, file: ListedFile) -> bool | None:
    when = published(file)
    assert when is not None
    return parse_as_of(limit, where="--as-of").admits(when)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-14T09:03:53.503430Z", datetime(2026, 1, 14, 9, 3, 53, 503430, tzinfo=UTC)),
        ("2026-01-14T09:03:47Z", datetime(2026, 1, 14, 9, 3, 47, tzinfo=UTC)),
        ("2026-01-14T09:03:47.5Z", datetime(2026, 1, 14, 9, 3, 47, 500000, tzinfo=UTC)),
        ("2026-01-14T09:03:47.123456789Z", datetime(2026, 1, 14, 9, 3, 47, 123456, tzinfo=UTC)),
        ("2026-01-14T01:03:47+02:00", datetime(2026, 1, 13, 23, 3, 47, tzinfo=UTC)),
    ],
)
def test_both_forms_of_an_upload_time_are_read(text: str, time: datetime) -> None:
    assert parse_upload_time(text) == time


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "yesterday",
        "2026-01-14",
        "2026-01-14T09:03:47",
        "2026-02-30T09:03:47Z",
        "2026-01-14T25:03:47Z",
        "20260114T090347Z",
        "2026-W03-3T09:03:47Z",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-01-14T09:03:47Z\n",
        "٢٠٢٦-01-14T09:03:47Z",
    ],
)
def test_an_upload_time_that_cannot_be_read_or_true_is_none(text: str | None) -> None:
    assert parse_upload_time(text) is None


@given(st.text(max_size=60))
def test_any_text_is_an_upload_time_in_utc_or_none(text: str) -> None:
    time = parse_upload_time(text)
    assert time is None or time.tzinfo is UTC


@given(st.text(max_size=60))
def test_any_text_is_a_limit_or_asked_wrongly(text: str) -> None:
    try:
        limit = parse_as_of(text, where="--as-of")
    except UsageError:
        return
    assert limit.limit.tzinfo is UTC


def test_a_date_counts_to_its_end_in_utc() -> None:
    before = _file("2.9.0", upload_time="2026-02-20T23:59:59.999999Z")
    after = _file("2.9.0", upload_time="2026-02-21T00:00:00Z")
    assert _admits("2026-02-20", before) is True
    assert _admits("2026-02-20", after) is False


def test_a_time_counts_what_was_uploaded_before_it() -> None:
    file = _file("2.9.0", upload_time="2026-02-20T12:00:00Z")
    assert _admits("2026-02-20T12:00:00Z", file) is False
    assert _admits("2026-02-20T12:00:01Z", file) is True
    assert _admits("2026-02-20T13:30:00+01:00", file) is True


def test_the_upload_time_outranks_the_version() -> None:
    file = _file("2.11.0.dev20260108+cu130", upload_time="2026-01-09T03:00:00Z", nightly=True)
    when = published(file)
    assert when is not None
    assert (when.source, str(when)) == ("upload time", "uploaded 2026-01-09")


def test_a_nightly_without_an_upload_time_is_of_the_day_of_its_version() -> None:
    when = published(_file("2.11.0.dev20260108+cu130", nightly=True))
    assert when is not None
    assert (when.source, str(when)) == ("version", "2026-01-08 by its version")
    assert when.start == datetime(2026, 1, 8, tzinfo=UTC)


def test_of_a_day_alone_it_is_not_known_whether_it_was_before_a_time_in_it() -> None:
    file = _file("2.11.0.dev20260108+cu130")
    assert _admits("2026-01-08T12:00:00Z", file) is None
    assert _admits("2026-01-08", file) is True
    assert _admits("2026-01-09T00:00:00Z", file) is True
    assert _admits("2026-01-08T00:00:00Z", file) is False
    assert _admits("2026-01-07", file) is False


def test_a_date_in_the_label_counts_for_nightlies_only() -> None:
    label = "2.9.0+20260318.cu130"
    assert published(_file(label)) is None
    when = published(_file(label, nightly=True))
    assert when is not None
    assert str(when) == "2026-03-18 by its label"


@pytest.mark.parametrize(
    "version", ["2.9.0", "2.9.0.dev1", "2.9.0.dev202601", "2.9.0.dev20261301", "2.9.0.dev20260230"]
)
def test_a_version_without_a_day_has_none(version: str) -> None:
    assert nightly_day(Version(version)) is None
    assert published(_file(version)) is None


def test_a_day_is_read_from_a_nightly() -> None:
    assert nightly_day(Version("2.11.0.dev20260108+cu130")) == date(2026, 1, 8)


@pytest.mark.parametrize(
    "text", ["", "today", "2026-02-30", "2026-2-3", "2026-02-20T12:00:00", "9999-12-31"]
)
def test_a_limit_that_cannot_be_read_says_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError, match="expected a date") as told:
        parse_as_of(text, where="CUDALOCK_AS_OF")
    assert told.value.where == "CUDALOCK_AS_OF"


def test_published_values_are_equal_by_value() -> None:
    start = datetime(2026, 1, 8, tzinfo=UTC)
    one = Published(start=start, end=start, source="upload time")
    assert one == Published(start=start, end=start, source="upload time")
