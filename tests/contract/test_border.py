"""Plug-ins that go wrong: told at the start where it can be, and never more than one request's trouble."""

from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigError
from tests.support.models import ask, chained, said, texts
from tests.support.scripted_upstream import until

HEAD = """
from gateway.core.errors import GatewayError
from gateway.core.needs import Needs
from gateway.core.reply import Whole
from gateway.middleware.base import Middleware
"""

LATE = {
    "dies": ("async def before_model(self, call): raise SystemExit(3)", "SystemExit"),
    "quotes": (
        "async def before_model(self, call): raise ValueError(call.get('messages'))",
        "ValueError",
    ),
    "unknown code": (
        "async def before_model(self, call): raise GatewayError('too_long')",
        "ValueError",
    ),
    "no reply": ("async def before_model(self, call): return 'text'", "returned str"),
    "forgets": ("async def wrap_model(self, call, proceed): pass", "returned NoneType"),
    "vetoes": ("async def before_attempt(self, attempt): raise KeyError('x')", "KeyError"),
}
EARLY = {
    "a forgotten super": (
        "def __init__(self, options, build): pass\n    async def before_model(self, call): ...",
        "super().__init__",
    ),
    "a failure": ("def __init__(self, options, build): raise KeyError('x')", "KeyError"),
    "a wrong __init__": ("def __init__(self): pass", "TypeError"),
    "options of a wrong kind": (
        "options = {}\n    async def before_model(self, call): ...",
        "subclass of",
    ),
    "needs of a wrong kind": ("needs = {}\n    async def before_model(self, call): ...", "Needs"),
    "a plain hook": ("def before_model(self, call): ...", "`async def`"),
    "an async finish": ("async def finish(self, run): ...", "plain `def`"),
    "a plain attempt hook": ("def before_attempt(self, attempt): ...", "`async def`"),
    "too few arguments": ("async def after_model(self, call): ...", "2 arguments"),
    "a misspelt hook": ("async def befor_model(self, call): ...", "did you mean before_model"),
    "an unknown level": ("async def before_request_model(self, call): ...", "is no hook"),
    "a reserved name": (
        "async def after_hours(self): ...\n    async def before_model(self, call): ...",
        "underscore",
    ),
    "no hook at all": ("pass", "has no hook"),
    "two forms": (
        "async def wrap_model(self, call, proceed): ...\n    async def before_model(self, call): ...",
        "choose one form",
    ),
}


def plugin(body: str) -> dict[str, str]:
    return {"mine.py": f"{HEAD}\nclass Mine(Middleware):\n    {body}\n"}


CHAIN = [{"limits": {"concurrent": 1}}, {"plugin": "mine.py:Mine"}]


@pytest.mark.fault("L-14")
@pytest.mark.bug("K28")
@pytest.mark.parametrize("name", LATE)
async def test_a_bad_hook_fails_its_request_alone_and_is_named_in_the_log(
    tmp_path: Path, name: str
) -> None:
    body, told = LATE[name]
    async with chained(tmp_path, CHAIN, files=plugin(body), m1=[said()]) as (gateway, _):
        answers = [await gateway.post(ask()) for _ in range(3)]
        await until(lambda: len(gateway.records()) == 3)
        records = gateway.records()

    assert [answer.status_code for answer in answers] == [500] * 3
    assert {answer.json()["error"]["code"] for answer in answers} == {"internal"}
    assert len(records) == 3
    assert all(told in record["detail"] and "Mine" in record["detail"] for record in records)
    assert "hi" not in str(records[0]["detail"]).split(" at ")[0]


@pytest.mark.fault("L-14")
@pytest.mark.parametrize(
    "hook", ["def finish(self, run)", "def after_attempt(self, attempt, charge)"]
)
async def test_a_hook_behind_the_answer_that_raises_spoils_nothing(
    tmp_path: Path, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = plugin(f"{hook}: raise ValueError('secret-42')")
    async with chained(tmp_path, CHAIN, files=files, m1=[said()]) as (gateway, _):
        plain = [await gateway.post(ask()) for _ in range(2)]
        streamed = await gateway.post(ask(stream=True))
        await until(lambda: len(gateway.records()) == 3)

    assert [answer.status_code for answer in plain] == [200, 200]
    assert texts(streamed.text) == "hello"
    assert "Mine: ValueError at " in caplog.text
    assert "secret-42" not in caplog.text


@pytest.mark.parametrize("name", EARLY)
async def test_a_bad_class_is_refused_with_its_place_and_a_cure(tmp_path: Path, name: str) -> None:
    body, words = EARLY[name]
    with pytest.raises(ConfigError) as raised:
        async with chained(tmp_path, CHAIN, files=plugin(body), m1=[said()]):
            pass

    assert words in str(raised.value)
    assert "gateway.yaml:1:" in str(raised.value)


@pytest.mark.parametrize(
    "body",
    [
        "async def before_model(self, call): call.set('user', 'x'); call.run.warn('w'); call.run.headers.append((b'x-a', b'1'))",
        "async def after_model(self, call, reply): call.run.warn('w'); return call.answer('no')",
    ],
)
async def test_nothing_that_a_shadowed_layer_does_counts(tmp_path: Path, body: str) -> None:
    chain = [{"plugin": "mine.py:Mine", "mode": "shadow"}]
    async with chained(tmp_path, chain, files=plugin(body), m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert answer.json()["choices"][0]["message"]["content"] == "hello"
    assert "user" not in models.asked[0].body
    assert {"x-a", "x-gateway-warnings"}.isdisjoint(answer.headers)


async def test_a_wrap_cannot_be_shadowed_and_says_so(tmp_path: Path) -> None:
    chain: list[Any] = [{"plugin": "mine.py:Mine", "mode": "shadow"}]
    files = plugin("async def wrap_model(self, call, proceed): return await proceed(call)")
    with pytest.raises(ConfigError, match="cannot be taken back"):
        async with chained(tmp_path, chain, files=files, m1=[said()]):
            pass


async def test_headers_of_an_answer_may_be_a_list(tmp_path: Path) -> None:
    body = "async def after_model(self, call, reply): return reply._replace(headers=[*reply.headers, (b'x-mine', b'1')])"
    async with chained(tmp_path, CHAIN, files=plugin(body), m1=[said()]) as (gateway, _):
        answer = await gateway.post(ask())

    assert (answer.status_code, answer.headers["x-mine"]) == (200, "1")


@pytest.mark.contract("G-13")
@pytest.mark.parametrize(
    "hook",
    [
        "async def before_model(self, call): await asyncio.sleep(30)",
        "async def wrap_model(self, call, proceed): await asyncio.sleep(30)",
        "async def before_attempt(self, attempt): await asyncio.sleep(30)",
    ],
)
async def test_a_hook_that_hangs_ends_at_the_deadline(tmp_path: Path, hook: str) -> None:
    files = {"mine.py": "import asyncio\n" + plugin(hook)["mine.py"]}
    async with chained(tmp_path, CHAIN, files=files, m1=[said()]) as (gateway, _):
        answer = await gateway.post(ask(), x_gateway_timeout_ms="300")

    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
