"""Guardrails over the wire, in every format that callers speak, plain and streamed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.guarded import heard
from tests.support.models import chained, said

Json = dict[str, Any]
SSN: Json = {"kind": "regex", "pattern": r"\d{3}-\d{2}-\d{4}", "label": "ssn", "longest": 12}
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "anthropic_messages": "/v1/messages",
    "openai_responses": "/v1/responses",
}
HOSTILE = "it is 123-45-6789 so there"


def chat_only(config: Json) -> None:
    """Put a kind of provider behind the models that speaks chat alone."""
    config["providers"]["up"]["kind"] = "deepseek"


def request(dialect: str, text: str, *, stream: bool) -> Json:
    """Ask in a format."""
    message = [{"role": "user", "content": text}]
    if dialect == "openai_responses":
        return {"model": "m1", "input": message, "stream": stream, "store": False}
    body: Json = {"model": "m1", "messages": message, "stream": stream}
    return {**body, "max_tokens": 99} if dialect == "anthropic_messages" else body


def code_of(dialect: str, body: Json) -> str:
    """Return the machine code of an error, wherever the format has it."""
    error: Json = body.get("response", body)["error"]
    found: str = error.get("code") or error.get("gateway", {}).get("code", "")
    return found


@pytest.mark.threat("T-32")
@pytest.mark.contract("W-GRD-3", "W-GRD-6")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", PATHS)
async def test_a_request_is_refused_in_every_format(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    chain = [{"guardrail": {"input": [SSN]}}]
    async with chained(tmp_path, chain, config=chat_only, m1=[said()]) as (gateway, models):
        answer = await gateway.client.post(
            PATHS[dialect], json=request(dialect, HOSTILE, stream=stream)
        )

    assert answer.status_code == 400
    assert answer.headers["x-should-retry"] == "false"
    assert "guardrail_violation" in answer.text
    assert "123-45" not in answer.text
    assert models.n() == 0


@pytest.mark.fault("S-14")
@pytest.mark.contract("W-GRD-2", "W-GRD-9")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", PATHS)
async def test_an_answer_is_refused_as_a_whole_in_every_format(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    chain = [{"guardrail": {"output": [SSN]}}]
    async with chained(tmp_path, chain, config=chat_only, m1=[said(HOSTILE)]) as (gateway, _):
        answer = await gateway.client.post(
            PATHS[dialect], json=request(dialect, "hi", stream=stream)
        )

    assert answer.status_code == 400
    assert "guardrail_violation" in answer.text
    assert "it is" not in answer.text


@pytest.mark.fault("S-15")
@pytest.mark.contract("W-GRD-9")
@pytest.mark.parametrize("dialect", PATHS)
async def test_a_stream_is_ended_honestly_in_every_format(dialect: str, tmp_path: Path) -> None:
    chain = [{"guardrail": {"id": "g", "output": [SSN], "stream_mode": "window"}}]
    words = "well as you may know by now, that is what they said to me"
    async with chained(tmp_path, chain, config=chat_only, m1=[said(f"{words} {HOSTILE}")]) as (
        gateway,
        _,
    ):
        answer = await gateway.client.post(PATHS[dialect], json=request(dialect, "hi", stream=True))

        judged = gateway.count("gateway_guardrail_stream_chars_total", stage="judged")
        sent = gateway.count("gateway_guardrail_stream_chars_total", stage="sent")

    text, whole = heard(dialect, _good(answer.text).encode())
    assert f"{words} it is ".startswith(text)
    assert text
    assert whole == []
    assert "guardrail_violation" in answer.text
    assert "123-" not in answer.text  # ids and times have digits of their own
    assert "[DONE]" not in answer.text
    assert "message_stop" not in answer.text
    assert "response.completed" not in answer.text
    assert 0 < sent <= judged


def _good(stream: str) -> str:
    """Leave out the event that ends a stream with an error."""
    events = stream.split("\n\n")
    return "\n\n".join(each for each in events if "guardrail_violation" not in each)


@pytest.mark.bug("K26")
@pytest.mark.parametrize("mode", ["buffer", "window"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", PATHS)
async def test_what_is_redacted_is_redacted_wherever_a_format_says_it(
    dialect: str, stream: bool, mode: str, tmp_path: Path
) -> None:
    check = {**SSN, "action": "redact"}
    chain = [{"guardrail": {"input": [check], "output": [check], "stream_mode": mode}}]
    async with chained(tmp_path, chain, config=chat_only, m1=[said(HOSTILE)]) as (gateway, models):
        answer = await gateway.client.post(
            PATHS[dialect], json=request(dialect, HOSTILE, stream=stream)
        )

    assert answer.status_code == 200
    assert models.asked[0].body["messages"][-1]["content"] == "it is [ssn] so there"
    assert "123-45" not in answer.text
    if stream:
        text, whole = heard(dialect, answer.content)
        assert text == "it is [ssn] so there"
        assert set(whole) <= {text}
    else:
        assert json.dumps("it is [ssn] so there") in answer.text
