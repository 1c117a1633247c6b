"""What clients of every format must hear of a recorded answer: what the provider said, in their own format (K35)."""

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2

from tests.support.exchanges import Exchange
from tests.support.heard import Heard
from tests.support.recordings import is_object

Json = dict[str, Any]

FINISHES: Mapping[str, str] = {
    "stop": "stop",
    "end_turn": "stop",
    "STOP": "stop",
    "COMPLETE": "stop",
    "completed": "stop",
    "stop_sequence": "stop",
    "STOP_SEQUENCE": "stop",
    "eos": "stop",
    "pause_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "incomplete:max_output_tokens": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "TOOL_CALL": "tool_calls",
    "UNEXPECTED_TOOL_CALL": "tool_calls",
    "refusal": "content_filter",
    "content_filter": "content_filter",
    "SAFETY": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "guardrail_intervened": "content_filter",
}
"""What each provider's word means, in the words of chat completions."""
_DIGITS = re.compile(r"\[hidden\]|0{6,}")
"""Numbers of accounts, which are hidden."""
PASSED = {400, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 529}


def assert_error_told(answer: httpx2.Response, exchange: Exchange, caller: str) -> None:
    """Check the error of a plain answer: the provider's words, in the caller's format."""
    said = answer.json()
    expected = exchange.expect["error"]
    assert answer.headers["x-request-id"]
    if caller == "messages":
        assert said["type"] == "error"
        assert said["request_id"] == answer.headers["request-id"]
        assert said["error"]["type"].endswith("_error")
    error = said["error"]
    if answer.status_code == 502 and exchange.status not in PASSED | {401, 402, 403}:
        assert error["message"]
        return
    if is_credential(exchange):
        assert answer.status_code == 502
        return
    assert answer.status_code == exchange.status
    message = _DIGITS.sub("", error["message"]).removeprefix("prompt is too long: ")
    wanted = _DIGITS.sub("", expected["message"]).removeprefix("prompt is too long: ")
    assert message == wanted


def is_credential(exchange: Exchange) -> bool:
    """Tell whether the provider refused the operator's own key."""
    said = json.dumps(exchange.raw["response"])
    return exchange.status in {401, 402, 403} or "API key not valid" in said or "API key p" in said


def assert_same(heard: Heard, exchange: Exchange, caller: str) -> None:
    """Compare what a client heard with what the provider said."""
    expect = exchange.expect
    assert heard.error is None
    assert heard.complete
    plan = expect.get("tool_plan") or ""
    refusal = expect.get("refusal") or ""
    if caller == "messages":
        assert heard.text == plan + (expect.get("text") or "") + refusal
    else:
        assert heard.text == plan + (expect.get("text") or "")
        assert "refusal" not in expect or heard.refusal == refusal
    assert [(c.name, c.arguments) for c in heard.calls] == [
        (c["name"], arguments_of(c, caller)) for c in expect.get("tool_calls") or ()
    ]
    if expect.get("finish_reason") is not None or heard.calls:
        words = {finish_of(exchange)}
        if refusal or heard.refusal:
            words |= {
                "content_filter",
                "stop",
            }  # a refusal is an end of its own in one format, a part in another
        assert FINISHES[heard.finish or "stop"] in words
    assert_counts(heard, expect.get("usage") or {}, exchange, caller)


def arguments_of(call: Mapping[str, Any], caller: str) -> object:
    """Return what a client gets of a call's arguments: Messages has nothing but objects."""
    if caller != "messages":
        return call["input"] if call.get("custom") else call["arguments"]
    if call.get("custom"):
        return {"input": call["input"]}
    return call["arguments"] if is_object(call["arguments"]) else Json()


def finish_of(exchange: Exchange) -> str:
    """Return what the end was: a word of the provider, but for calls that it does not tell of."""
    word = FINISHES[exchange.expect.get("finish_reason") or "stop"]
    calls = exchange.expect.get("tool_calls")
    if calls and word == "stop":
        return "tool_calls"
    return word


def assert_counts(heard: Heard, usage: Mapping[str, Any], exchange: Exchange, caller: str) -> None:
    if "input" in usage:
        assert heard.input == usage.get("input_total", usage["input"])
    if "output" in usage:
        output = usage.get("output_total", usage["output"])
        if exchange.provider == "xai" and exchange.kind == "chat" and caller != "chat":
            output += (
                usage.get("reasoning") or 0
            )  # counted beside the output; a relay leaves it there
        assert heard.output == output
    if usage.get("cached") and usage["cached"] <= usage["input"]:
        assert heard.cached == usage["cached"]
