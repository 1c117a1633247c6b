"""Windows follow from the clock alone: each moment is in one, they touch, and calendars count."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import clock
from gateway.core.counting import Window
from gateway.middleware.windows import ENDLESS, Calendar, StoreClock

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Africa/Cairo", "America/Havana",
         "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu")  # fmt: skip
PERS = ("second", "minute", "hour", "day", "week", "month")
MOMENTS = st.integers(1_200_000_000, 2_500_000_000)


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.bug("K17")
@given(st.sampled_from(ZONES), st.sampled_from(PERS), MOMENTS)
def test_each_moment_is_in_a_window_and_the_next_one_begins_at_its_end(
    zone: str, per: str, moment: int
) -> None:
    window = Calendar(zone).window(per, moment)

    assert window.start <= moment < window.end
    assert Calendar(zone).window(per, window.start) == window
    assert Calendar(zone).window(per, window.end - 1) == window
    assert Calendar(zone).window(per, window.end).start == window.end


@pytest.mark.bug("K17")
@given(st.sampled_from(ZONES), st.sampled_from(PERS), st.lists(MOMENTS, min_size=2, max_size=5))
def test_what_was_asked_before_changes_nothing(zone: str, per: str, moments: list[int]) -> None:
    kept = Calendar(zone)

    assert [kept.window(per, each) for each in moments] == [
        Calendar(zone).window(per, each) for each in moments
    ]


@pytest.mark.bug("K17")
@pytest.mark.parametrize(
    ("per", "moment", "zone", "start", "end"),
    [
        ("day", "2026-03-29T12:00", "Europe/Berlin", "2026-03-29T00:00", "2026-03-30T00:00"),
        ("day", "2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:00", "2026-10-26T00:00"),
        ("week", "2026-11-30T00:00", "UTC", "2026-11-30T00:00", "2026-12-07T00:00"),
        ("week", "2026-11-29T23:59", "UTC", "2026-11-23T00:00", "2026-11-30T00:00"),
        ("month", "2026-01-31T23:59", "UTC", "2026-01-01T00:00", "2026-02-01T00:00"),
        ("month", "2028-02-29T12:00", "UTC", "2028-02-01T00:00", "2028-03-01T00:00"),
        ("month", "2026-12-31T12:00", "UTC", "2026-12-01T00:00", "2027-01-01T00:00"),
        ("hour", "2026-11-30T12:59", "Asia/Kolkata", "2026-11-30T12:00", "2026-11-30T13:00"),
    ],
)
def test_windows_are_those_of_the_calendar(
    per: str, moment: str, zone: str, start: str, end: str
) -> None:
    window = Calendar(zone).window(per, at(moment, zone))

    assert window == Window(int(at(start, zone)), int(at(end, zone)))


@pytest.mark.bug("K17")
def test_days_are_as_long_as_their_clocks_make_them() -> None:
    berlin = Calendar("Europe/Berlin")
    hours = [
        (window.end - window.start) / 3600
        for day in ("2026-03-28", "2026-03-29", "2026-10-25")
        for window in [berlin.window("day", at(f"{day}T12:00", "Europe/Berlin"))]
    ]

    assert hours == [24, 23, 25]


def test_what_never_begins_anew_has_no_window() -> None:
    assert Calendar().window("total", 1_700_000_000) == ENDLESS == Window()


def test_the_clock_is_that_of_the_store() -> None:
    store = StoreClock()
    assert abs(store.now_s() - clock.wall()) < 1

    ahead = datetime.now(UTC) + timedelta(hours=5)
    store.learn(int(ahead.timestamp() * 1000))
    assert abs(store.now_s() - ahead.timestamp()) < 1
