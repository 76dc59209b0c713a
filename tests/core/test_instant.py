"""Instants: one printed form, read back as the same millisecond."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.core.instant import (
    DAY_MS,
    HOUR_MS,
    INTERVALS,
    date_range,
    day_of,
    duration_text,
    interval_ms,
    iso,
    parse_duration,
    parse_instant,
    parse_range_end,
    resolved,
)

INSTANTS = st.integers(parse_instant("0001-01-01"), parse_instant("9999-12-31"))


@given(INSTANTS)
def test_an_instant_is_printed_and_read_back_exactly(at: int) -> None:
    assert parse_instant(iso(at)) == at
    assert iso(at).endswith("Z")


@given(INSTANTS, INSTANTS)
def test_printed_seconds_sort_like_instants(one: int, other: int) -> None:
    whole = sorted((one // 1000 * 1000, other // 1000 * 1000))
    assert sorted(map(iso, whole)) == list(map(iso, whole))


@given(INSTANTS)
def test_a_day_holds_its_instants(at: int) -> None:
    assert day_of(at) * DAY_MS <= at < (day_of(at) + 1) * DAY_MS


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2025-06-01", "2025-06-01T00:00:00Z"),
        ("2025-06-01T12:30", "2025-06-01T12:30:00Z"),
        ("2025-06-01T12:30:00+02:00", "2025-06-01T10:30:00Z"),
        ("2025-06-01T12:30:00.25Z", "2025-06-01T12:30:00.250Z"),
        (" 2025-06-01T00:00:00Z ", "2025-06-01T00:00:00Z"),
    ],
)
def test_the_usual_ways_to_write_a_time_are_read(text: str, at: str) -> None:
    assert iso(parse_instant(text)) == at


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2025-13-01",
        "12:30",
        "2025-06-31",
        "9999-12-31T23:59:59-12:00",  # in UTC beyond the last year, and before the first
        "0001-01-01T00:00:00+12:00",
    ],
)
def test_what_is_no_time_is_the_users_mistake_with_a_hint(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_instant(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "length"), [("90s", 90_000), ("1.5h", 5_400_000), ("0s", 0), ("250ms", 250), ("1d", DAY_MS)]
)
def test_durations_are_read(text: str, length: int) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["5", "m", "-5m", "5 m", "five minutes", "9" * 400 + "s"])
def test_what_is_no_duration_is_the_users_mistake(text: str) -> None:
    with pytest.raises(UserError):
        parse_duration(text)


def test_intervals_rise_and_divide_a_day() -> None:
    lengths = [interval_ms(name) for name in INTERVALS]
    assert lengths == sorted(set(lengths))
    assert all(DAY_MS % length == 0 for length in lengths)
    with pytest.raises(UserError):
        interval_ms("7m")


@given(st.integers(1, 100 * DAY_MS))
def test_a_duration_is_printed_and_read_back_exactly(length_ms: int) -> None:
    assert parse_duration(duration_text(length_ms)) == length_ms


def test_intervals_are_printed_by_their_names() -> None:
    assert {duration_text(length_ms): length_ms for length_ms in INTERVALS.values()} == INTERVALS


def test_a_range_may_end_at_a_date_or_a_time_before_the_end() -> None:
    asked: list[int] = []

    def end() -> int:
        asked.append(1)
        return 10 * DAY_MS

    assert resolved(parse_range_end("1970-01-03"), end) == 2 * DAY_MS
    assert not asked
    assert resolved(parse_range_end(" -3d "), end) == 7 * DAY_MS
    assert resolved(parse_range_end("-12h"), end) == 10 * DAY_MS - 12 * HOUR_MS
    assert resolved(parse_range_end("-0d"), end) == 10 * DAY_MS
    with pytest.raises(UserError, match="before 1970"):
        resolved(parse_range_end("-11d"), end)


@pytest.mark.parametrize("text", ["-30", "-d", "--3d", "-2025-01-01", "-" + "9" * 400 + "d"])
def test_a_time_before_the_end_that_cannot_be_read_is_a_users_mistake(text: str) -> None:
    with pytest.raises(UserError, match="as a time") as raised:
        parse_range_end(text)
    assert "-30d" in raised.value.hint


@pytest.mark.parametrize(
    ("first", "last", "printed"),
    [
        ("2025-10-01T00:00:00Z", "2025-10-13T00:00:00Z", "2025-10-01 to 2025-10-13"),
        ("2025-10-01T06:00:00Z", "2025-10-02T06:00:00Z", "2025-10-01 to 2025-10-02"),
        ("2025-10-01T00:00:00Z", "2025-10-01T06:30:00Z", "2025-10-01 00:00-06:30"),
    ],
)
def test_a_range_within_one_day_is_printed_with_times(first: str, last: str, printed: str) -> None:
    assert date_range(first, last) == printed
