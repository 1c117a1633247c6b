"""The benchmark harness itself: exact bodies, a mock that relays whole, figures and goals."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from benchmarks import payload, process, report, runner, summary
from benchmarks.measure import Result, Spec, spread
from benchmarks.profiling import own_time
from benchmarks.rows import METRICS, STEPS, Metric, chosen_steps
from benchmarks.summary import Run


def _metric(key: str) -> Metric:
    return next(metric for metric in METRICS if metric.key == key)


def _run(*rounds: dict[str, dict[str, float]]) -> Run:
    subjects = list(dict.fromkeys(name for one in rounds for name in one))
    return Run(machine={}, subjects=subjects, rounds=list(rounds), skipped={}, errors={})


@pytest.fixture
def mock_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    port = process.free_port()
    command = [sys.executable, "-m", "benchmarks.mock", "--port", str(port), "--hang-ms", "50"]
    mock = process.Process("mock", command, process.cores()[1])
    try:
        mock.wait_for_status(port, "/whoami", 10)
        yield port
    finally:
        mock.end()


@pytest.mark.parametrize("size", [payload.SMALL_BODY_BYTES, payload.LARGE_BODY_BYTES])
@pytest.mark.parametrize("stream", [False, True])
def test_request_has_exactly_the_size_asked_for(size: int, stream: bool) -> None:
    body = payload.request_body(payload.MODEL, size, stream=stream)

    assert size == len(body)
    assert msgspec.json.decode(body)["model"] == payload.MODEL


def test_answer_and_events_have_their_size_and_parse() -> None:
    head, tail = payload.content_event_parts()
    event = head + b"0" * payload.STAMP_DIGITS + tail

    assert len(payload.answer_body()) == payload.ANSWER_BYTES
    assert len(event) == payload.EVENT_BYTES
    assert payload.STAMP.search(event) is not None
    assert msgspec.json.decode(event.removeprefix(b"data: "))["choices"]


@pytest.mark.slow
def test_mock_and_load_agree_on_every_scenario(mock_port: int) -> None:
    counted: dict[str, Result] = {}
    for scenario in ("verify", "plain", "burst", "paced", "storm", "hang", "rate"):
        fields = {"scenario": scenario, "port": mock_port, "connections": 4, "seconds": 0.3}
        counted[scenario] = runner.apply_load(msgspec.convert({**fields, "warm_s": 0.1}, Spec))

    assert {name: found.errors for name, found in counted.items() if found.errors} == {}
    assert counted["verify"].requests == 2
    assert 4 == counted["storm"].requests == counted["hang"].requests
    assert counted["paced"].transit.count > 0
    assert counted["burst"].chunks >= payload.EVENTS_PER_STREAM
    assert counted["hang"].latency.p50_ms >= 50


def test_a_process_that_ends_at_once_is_reported_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    command = [sys.executable, "-c", "raise SystemExit('no such option')"]
    child = process.Process("broken", command, process.cores()[1])
    try:
        with pytest.raises(process.StartError, match="no such option"):
            child.wait_for_status(process.free_port(), "/", 5)
    finally:
        child.end()


def test_figure_is_the_smallest_round_and_the_median_ratio() -> None:
    run = _run(
        {"nginx": {"plain_us": 20.0}, "gateway": {"plain_us": 80.0}},
        {"nginx": {"plain_us": 40.0}, "gateway": {"plain_us": 90.0}},
        {"nginx": {"plain_us": 30.0}, "gateway": {"plain_us": 120.0}},
    )

    found = summary.figure(run, _metric("plain_us"), "gateway")

    assert summary.Figure(80.0, 4.0) == found


def test_added_latency_is_the_difference_to_no_gateway_in_the_same_round() -> None:
    run = _run({"direct": {"plain_p99_ms": 1.0}, "gateway": {"plain_p99_ms": 5.0}})

    found = summary.figure(run, _metric("added_p99_ms"), "gateway")

    assert summary.Figure(4.0) == found
    assert summary.missed(run) == ["added p99 at 32 connections (< 3)"]


def test_a_goal_without_its_other_side_is_left_open() -> None:
    run = _run({"gateway": {"plain_us": 80.0}})

    kept = [verdict.kept for verdict in summary.verdicts(run, _metric("plain_us"))]

    assert kept == [None] * 7


def test_readme_block_is_replaced_between_its_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- bench:start -->\nold\n<!-- bench:end -->\nafter\n")
    run = _run({"nginx": {"plain_us": 20.0}, "gateway": {"plain_us": 80.0}})

    report.update_readme(run, readme)

    text = readme.read_text()
    assert text.startswith("before\n<!-- bench:start -->\n|")
    assert text.endswith("<!-- bench:end -->\nafter\n")
    assert "80.0 (4.0x)" in text
    assert "old" not in text


def test_one_name_chooses_both_sizes_of_paced_streams() -> None:
    chosen = [step.key for step in chosen_steps(["paced", "plain"], quick=False)]

    assert chosen == ["plain", "paced50", "paced200"]
    assert len(STEPS) > len(chosen_steps(None, quick=True))


def test_percentiles_and_own_time() -> None:
    found = spread([0.001 * number for number in range(1, 101)])

    assert (found.count, found.p50_ms, found.p99_ms, found.max_ms) == (100, 51.0, 100.0, 100.0)
    assert own_time("a;b 2\na;c 1\nb 1\n") == [("b", 0.75), ("c", 0.25)]
