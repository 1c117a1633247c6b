"""Guardrails: what they see, what they do, and when they let nothing pass (W-GRD-1 to 11)."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigError
from tests.support.models import ask, chained, said

Json = dict[str, Any]
SSN: Json = {"kind": "regex", "pattern": r"\d{3}-\d{2}-\d{4}", "label": "ssn"}


def user(text: str) -> list[Json]:
    """Return a history of one message."""
    return [{"role": "user", "content": text}]


def guard(**options: Any) -> list[Json]:
    """Return a chain of one guardrail."""
    return [{"guardrail": {"id": "pii", **options}}]


@pytest.mark.contract("W-GRD-3", "W-GRD-6", "T-190")
async def test_a_request_that_is_blocked_calls_no_model(tmp_path: Path) -> None:
    async with chained(tmp_path, guard(input=[SSN]), m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask(messages=user("my number is 123-45-6789")))

    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error["code"] == "guardrail_violation"
    assert error["gateway"]["details"] == {"phase": "input", "reason": "ssn", "guardrail": "pii"}
    assert answer.headers["x-should-retry"] == "false"
    assert "123-45" not in answer.text
    assert models.n() == 0


@pytest.mark.contract("W-GRD-1", "T-191")
async def test_the_users_last_message_alone_can_be_looked_at(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "my"}, {"type": "text", "text": "123-45-6789"}]
    older = [
        {"role": "user", "content": "123-45-6789"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "thanks"},
    ]
    chain = guard(input=[SSN], texts="last_user")
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, models):
        blocked = await gateway.post(ask(messages=[{"role": "user", "content": parts}]))
        passed = await gateway.post(ask(messages=older))

    assert (blocked.status_code, passed.status_code) == (400, 200)
    assert models.n() == 1


@pytest.mark.contract("W-GRD-2", "W-GRD-10", "T-192")
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_blocked_does_not_leave_and_is_paid(
    stream: bool, tmp_path: Path
) -> None:
    async with chained(tmp_path, guard(output=[SSN]), m1=[said("it is 123-45-6789")]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask(stream=stream))

        assert gateway.count("gateway_tokens_total", type="output") == 2

    assert answer.status_code == 400
    assert answer.json()["error"]["gateway"]["details"]["phase"] == "output"
    assert "123-45" not in answer.text
    assert models.n() == 1


@pytest.mark.bug("K26")
async def test_what_is_redacted_is_sent_without_it(tmp_path: Path) -> None:
    redact = {**SSN, "action": "redact"}
    chain = guard(input=[redact], output=[redact])
    async with chained(tmp_path, chain, m1=[said("yours is 123-45-6789!")]) as (gateway, models):
        answer = await gateway.post(ask(messages=user("mine: 123-45-6789, ok?")))

    assert models.asked[0].body["messages"][-1]["content"] == "mine: [ssn], ok?"
    assert answer.json()["choices"][0]["message"]["content"] == "yours is [ssn]!"


@pytest.mark.bug("K26")
@pytest.mark.contract("W-GRD-9")
@pytest.mark.parametrize(
    ("action", "heard"),
    [("redact", "a b [ssn] c d e"), ("flag", "a b 123-45-6789 c d e")],
)
async def test_a_stream_under_a_window_is_judged_before_it_leaves(
    action: str, heard: str, tmp_path: Path
) -> None:
    check = {**SSN, "action": action, "longest": 12}
    chain = guard(output=[check], stream_mode="window")
    text = "a b 123-45-6789 c d e"
    async with chained(tmp_path, chain, m1=[said(text)]) as (gateway, _):
        answer = await gateway.post(ask(stream=True))

    events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    deltas = [c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]]
    assert "".join(deltas) == heard


@pytest.mark.contract("W-GRD-9")
async def test_a_stream_that_is_blocked_ends_honestly(tmp_path: Path) -> None:
    chain = guard(output=[{**SSN, "longest": 12}], stream_mode="window")
    text = "well then it is 123-45-6789 as you know"
    async with chained(tmp_path, chain, m1=[said(text)]) as (gateway, _):
        answer = await gateway.post(ask(stream=True))

    assert "guardrail_violation" in answer.text
    assert "123" not in answer.text
    assert "[DONE]" not in answer.text


@pytest.mark.contract("W-GRD-8", "R-16")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input": [{"kind": "ghost"}]}, "there is no check"),
        ({"input": [{"kind": "regex", "pattern": "(a"}]}, "no pattern"),
        ({"input": [{"kind": "regex"}]}, "pattern"),
        ({"input": [{"kind": "words", "words": ["x"], "colour": 1}]}, "colour"),
    ],
)
async def test_mistakes_of_checks_stop_the_start(options: Json, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        async with chained(tmp_path, guard(**options), m1=[said()]):
            pass
