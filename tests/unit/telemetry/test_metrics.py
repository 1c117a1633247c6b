"""What a request, an attempt and an answer's tokens become in the cells."""

import pytest

from gateway.core.errors import CODES
from gateway.core.usage import Usage
from gateway.telemetry.catalogue import METRICS, OK, Metric
from gateway.telemetry.cells import OTHER, Families, Kind, Registry
from gateway.telemetry.metrics import Metrics

_DURATION = "gateway_request_duration_seconds"
_UPSTREAM = "gateway_upstream_duration_seconds"


class Cells:
    def __init__(self, limit: int = 10_000) -> None:
        self.registry = Registry.create(limit=limit)
        self.metrics = Metrics(self.registry, "1.2.3")

    def series(self, name: str) -> dict[tuple[str, ...], list[float]]:
        families: Families = self.registry.read()
        return families.get(name, {})


@pytest.fixture
def cells() -> Cells:
    return Cells()


def observations(values: list[float]) -> tuple[float, float]:
    return sum(values[1:]), values[0]


def test_a_request_counts_under_its_status(cells: Cells) -> None:
    request = cells.metrics.request_cells("acme", "fast", "chat")

    request.finish(200, 1.5, 0.001)
    request.finish(200, 0.5, 0.002)
    request.finish(429, 0.25, 0.001)

    series = cells.series(_DURATION)
    assert observations(series["acme", "fast", "chat", "200"]) == (2, 2.0)
    assert observations(series["acme", "fast", "chat", "429"]) == (1, 0.25)
    assert observations(cells.series("gateway_overhead_seconds")["chat",]) == (3, 0.004)


def test_a_first_chunk_counts_for_streams_alone(cells: Cells) -> None:
    request = cells.metrics.request_cells("acme", "fast", "chat")

    request.finish(200, 1.5, 0.001)
    request.finish(200, 1.5, 0.001, 0.25)

    chunks = cells.series("gateway_time_to_first_chunk_seconds")["fast", "chat"]
    assert observations(chunks) == (1, 0.25)


@pytest.mark.parametrize("status", [0, -1, 99, 600, 10**9])
def test_what_is_no_status_counts_as_other(cells: Cells, status: int) -> None:
    cells.metrics.request_cells("acme", "fast", "chat").finish(status, 1, 0)

    assert set(cells.series(_DURATION)) == {("acme", "fast", "chat", OTHER)}


def test_an_unknown_caller_counts_as_other(cells: Cells) -> None:
    cells.metrics.request_cells("", "", "").finish(401, 0.1, 0.1)

    assert set(cells.series(_DURATION)) == {(OTHER, OTHER, OTHER, "401")}


def test_cells_found_again_are_the_same_cells(cells: Cells) -> None:
    cells.metrics.request_cells("acme", "fast", "chat").finish(200, 1, 0)
    cells.metrics.request_cells("acme", "fast", "chat").finish(200, 1, 0)

    assert observations(cells.series(_DURATION)["acme", "fast", "chat", "200"]) == (2, 2.0)


def test_tokens_count_exactly_as_reported(cells: Cells) -> None:
    request = cells.metrics.request_cells("acme", "fast", "chat")

    request.tokens(Usage(input=10, output=20, cached=5, cache_write=2, reasoning=7))
    request.tokens(Usage(input=1, output=2**40))
    request.tokens(Usage(input=0))
    request.tokens(Usage())

    assert cells.series("gateway_tokens_total") == {
        ("acme", "fast", "input"): [11.0],
        ("acme", "fast", "output"): [20.0 + 2**40],
        ("acme", "fast", "cached"): [5.0],
        ("acme", "fast", "cache_write"): [2.0],
        ("acme", "fast", "reasoning"): [7.0],
    }


def test_an_attempt_counts_under_its_outcome(cells: Cells) -> None:
    attempt = cells.metrics.attempt_cells("azure-eu", "gpt", "chat", "azure.ai.openai")

    attempt.done(OK, 0.5)
    attempt.done(OK, 1.5)
    attempt.done("rate_limited", 0.25)

    series = cells.series(_UPSTREAM)
    place = ("azure-eu", "gpt", "azure.ai.openai", "chat")
    assert observations(series[*place, OK, ""]) == (2, 2.0)
    assert observations(series[*place, "rate_limited", "rate_limited"]) == (1, 0.25)


def test_an_attempt_observes_the_tokens_that_were_reported(cells: Cells) -> None:
    attempt = cells.metrics.attempt_cells("openai", "gpt")

    attempt.tokens(Usage(input=16, output=17))
    attempt.tokens(Usage(input=0))
    attempt.tokens(Usage(output=-5))

    series = cells.series("gen_ai_client_token_usage")
    assert series["chat", "openai", "gpt", "input"][:4] == [16.0, 1.0, 0.0, 1.0]
    assert series["chat", "openai", "gpt", "output"][:5] == [17.0, 0.0, 0.0, 0.0, 1.0]


def test_both_ways_to_observe_agree(cells: Cells) -> None:
    """The hot path writes the bump out; it must do what a histogram does."""
    values = [0.0, 0.0025, 0.01, 0.010001, 81.92, 1000.0]
    request = cells.metrics.request_cells("acme", "fast", "chat")
    slow = cells.metrics.histogram(_DURATION, "slow", "", "", "")

    for value in values:
        request.finish(200, value, value)
        slow.observe(value)

    series = cells.series(_DURATION)
    assert series["acme", "fast", "chat", "200"] == series["slow", "", "", ""]


def test_a_client_that_left_is_counted(cells: Cells) -> None:
    cells.metrics.request_cells("acme", "fast", "chat").client_gone()

    assert cells.series("gateway_client_disconnects_total") == {("chat",): [1.0]}


def test_rare_events_are_counted_by_name(cells: Cells) -> None:
    cells.metrics.shed("overloaded")
    cells.metrics.stream_parse_failure("openai")

    assert cells.series("gateway_shed_requests_total") == {("overloaded",): [1.0]}
    assert cells.series("gateway_stream_parse_failures_total") == {("openai",): [1.0]}


def test_the_version_is_shown(cells: Cells) -> None:
    assert cells.series("gateway_info") == {("1.2.3",): [1.0]}


@pytest.mark.threat("T-45")
@pytest.mark.bug("K40")
def test_a_flood_of_names_keeps_the_series_bounded() -> None:
    cells = Cells(limit=50)

    for number in range(2_000):
        request = cells.metrics.request_cells(f"tenant-{number}", f"model-{number}", "chat")
        request.finish(200 + number % 400, 1, 0, 1)
        request.tokens(Usage(1, 1, 1, 1, 1))
        attempt = cells.metrics.attempt_cells(f"provider-{number}", f"model-{number}")
        attempt.done(list(CODES)[number % len(CODES)], 1)
        attempt.tokens(Usage(1, 1))

    families = cells.registry.read()
    assert max(len(series) for series in families.values()) == 51
    assert sum(sum(values[1:]) for values in families[_DURATION].values()) == 2_000
    assert sum(value for (value,) in families["gateway_tokens_total"].values()) == 10_000


@pytest.mark.parametrize("name", ["gateway_unheard_of", "gateway_requests_total"])
def test_a_name_that_is_not_stored_is_refused(cells: Cells, name: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        cells.metrics.counter(name, "a", "b", "c", "d")


def test_a_wrong_number_of_labels_is_refused(cells: Cells) -> None:
    with pytest.raises(ValueError, match="labels"):
        cells.metrics.counter("gateway_tokens_total", "acme")


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_row_of_the_catalogue_is_sound(metric: Metric) -> None:
    source = METRICS[metric.of] if metric.of else metric
    stored = (*source.labels, *source.hidden)

    assert (metric.kind == Kind.COUNTER) == metric.name.endswith("_total")
    assert (metric.kind == Kind.HISTOGRAM) == bool(metric.buckets)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert metric.help.endswith(".")
    assert {metric.rename.get(label, label) for label in metric.labels} <= set(stored)
    assert not metric.of or (source.kind == Kind.HISTOGRAM and not source.of)
    assert not metric.of or metric.kind == Kind.COUNTER or metric.buckets == source.buckets
