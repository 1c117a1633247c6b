"""Totals over real processes: exact at any time, also after one was killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.telemetry.cells import Families, read
from gateway.telemetry.exposition import Exposition
from tests.support.shared import ROOT

ROUNDS = 2_000
WORKER = """
import sys
from pathlib import Path
from gateway.core.usage import Usage
from gateway.telemetry.cells import Registry
from gateway.telemetry.metrics import Metrics

metrics = Metrics(Registry.create(Path(sys.argv[1])), "0.0")
request = metrics.request_cells("acme", "fast", "chat")
attempt = metrics.attempt_cells("openai", "gpt")
metrics.in_flight.inc()
print("ready", flush=True)
for command in sys.stdin:
    for _ in range(int(command)):
        attempt.done("ok", 0.5)
        request.tokens(Usage(input=3, output=5))
        request.finish(200, 1.0, 0.001)
    print("done", flush=True)
"""


class Worker:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        assert self.said() == "ready"

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, rounds: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{rounds}\n")
        self.process.stdin.flush()

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.communicate()


def totals(families: Families) -> dict[str, float]:
    duration = families["gateway_request_duration_seconds"]["acme", "fast", "chat", "200"]
    return {
        "requests": sum(duration[1:]),
        "seconds": duration[0],
        "input": families["gateway_tokens_total"]["acme", "fast", "input"][0],
        "output": families["gateway_tokens_total"]["acme", "fast", "output"][0],
        "in flight": families["gateway_in_flight_requests"][()][0],
    }


def after(rounds: int, living: int) -> dict[str, float]:
    return {
        "requests": rounds,
        "seconds": rounds,
        "input": 3 * rounds,
        "output": 5 * rounds,
        "in flight": living,
    }


@pytest.mark.slow
@pytest.mark.fault("L-6")
@pytest.mark.bug("K40")
def test_totals_are_exact_after_a_worker_was_killed(tmp_path: Path) -> None:
    workers = [Worker(tmp_path / f"{number}.cells") for number in range(4)]
    paths = [worker.path for worker in workers]
    try:
        for worker in workers:
            worker.ask(ROUNDS)
        assert [worker.said() for worker in workers] == ["done"] * 4
        assert totals(read(paths)) == after(4 * ROUNDS, living=4)

        workers[0].end()
        assert totals(read(paths)) == after(4 * ROUNDS, living=3)

        workers[0] = Worker(paths[0])
        workers[0].ask(ROUNDS)
        assert workers[0].said() == "done"
        assert totals(read(paths)) == after(5 * ROUNDS, living=4)
    finally:
        for worker in workers:
            worker.end()
    assert totals(
        {**read(paths), "gateway_in_flight_requests": {(): [0.0]}},
    ) == after(5 * ROUNDS, living=0)


@pytest.mark.slow
@pytest.mark.fault("L-6")
def test_a_kill_in_the_middle_of_a_bump_tears_nothing(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "0.cells")
    seen = 1.0
    try:
        worker.ask(1)
        assert worker.said() == "done"
        worker.ask(100_000_000)
        while seen < ROUNDS:
            now = totals(read([worker.path]))["requests"]
            assert now >= seen
            seen = now
    finally:
        worker.end()

    families = read([worker.path])
    assert "gateway_in_flight_requests" not in families
    attempts = families["gateway_upstream_duration_seconds"][
        "openai", "gpt", "openai", "chat", "ok", ""
    ]
    requests = families["gateway_request_duration_seconds"]["acme", "fast", "chat", "200"]
    tokens = families["gateway_tokens_total"]["acme", "fast", "output"][0]
    assert sum(requests[1:]) >= seen
    assert sum(requests[1:]) == requests[0] or sum(requests[1:]) == requests[0] + 1
    assert 0 <= sum(attempts[1:]) - sum(requests[1:]) <= 1
    assert 0 <= tokens / 5 - sum(requests[1:]) <= 1


@pytest.mark.slow
@pytest.mark.bug("K40")
def test_every_scrape_shows_all_workers(tmp_path: Path) -> None:
    workers = [Worker(tmp_path / f"{number}.cells") for number in range(2)]
    pids = {str(number): worker.process.pid for number, worker in enumerate(workers)}
    exposition = Exposition(lambda: read(worker.path for worker in workers), lambda: pids)
    try:
        for worker in workers:
            worker.ask(500)
        assert [worker.said() for worker in workers] == ["done"] * 2
        text = exposition.render()[0].decode()
    finally:
        for worker in workers:
            worker.end()

    series = 'gateway_requests_total{endpoint="chat",model="fast",status="200",tenant="acme"}'
    assert f"{series} 1000.0\n" in text
    assert "gateway_in_flight_requests 2.0\n" in text
    assert 'process_resident_memory_bytes{worker="0"}' in text
    assert 'process_resident_memory_bytes{worker="1"}' in text
