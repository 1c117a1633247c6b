"""What a scrape gets: valid formats, views that agree with their source, and cheap repetition."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable

import pytest
from prometheus_client import Metric
from prometheus_client import parser as plain
from prometheus_client.openmetrics import parser as openmetrics

from gateway.core.clock import monotonic
from gateway.core.usage import Usage
from gateway.telemetry.cells import Families, Registry
from gateway.telemetry.exposition import Exposition
from gateway.telemetry.metrics import Metrics

OPEN_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
OPEN = "application/openmetrics-text; version=1.0.0; q=0.9, text/plain;q=0.1"
_PARSER = "text_string_to_metric_families"  # by name: one of the two is not typed
HOSTILE = 'quo"te\\back\nline\u2028é{},='


def scrape(registry: Registry, accept: str = "") -> dict[str, Metric]:
    body, content_type = Exposition(registry.read).render(accept)
    module = openmetrics if content_type.startswith("application/openmetrics") else plain
    parse: Callable[[str], Iterable[Metric]] = getattr(module, _PARSER)
    return {family.name: family for family in parse(body.decode())}


def values(family: Metric, suffix: str = "") -> dict[tuple[tuple[str, str], ...], float]:
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for sample in family.samples
        if sample.name.endswith(suffix)
    }


@pytest.fixture
def registry() -> Registry:
    registry = Registry.create()
    metrics = Metrics(registry, "1.2.3")
    request = metrics.request_cells("acme", HOSTILE, "chat")
    for status in (200, 200, 500):
        request.finish(status, 1.0, 0.001, 0.5)
    request.tokens(Usage(input=3, output=4))
    for provider in ("one", "two"):
        attempt = metrics.attempt_cells(provider, "gpt", "chat", "openai")
        attempt.done("ok", 1.0)
        attempt.done("rate_limited", 0.005)
    metrics.in_flight.inc()
    return registry


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        (OPEN, OPEN_TYPE),
        ("application/openmetrics-text; version=abc", OPEN_TYPE),
        ("text/plain; version=x", "text/plain; version=0.0.4; charset=utf-8"),
        ("nonsense;;;,,,=", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_the_format_follows_the_accept_header(
    registry: Registry, accept: str, content_type: str
) -> None:
    body, given = Exposition(registry.read).render(accept)

    assert given.startswith(content_type)
    assert body.endswith(b"# EOF\n") == content_type.startswith("application/openmetrics")


@pytest.mark.parametrize("accept", ["", OPEN])
def test_requests_are_the_observations_of_their_duration(registry: Registry, accept: str) -> None:
    families = scrape(registry, accept)

    place = (("endpoint", "chat"), ("model", HOSTILE))
    assert values(families["gateway_requests"], "_total") == {
        (*place, ("status", "200"), ("tenant", "acme")): 2.0,
        (*place, ("status", "500"), ("tenant", "acme")): 1.0,
    }
    duration = families["gateway_request_duration_seconds"]
    assert values(duration, "_count") == {(*place, ("tenant", "acme")): 3.0}
    assert values(duration, "_sum") == {(*place, ("tenant", "acme")): 3.0}


@pytest.mark.parametrize("accept", ["", OPEN])
def test_attempts_are_shown_under_both_conventions(registry: Registry, accept: str) -> None:
    families = scrape(registry, accept)

    attempts = values(families["gateway_upstream_attempts"], "_total")
    assert attempts[("model", "gpt"), ("outcome", "ok"), ("provider", "one")] == 1.0
    assert len(attempts) == 4
    shared = (
        ("gen_ai_operation_name", "chat"),
        ("gen_ai_provider_name", "openai"),
        ("gen_ai_request_model", "gpt"),
    )
    assert values(families["gen_ai_client_operation_duration"], "_count") == {
        shared: 2.0,
        (("error_type", "rate_limited"), *shared): 2.0,
    }


def test_buckets_are_cumulative_and_end_with_the_count(registry: Registry) -> None:
    family = scrape(registry)["gateway_upstream_duration_seconds"]

    buckets = [
        (sample.labels["le"], sample.value)
        for sample in family.samples
        if sample.name.endswith("_bucket") and sample.labels["provider"] == "one"
    ]
    assert buckets[0] == ("0.01", 1.0)
    assert buckets[-1] == ("+Inf", 2.0)
    assert [value for _, value in buckets] == sorted(value for _, value in buckets)


def test_no_label_is_null(registry: Registry) -> None:
    for family in scrape(registry).values():
        for sample in family.samples:
            assert all(value and value != "None" for value in sample.labels.values())


def test_the_process_and_the_version_are_shown(registry: Registry) -> None:
    families = scrape(registry)

    assert values(families["gateway_info"]) == {(("version", "1.2.3"),): 1.0}
    assert values(families["process_resident_memory_bytes"])[()] > 1_000_000
    assert values(families["process_open_fds"])[()] > 2


def test_a_worker_that_is_gone_has_no_figures(registry: Registry) -> None:
    workers = {"0": os.getpid(), "1": 2**22 + 1}
    body, _ = Exposition(registry.read, lambda: workers).render()

    assert b'process_open_fds{worker="0"}' in body
    assert b'worker="1"' not in body


@pytest.mark.fault("L-17")
def test_an_answer_is_reused_for_a_moment(registry: Registry) -> None:
    reads: list[int] = []

    def read() -> Families:
        reads.append(1)
        return registry.read()

    exposition = Exposition(read, fresh_s=60)
    threads = [threading.Thread(target=exposition.render) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    exposition.render("text/html")

    assert len(reads) == 1


def test_a_moment_later_the_answer_is_new(registry: Registry) -> None:
    exposition = Exposition(registry.read)
    before, _ = exposition.render()
    registry.gauge("gateway_in_flight_requests").set(77)

    end = monotonic() + 10
    while b"gateway_in_flight_requests 77.0\n" not in exposition.render()[0]:
        assert monotonic() < end

    assert b"gateway_in_flight_requests 1.0\n" in before


@pytest.mark.slow
@pytest.mark.fault("L-17")
async def test_a_scrape_of_many_series_lets_the_loop_run() -> None:
    registry = Registry.create()
    metrics = Metrics(registry, "1")
    for number in range(500):
        metrics.request_cells(f"tenant-{number}", "fast", "chat").finish(200, 1, 0)
    exposition = Exposition(registry.read)

    scrape = asyncio.create_task(asyncio.to_thread(exposition.render))
    turns = 0
    while not scrape.done():
        await asyncio.sleep(0.001)
        turns += 1

    assert (await scrape)[0].count(b"\n") > 10_000
    assert turns > 20
