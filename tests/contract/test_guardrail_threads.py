"""Functions of operators that hang: bounded in threads, told, and refused by the fail mode (W-GRD-11, L-16)."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.middleware.guardrail.beside import THREADS
from tests.support.models import ask, chained, said
from tests.support.scripted_upstream import until

HANGS = """
import pathlib
import time
HERE = pathlib.Path(__file__).parent
def own(text, about):
    if "stuck" not in text:
        return False
    with (HERE / "begun").open("a") as file:
        file.write(".")
    while not (HERE / "go").exists():
        time.sleep(0.005)
    return False
"""
STUCK = [{"role": "user", "content": "stuck"}]
FINE = [{"role": "user", "content": "fine"}]


def chain(**more: Any) -> list[Any]:
    """Return a chain with a check that hangs on some texts."""
    check = {"kind": "python", "source": "own.py:own"}
    return [{"guardrail": {"id": "g", "input": [check], "timeout_ms": 150, **more}}]


@pytest.mark.bug("K13", "K23")
@pytest.mark.contract("W-GRD-11", "T-194")
@pytest.mark.fault("L-16")
async def test_calls_that_hang_keep_a_bounded_number_of_threads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once none is left a call fails at once; when they return all is as before. Nothing else shares the threads."""
    files = {"own.py": HANGS}
    database = {"database": f"sqlite:{tmp_path / 'gateway.db'}"}

    def kept(config: dict[str, Any]) -> None:
        config["stores"] = database

    async with chained(tmp_path, chain(), files=files, config=kept, m1=[said()]) as (
        gateway,
        models,
    ):
        assert (await gateway.post(ask(messages=FINE))).status_code == 200
        many = (gateway.post(ask(messages=STUCK)) for _ in range(THREADS + 12))
        first = await asyncio.gather(*many)
        assert gateway.count("gateway_guardrail_stuck_threads", guardrail="g") == THREADS
        began = time.perf_counter()
        later = [await gateway.post(ask(messages=FINE)) for _ in range(10)]
        took = time.perf_counter() - began
        assert (tmp_path / "begun").read_text() == "." * THREADS
        assert "calls hang and keep all of its threads" in caplog.text

        (tmp_path / "go").touch()
        await until(lambda: not gateway.count("gateway_guardrail_stuck_threads", guardrail="g"))
        last = await gateway.post(ask(messages=FINE))

    codes = {answer.json()["error"]["code"] for answer in (*first, *later)}
    assert codes == {"guardrail_failed"}
    assert took < 10 * 0.15
    assert last.status_code == 200
    assert models.n() == 2


@pytest.mark.contract("W-GRD-11")
async def test_calls_that_hang_pass_where_failures_are_allowed(tmp_path: Path) -> None:
    options = chain(on_check_error="allow")
    async with chained(tmp_path, options, files={"own.py": HANGS}, m1=[said()]) as (
        gateway,
        models,
    ):
        many = (gateway.post(ask(messages=STUCK)) for _ in range(THREADS + 4))
        answers = await asyncio.gather(*many)
        (tmp_path / "go").touch()

    assert {answer.status_code for answer in answers} == {200}
    assert all("could not be asked" in each.headers["x-gateway-warnings"] for each in answers)
    assert models.n() == THREADS + 4


async def test_more_calls_than_threads_wait_for_one_another(tmp_path: Path) -> None:
    slow = "import time\ndef own(text, about):\n    time.sleep(0.02)\n    return False\n"
    options = chain(timeout_ms=5000)
    async with chained(tmp_path, options, files={"own.py": slow}, m1=[said()]) as (gateway, _):
        many = (gateway.post(ask(messages=FINE)) for _ in range(THREADS * 3))
        answers = await asyncio.gather(*many)
        stuck = gateway.count("gateway_guardrail_stuck_threads")

    assert {answer.status_code for answer in answers} == {200}
    assert stuck == 0
