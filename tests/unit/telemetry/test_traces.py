"""The tap keeps the newest runs, and no more of a second than it could show (D-8)."""

import pytest

from gateway.core.call import Run
from gateway.telemetry.traces import Traces


def taken(traces: Traces, number: int, now: float) -> bool:
    run = Run(f"req_{number}", "chat", now, now + 60.0)
    wanted = traces.wants(now)
    if wanted:
        traces.take(run, [])
    return wanted


def test_the_newest_are_kept() -> None:
    traces = Traces(2)

    assert all(taken(traces, number, 5.0) for number in range(5))
    assert [traces.find(f"req_{number}") is not None for number in range(5)] == [False] * 3 + [
        True
    ] * 2


@pytest.mark.parametrize(("keep", "most"), [(1, 100), (200, 200), (1_000, 1_000)])
def test_of_one_second_no_more_are_recorded_than_could_be_shown(keep: int, most: int) -> None:
    traces = Traces(keep)

    first = [taken(traces, number, 7.0 + number / 10_000) for number in range(2_000)]
    later = [taken(traces, number, 8.1 + number / 10_000) for number in range(2_000)]

    assert first == later == [True] * most + [False] * (2_000 - most)


def test_none_are_recorded_where_none_are_kept() -> None:
    traces = Traces(0)

    assert not any(traces.wants(float(second)) for second in range(5))
