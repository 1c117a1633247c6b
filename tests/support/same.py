"""What clients of every format must hear of a recorded answer: what the provider said, in their own format (K35)."""

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

import httpx2

from tests.support.exchanges import Exchange
from tests.support.heard import READERS, Heard
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
    "load": "stop",
    "pause_turn": "stop",
    "compaction": "stop",
    "length": "length",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "incomplete:max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "insufficient_system_resource": "length",
    "network_error": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "TOOL_CALL": "tool_calls",
    "UNEXPECTED_TOOL_CALL": "tool_calls",
    "function_call": "tool_calls",
    "refusal": "content_filter",
    "content_filter": "content_filter",
    "SAFETY": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "incomplete:content_filter": "content_filter",
    "ERROR_TOXIC": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "LANGUAGE": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}
"""What each provider's word means, in the words of chat completions; of words not here nothing is known."""
FAILURES = {
    "ERROR",
    "ERROR_LIMIT",
    "TIMEOUT",
    "error",
    "failed",
    "malformed_model_output",
    "malformed_tool_use",
}
"""Words of providers that say that there is no answer, whatever came before."""
ERROR_TYPES = {
    "api_error", "authentication_error", "billing_error", "conflict_error", "invalid_request_error", "not_found_error",
    "overloaded_error", "permission_error", "rate_limit_error", "request_too_large", "timeout_error",
}  # fmt: skip
"""Types of errors that clients of Messages know."""
PASSED = {400, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 529}


def assert_error_told(answer: httpx2.Response, exchange: Exchange, caller: str) -> None:
    """Check the error of a plain answer: the provider's words, in the caller's format."""
    said = answer.json()
    expected: Json = exchange.expect.get("error") or {}
    assert answer.headers["x-request-id"]
    if caller == "messages":
        assert said["type"] == "error"
        assert said["request_id"] == answer.headers["request-id"]
        assert said["error"]["type"] in ERROR_TYPES
    error = said["error"]
    if answer.status_code == 502 and exchange.status not in PASSED | {401, 402, 403}:
        assert error["message"]
        return
    if is_credential(exchange):
        assert answer.status_code == 502
        return
    assert answer.status_code == exchange.status
    assert error["message"]
    if not is_page(exchange):
        assert says(error["message"], expected)


class Recorded(Protocol):
    """A recording of any kind, with its bytes."""

    @property
    def raw(self) -> Json:
        """The recording itself."""
        ...

    @property
    def body(self) -> bytes:
        """What the provider sent."""
        ...

    @property
    def status(self) -> int:
        """The status that it sent."""
        ...


def is_page(exchange: Recorded) -> bool:
    """Tell whether an error is the page of a proxy, whose words are not passed on."""
    is_text = exchange.raw["response"]["encoding"] == "text"
    return is_text and (exchange.status >= 500 or exchange.body.lstrip()[:1] == b"<")


def says(message: str, expected: Mapping[str, Any]) -> bool:
    """Tell whether a message is the provider's, but for names of accounts and what Messages begins it with."""
    if not expected.get("message"):
        return True
    told, wanted = (
        text.removeprefix("prompt is too long: ") for text in (message, expected["message"])
    )
    pattern = r"[\w*-]*".join(map(re.escape, told.split("[hidden]")))
    return re.fullmatch(pattern, wanted, re.DOTALL) is not None


def limited(said: Mapping[str, Any], wanted: Mapping[str, Any]) -> Json:
    """Return of what was said that of which something is wanted; of what a recording does not tell nothing is known."""
    found: Json = {}
    for name, value in wanted.items():
        own = said.get(name)
        found[name] = limited(own, value) if is_object(value) and is_object(own) else own
    return found


def calls_of(expect: Mapping[str, Any], *, ids: bool = True) -> list[Json]:
    """Return the calls that a recording tells, those of custom tools too, as a name and arguments, with ids perhaps."""
    return [
        {
            "name": call["name"],
            "arguments": call["input"] if call.get("custom") else call["arguments"],
            **({"id": call["id"]} if ids and "id" in call else {}),
        }
        for call in expect.get("tool_calls") or ()
    ]


class Expecting(Protocol):
    """A recording of any kind of exchange."""

    @property
    def expect(self) -> Json:
        """What the provider said."""
        ...


def has_failed(exchange: Expecting) -> bool:
    """Tell whether a provider began well and said later that there is no answer."""
    expect = exchange.expect
    return bool(expect.get("error")) or expect.get("finish_reason") in FAILURES


def assert_failure_told(answer: httpx2.Response, exchange: Exchange, caller: str) -> None:
    """Check that a client hears of an answer that failed under way: an error, and no end."""
    heard = Heard()
    if answer.status_code >= 400:
        error, complete = answer.json()["error"], False
    else:
        heard = READERS[caller](answer.content, stream=exchange.stream)
        error, complete = heard.error, heard.complete
    if exchange.kind == caller and not error:
        assert heard.finish in FAILURES  # a relay says it in the provider's own words
        return
    assert error
    assert error["message"]
    assert not complete
    said: Json = exchange.expect.get("error") or {}
    assert says(error["message"], said)


def is_credential(exchange: Recorded) -> bool:
    """Tell whether the provider refused the operator's own key."""
    said = json.dumps(exchange.raw["response"])
    return exchange.status in {401, 402, 403} or "API key not valid" in said or "API key p" in said


def assert_same(heard: Heard, exchange: Exchange, caller: str) -> None:
    """Compare what a client heard with what the provider said."""
    expect = exchange.expect
    assert heard.error is None
    assert heard.complete
    plan = expect.get("tool_plan") or ""
    relayed = exchange.kind == caller
    refusal = expect.get("refusal") or ""
    text = plan + (expect.get("text") or "") + (refusal if caller == "messages" else "")
    assert heard.text in {text, text + spoken(exchange)}
    if caller != "messages":
        assert "refusal" not in expect or heard.refusal == refusal
    assert [(c.name, c.arguments) for c in heard.calls] == [
        (c["name"], arguments_of(c, caller, stream=exchange.stream))
        for c in expect.get("tool_calls") or ()
    ]
    if expect.get("finish_reason") is not None or heard.calls:
        words = finishes_of(exchange, relayed=relayed)
        if refusal or heard.refusal:
            words |= {
                "content_filter",
                "stop",
            }  # a refusal is an end of its own in one format, a part in another
        assert not words or FINISHES.get(heard.finish or "stop", heard.finish) in words
    assert_counts(heard, expect.get("usage") or {}, exchange, relayed=relayed)


def spoken(exchange: Exchange) -> str:
    """Return what an answer says aloud: told as text where the format has no sound."""
    found = re.findall(
        r'"transcript":\s*("(?:[^"\\]|\\.)*")', exchange.body.decode(errors="replace")
    )
    return "".join(json.loads(each) for each in found)


def arguments_of(call: Mapping[str, Any], caller: str, *, stream: bool = False) -> object:
    """Return what a client gets of a call's arguments: a whole answer of Messages has nothing but objects."""
    if caller != "messages":
        return call["input"] if call.get("custom") else call["arguments"]
    if call.get("custom"):
        return {"input": call["input"]}
    return call["arguments"] if stream or is_object(call["arguments"]) else Json()


def finishes_of(exchange: Exchange, *, relayed: bool) -> set[str]:
    """Return what the end may be: the provider's word, but for calls that it does not tell of; empty: anything."""
    native = exchange.expect.get("finish_reason") or "stop"
    word = FINISHES.get(native)
    if word is None:
        return set()
    if exchange.expect.get("tool_calls") and word == "stop":
        return {"tool_calls", *([word] if relayed else ())}
    return {word}


def assert_counts(
    heard: Heard, usage: Mapping[str, Any], exchange: Exchange, *, relayed: bool
) -> None:
    if "input" in usage:
        assert heard.input == usage.get("input_total", usage["input"])
    if "output" in usage:
        output = usage.get("output_total", usage["output"])
        if exchange.kind == "chat" and not relayed and usage.get("total"):
            # What was thought may be counted beside the output, and in the total; a relay leaves it there.
            output = max(output, usage["total"] - usage.get("input_total", usage["input"]))
        assert heard.output == output
    if usage.get("cached") and usage["cached"] <= usage["input"]:
        assert heard.cached == usage["cached"]
