"""Whole answers: checked by a relay, made by the gateway, read and written in every state they can end in."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Finish
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.message import Audio, Citation, Image, Opaque, Prompt, Refusal, Text, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.messages.relay import AnthropicMessages
from gateway.dialects.messages.sides import MessagesCaller, MessagesTarget
from gateway.dialects.sides import Told
from tests.support.grammar_messages import breaches

Json = dict[str, Any]
DIALECT = AnthropicMessages()
CALLER = MessagesCaller()
TARGET = MessagesTarget()
RULES = StreamRules(hide_usage=False, done_required=True)
TOLD = Told("req_1", "asked", 0, Prompt("anthropic_messages", ()))
TEXT: Json = {"type": "text", "text": "a"}
CALL: Json = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}


def body(*content: Json, **fields: Any) -> bytes:
    base: Json = {"id": "m", "model": "c", "stop_reason": "end_turn", "content": list(content)}
    return json.dumps(base | fields).encode()


def checked(raw: bytes) -> Usage | None:
    return DIALECT.read_answer("messages", raw)


READS: list[Any] = [TARGET.read_whole, checked]


@pytest.mark.parametrize("reads", READS)
@pytest.mark.parametrize(
    "wrong",
    [b"", b"<html>", b"[]", b"{}", b'{"content": null}', b'{"content": [1]}', b'{"x": "\xff"}'],
)
def test_what_is_no_answer_is_not_taken_for_one(reads: Any, wrong: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        reads(wrong)
    assert "upstream_invalid_response" == caught.value.code


@pytest.mark.parametrize("reads", READS)
def test_an_error_under_a_success_status_is_told(reads: Any) -> None:
    with pytest.raises(AnswerIsError) as caught:
        reads(b'{"type": "error", "error": {"type": "api_error", "message": "no"}}')
    assert ("api_error", "no") == (caught.value.error.type, caught.value.error.message)


@pytest.mark.bug("K35", "B012")
@pytest.mark.parametrize(
    ("native", "content", "finish"),
    [
        ("end_turn", (TEXT,), "stop"),
        ("end_turn", (), "stop"),
        ("end_turn", (CALL,), "tool_calls"),
        ("tool_use", (CALL,), "tool_calls"),
        ("tool_use", (TEXT,), "stop"),
        ("max_tokens", (CALL,), "length"),
        ("model_context_window_exceeded", (TEXT,), "length"),
        ("stop_sequence", (TEXT,), "stop_sequence"),
        ("refusal", (), "refusal"),
        ("pause_turn", (TEXT,), "pause"),
        ("something_new", (TEXT,), "stop"),
    ],
)
def test_an_end_says_what_the_answer_holds(
    native: str, content: tuple[Json, ...], finish: Finish
) -> None:
    (choice,) = TARGET.read_whole(body(*content, stop_reason=native)).choices

    assert (finish, native) == (choice.finish, choice.native)


@pytest.mark.bug("K35")
def test_how_a_refusal_is_explained_is_its_words() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    raw = body(stop_reason="refusal", stop_details=details)
    answer = TARGET.read_whole(raw)

    assert (Refusal("No."),) == answer.choices[0].parts
    written = json.loads(CALLER.write_answer(answer, TOLD, Notes()))
    assert ([], details, "refusal") == (
        written["content"], written["stop_details"], written["stop_reason"],
    )  # fmt: skip


def test_words_of_a_refusal_of_another_format_are_text() -> None:
    answer = Answer("openai_chat", "i", "m", (Choice(0, (Refusal("No."),), "refusal"),))
    written = json.loads(CALLER.write_answer(answer, TOLD, Notes()))

    assert [{"type": "text", "text": "No."}] == written["content"]


def test_what_only_this_format_knows_stays() -> None:
    beside = {"service_tier": "standard", "cache_creation": {"ephemeral_5m_input_tokens": 1}}
    usage = {"input_tokens": 1, "output_tokens": 2, **beside}
    raw = body(TEXT, usage=usage, container={"id": "c"}, stop_sequence=None)
    written = json.loads(CALLER.write_answer(TARGET.read_whole(raw), TOLD, Notes()))

    assert {"id": "c"} == written["container"]
    assert usage == written["usage"]


def test_what_only_another_format_knows_is_left_out() -> None:
    extra = {"system_fingerprint": "fp", "usage": {"x": 1}}
    answer = Answer("openai_chat", "", "", (Choice(0, (Text("a"),), "stop"),), extra=extra)
    written = json.loads(CALLER.write_answer(answer, TOLD, Notes()))

    assert written == {
        "id": "msg_req_1",
        "type": "message",
        "role": "assistant",
        "model": "asked",
        "content": [TEXT],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


@pytest.mark.bug("K16", "K07")
def test_counts_are_told_apart() -> None:
    usage = Usage(100, 20, cached=70, cache_write=10, reasoning=5)
    answer = Answer("openai_chat", "i", "m", (Choice(0, (), "stop"),), usage)
    written = json.loads(CALLER.write_answer(answer, TOLD, Notes()))["usage"]

    assert written == {
        "input_tokens": 20,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 70,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 5},
    }


@pytest.mark.bug("K34")
def test_what_cannot_be_told_is_named() -> None:
    notes = Notes()
    parts = (
        Text("a", citations=(Citation("openai_responses", {"type": "url_citation"}),)),
        Opaque("openai_responses", "web_search_call", {}),
        Image(url="https://example.com"),
        Audio(id="a", transcript="heard"),
        ToolCall("c", "f", '{"a": '),
    )
    choices = (Choice(0, parts, "length", logprobs=({},)), Choice(1, (), "stop"))
    written = json.loads(CALLER.write_answer(Answer("x", "i", "m", choices), TOLD, notes))

    assert 7 == len(notes.warnings)
    assert ["text", "text", "tool_use"] == [block["type"] for block in written["content"]]
    assert {} == written["content"][-1]["input"]


def test_a_call_without_an_id_gets_one() -> None:
    calls = (ToolCall("", "f"), ToolCall("", "g"))
    answer = Answer("ollama", "i", "m", (Choice(0, calls, "tool_calls"),))
    written = json.loads(CALLER.write_answer(answer, TOLD, Notes()))

    assert 2 == len({block["id"] for block in written["content"]})


def test_a_text_of_the_gateway_is_an_answer() -> None:
    whole = DIALECT.answer("messages", "m", "Hello", "req_1")
    (choice,) = TARGET.read_whole(whole.body).choices

    assert (Text("Hello"),) == choice.parts
    assert Usage(0, 0) == DIALECT.read_answer("messages", whole.body)
    with pytest.raises(GatewayError):
        DIALECT.answer("count_tokens", "m", "Hello", "req_1")


@pytest.mark.bug("K37")
@pytest.mark.parametrize("began", [b"", b": c\n\n", b"data: nonsense\n\n"])
def test_a_stream_that_never_began_is_cut_short_whole(began: bytes) -> None:
    end = DIALECT.cut_short("messages", began, (), "no more")

    assert b"no more" in end
    assert ["a message without id or model"] == breaches(end)


def test_an_answer_without_content_is_no_stream() -> None:
    with pytest.raises(UpstreamError):
        DIALECT.synthesise("messages", b'{"id": "m"}', include_usage=False)


@pytest.mark.bug("K37")
def test_an_answer_with_everything_becomes_a_stream() -> None:
    content: tuple[Json, ...] = (
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "a", "citations": [{"type": "char_location"}]},
        {"type": "server_tool_use", "id": "s", "name": "w", "input": {"q": 1}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        CALL,
    )
    raw = body(*content, stop_reason="tool_use", usage={"input_tokens": 1, "output_tokens": 2})
    stream = DIALECT.synthesise("messages", raw, include_usage=False)
    reader = TARGET.reader(RULES)

    assert [] == breaches(stream)
    assert reader.feed(stream)
    assert (0, None) == (reader.broken, reader.error)


@pytest.mark.parametrize("tokens", [0, 14])
def test_counts_of_tokens_are_checked(tokens: int) -> None:
    assert None is DIALECT.read_answer("count_tokens", codec.encode({"input_tokens": tokens}))


@pytest.mark.parametrize("wrong", [b"{}", b'{"input_tokens": -1}', b'{"input_tokens": "1"}', b""])
def test_what_is_no_count_is_refused(wrong: bytes) -> None:
    with pytest.raises(UpstreamError):
        DIALECT.read_answer("count_tokens", wrong)


def test_arguments_that_were_cut_off_are_said_to_be() -> None:
    notes = Notes()
    call = ToolCall("t", "f", '{"city": "Par')
    answer = Answer("openai_chat", "a", "m", (Choice(0, (call,), "length"),), None)
    told = json.loads(CALLER.write_answer(answer, TOLD, notes))
    assert told["content"][0]["input"] == {}
    assert notes.warnings == [
        "the arguments of f: were cut off before they were a JSON object; the call is told without any"
    ]
