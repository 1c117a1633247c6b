"""What Converse tells, plain and streamed, is told alike: reasoning, calls, citations, ends, errors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.core.answer import Answer, Choice, Collector, Event
from gateway.core.errors import UpstreamError
from gateway.core.message import Citation, Image, Opaque, Part, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, StreamRules
from gateway.dialects.bedrock.converse import Converse
from tests.support.event_stream import error, event, exception, frame

Json = Mapping[str, Any]
CONVERSE = Converse()
RULES = StreamRules(hide_usage=False, done_required=True)
USAGE = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}
ORIGIN = "bedrock_converse"


def whole(blocks: Sequence[Json], reason: str = "end_turn", **more: Any) -> Answer:
    """Read an answer of these blocks."""
    message = {"role": "assistant", "content": blocks}
    body = {"output": {"message": message}, "stopReason": reason, "usage": USAGE, **more}
    return CONVERSE.read_whole(json.dumps(body).encode())


def delta(index: int, **told: Any) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": told})


def start(index: int, **told: Any) -> bytes:
    return event("contentBlockStart", {"contentBlockIndex": index, "start": told})


def stop(index: int) -> bytes:
    return event("contentBlockStop", {"contentBlockIndex": index})


def stream(*frames: bytes, reason: str = "end_turn") -> Answer:
    """Read a stream of these frames, with a beginning and an end around them."""
    reader = CONVERSE.reader(RULES)
    collector = Collector(ORIGIN)
    body = b"".join(
        (
            event("messageStart", {"role": "assistant", "p": "abc"}),
            *frames,
            event("messageStop", {"stopReason": reason}),
            event("metadata", {"usage": USAGE, "metrics": {"latencyMs": 1}}),
        )
    )
    for at in range(0, len(body), 50):
        collector.add(reader.feed(body[at : at + 50]))
    collector.add(reader.end(complete=True))
    assert collector.ended
    assert 0 == reader.broken
    return collector.answer()


def parts(answer: Answer) -> tuple[Part, ...]:
    return answer.choices[0].parts


CASES: tuple[tuple[Json, Sequence[bytes], Sequence[Part]], ...] = (
    ({"text": "Hi"}, (delta(0, text=""), delta(0, text="H"), delta(0, text="i")), [Text("Hi")]),
    ({"text": ""}, (delta(0, text=""),), []),
    (
        {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}},
        (
            start(0, toolUse={"toolUseId": "t1", "name": "f"}),
            delta(0, toolUse={"input": ""}),
            delta(0, toolUse={"input": '{"a"'}),
            delta(0, toolUse={"input": ": 1}"}),
        ),
        [ToolCall("t1", "f", '{"a": 1}')],
    ),
    (
        {"toolUse": {"toolUseId": "t1", "name": "f"}},
        (start(0, toolUse={"toolUseId": "t1", "name": "f"}), delta(0, toolUse={"input": ""})),
        [ToolCall("t1", "f", "")],
    ),
    (
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
        (
            delta(0, reasoningContent={"text": "H"}),
            delta(0, reasoningContent={"text": "m"}),
            delta(0, reasoningContent={"signature": "c2ln"}),
        ),
        [Thinking("Hm", "c2ln", maker="anthropic")],
    ),
    (
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}},
        (delta(0, reasoningContent={"text": ""}), delta(0, reasoningContent={"signature": "c2ln"})),
        [Thinking("", "c2ln", maker="anthropic")],
    ),
    (
        {"reasoningContent": {"reasoningText": {"text": "Hm"}}},
        (delta(0, reasoningContent={"text": "Hm"}),),
        [Thinking("Hm")],
    ),
    ({"reasoningContent": {"reasoningText": {"text": ""}}}, (), []),
    (
        {"reasoningContent": {"redactedContent": "RXNlYWxlZA=="}},
        (delta(0, reasoningContent={"redactedContent": "RXNlYWxlZA=="}),),
        [Thinking(redacted="Esealed", maker="anthropic")],
    ),
    (
        {"reasoningContent": {"redactedContent": "/////w=="}},
        (delta(0, reasoningContent={"redactedContent": "/////w=="}),),
        [Thinking(redacted="/////w==", maker="bedrock")],
    ),
    (
        {"reasoningContent": {"redactedContent": "YR=="}},
        (delta(0, reasoningContent={"redactedContent": "YR=="}),),
        [Thinking(redacted="YR==", maker="bedrock")],
    ),
    (
        {"reasoningContent": {"redactedContent": "no base64"}},
        (delta(0, reasoningContent={"redactedContent": "no base64"}),),
        [Thinking(redacted="no base64", maker="bedrock")],
    ),
    (
        {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
        (start(0, image={"format": "png"}), delta(0, image={"source": {"bytes": "AAAA"}})),
        [Image("image/png", "AAAA")],
    ),
    (
        {"image": {"format": "png", "error": {"message": "no"}}},
        (start(0, image={"format": "png"}), delta(0, image={"error": {"message": "no"}})),
        [Opaque(ORIGIN, "image", {"image": {"format": "png", "error": {"message": "no"}}})],
    ),
)


@pytest.mark.bug("K32", "K35")
@pytest.mark.parametrize(("block", "frames", "wanted"), CASES)
def test_a_block_is_told_alike_whole_and_in_pieces(
    block: Json, frames: Sequence[bytes], wanted: Sequence[Part]
) -> None:
    assert tuple(wanted) == parts(whole([block]))
    assert tuple(wanted) == parts(stream(*frames, stop(0)))


@pytest.mark.bug("K35")
def test_citations_stand_at_the_text_they_belong_to() -> None:
    cited = {
        "title": "T",
        "sourceContent": [{"text": "said "}, {"text": "so"}],
        "location": {"web": {"url": "https://example.com/"}},
    }
    bare = {"location": {"documentChar": {"documentIndex": 0, "start": 1, "end": 2}}}
    wanted = Text(
        "Yes.",
        citations=(
            Citation(ORIGIN, cited, "https://example.com/", "T", "said so"),
            Citation(ORIGIN, bare),
        ),
    )
    block = {
        "citationsContent": {
            "content": [{"text": "Yes"}, {"text": "."}],
            "citations": [cited, bare],
        }
    }

    assert (wanted,) == parts(whole([block]))
    told = stream(delta(0, citation=cited), delta(0, text="Yes."), delta(0, citation=bare), stop(0))
    assert (wanted,) == parts(told)


def test_items_of_the_providers_own_tools_are_kept_whole() -> None:
    use = {"toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use"}
    result = {"toolUseId": "s1", "type": "nova_grounding_result", "status": "success"}
    told = stream(
        start(0, toolUse=use),
        delta(0, toolUse={"input": "{}"}),
        stop(0),
        start(1, toolResult=result),
        delta(1, toolResult=[{"text": "a"}]),
        delta(1, toolResult=[{"json": {"b": 1}}]),
        stop(1),
        delta(2, text="Done"),
        stop(2),
    )

    assert (
        Opaque(ORIGIN, "toolUse", {"toolUse": {**use, "input": "{}"}}),
        Opaque(
            ORIGIN,
            "toolResult",
            {"toolResult": {**result, "content": [{"text": "a"}, {"json": {"b": 1}}]}},
        ),
        Text("Done"),
    ) == parts(told)
    assert "stop" == told.choices[0].finish
    (kept,) = parts(whole([{"toolUse": {**use, "input": {"q": "x"}}}], "tool_use"))
    assert isinstance(kept, Opaque)


def test_blocks_that_are_not_known_are_kept() -> None:
    assert (Opaque(ORIGIN, "newBlock", {"newBlock": {"a": 1}}),) == parts(
        whole([{"newBlock": {"a": 1}}])
    )


CALL: Json = {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}
CALL_FRAMES = (
    start(0, toolUse={"toolUseId": "t1", "name": "f"}),
    delta(0, toolUse={"input": "{}"}),
)


@pytest.mark.bug("K35")
@pytest.mark.parametrize(
    ("reason", "alone", "with_call"),
    [
        ("end_turn", "stop", "tool_calls"),
        ("tool_use", "stop", "tool_calls"),
        ("max_tokens", "length", "length"),
        ("model_context_window_exceeded", "length", "length"),
        ("stop_sequence", "stop_sequence", "tool_calls"),
        ("guardrail_intervened", "content_filter", "content_filter"),
        ("content_filtered", "content_filter", "content_filter"),
        ("something_new", "stop", "tool_calls"),
    ],
)
def test_the_end_follows_from_what_was_given(reason: str, alone: str, with_call: str) -> None:
    text = delta(0, text="x")
    for answer, finish in (
        (whole([{"text": "x"}], reason), alone),
        (stream(text, stop(0), reason=reason), alone),
        (whole([CALL], reason), with_call),
        (stream(*CALL_FRAMES, stop(0), reason=reason), with_call),
        (stream(*CALL_FRAMES, reason=reason), with_call),
    ):
        assert (finish, reason) == (answer.choices[0].finish, answer.choices[0].native)


@pytest.mark.bug("K35")
def test_the_stop_sequence_is_told_where_the_model_says_it() -> None:
    answer = whole(
        [{"text": "x"}],
        "stop_sequence",
        additionalModelResponseFields={"stop_sequence": "END"},
    )
    assert "END" == answer.choices[0].stop_sequence


@pytest.mark.bug("K35")
@pytest.mark.parametrize("reason", ["malformed_tool_use", "malformed_model_output"])
def test_output_that_the_provider_could_not_read_is_an_error(reason: str) -> None:
    with pytest.raises(AnswerIsError) as caught:
        whole([], reason)
    reader = CONVERSE.reader(RULES)
    reader.feed(event("messageStop", {"stopReason": reason}))

    for said in (caught.value.error, reader.error):
        assert said is not None
        assert reason == said.type
    assert [] == reader.end(complete=True)


@pytest.mark.bug("K07")
def test_the_cache_is_a_part_of_the_input_and_zero_is_not_unknown() -> None:
    usage = {**USAGE, "cacheReadInputTokens": 100, "cacheWriteInputTokens": 0}
    body: Json = {"output": {"message": {"content": []}}, "stopReason": "end_turn"}

    told = CONVERSE.read_whole(json.dumps({**body, "usage": usage}).encode())
    untold = CONVERSE.read_whole(json.dumps(body).encode())
    partly = CONVERSE.read_whole(json.dumps({**body, "usage": {"outputTokens": 1}}).encode())

    assert Usage(105, 2, 100, 0) == told.usage
    assert untold.usage is None
    assert Usage(None, 1) == partly.usage


@pytest.mark.bug("K35")
def test_what_is_no_answer_is_told() -> None:
    with pytest.raises(AnswerIsError) as said:
        CONVERSE.read_whole(b'{"message":"The model is gone"}')
    assert "The model is gone" == said.value.error.message
    for body in (b"", b"[]", b'{"output":{}}', b"\xff", b"[" * 100_000):
        with pytest.raises(UpstreamError) as caught:
            CONVERSE.read_whole(body)
        assert "upstream_invalid_response" == caught.value.code


@pytest.mark.bug("K08", "K35")
def test_an_exception_ends_a_stream_behind_what_came_before() -> None:
    reader = CONVERSE.reader(RULES)
    body = delta(0, text="Hi") + exception("throttlingException", {"message": "Too many tokens"})
    told: list[Event] = reader.feed(body + delta(0, text="more"))

    assert 3 == len(told)
    assert reader.error is not None
    assert ("ThrottlingException", 429) == (reader.error.type, reader.error.http)
    assert "other" == CONVERSE.error_class(reader.error, 429)
    assert 1 == reader.surplus
    assert [] == reader.end(complete=True)


def test_an_error_of_the_transport_is_read_from_its_head() -> None:
    reader = CONVERSE.reader(RULES)
    reader.feed(error("InternalFailure", "It broke"))

    assert reader.error is not None
    assert ("It broke", "InternalFailure") == (reader.error.message, reader.error.type)


@pytest.mark.bug("K01")
def test_frames_that_are_not_understood_are_counted_or_passed_over() -> None:
    reader = CONVERSE.reader(RULES)
    heads = {":message-type": "event", ":event-type": "contentBlockDelta"}
    told = reader.feed(
        event("somethingNew", {})
        + frame(b"{", heads)
        + frame(b'{"delta":5}', heads)
        + frame(b"\xff", heads)
    )

    assert 1 == len(told)
    assert (3, 4, True) == (reader.broken, reader.frames, reader.real)


@pytest.mark.bug("K03")
@pytest.mark.parametrize(
    "frames",
    [
        (delta(0, toolUse={"input": "{}"}),),
        (delta(0, text="Hi"), delta(0, toolUse={"input": "{}"})),
        (delta(0, text="Hi"), delta(0, reasoningContent={"text": "Hm"})),
    ],
)
def test_a_piece_without_its_place_is_an_error_behind_what_came_before(
    frames: Sequence[bytes],
) -> None:
    whole_reader = CONVERSE.reader(RULES)
    told = whole_reader.feed(b"".join(frames) + delta(1, text="x"))
    assert told
    for call in (lambda: whole_reader.feed(b""), lambda: whole_reader.end(complete=True)):
        with pytest.raises(UpstreamError) as caught:
            call()
        assert "upstream_invalid_response" == caught.value.code


def test_what_comes_behind_the_end_is_surplus() -> None:
    reader = CONVERSE.reader(RULES)
    end = event("messageStop", {"stopReason": "end_turn"}) + event("metadata", {"usage": USAGE})
    reader.feed(end)

    assert [] == reader.feed(delta(0, text="x"))
    assert 1 == reader.surplus
    assert [] == reader.end(complete=True)


def test_what_else_is_told_is_kept_for_its_own_format() -> None:
    answer = whole([{"text": "x"}], serviceTier={"type": "flex"}, trace={"guardrail": {}})

    assert {"serviceTier": {"type": "flex"}, "trace": {"guardrail": {}}} == answer.extra
    assert isinstance(answer.choices[0], Choice)


@pytest.mark.bug("K39")
@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (
            (
                "User: arn:aws:sts::123456789012:assumed-role/ours/x is not authorized to perform: "
                "bedrock:InvokeModel on resource: arn:aws:bedrock:us-east-1::foundation-model/a.b"
            ),
            "User: [hidden] is not authorized to perform: bedrock:InvokeModel on resource: [hidden]",
        ),
        ("Account 123456789012 may not", "Account [hidden] may not"),
        (
            (
                "The request signature we calculated does not match.\n\nThe Canonical String for this "
                "request should have been\n'POST\n/model\n\nx-amz-security-token:s3cr3t'"
            ),
            "The request signature we calculated does not match.",
        ),
    ],
)
def test_errors_show_neither_the_account_nor_what_was_signed(told: str, shown: str) -> None:
    body = json.dumps({"message": told}).encode()
    reader = CONVERSE.reader(RULES)
    reader.feed(exception("accessDeniedException", {"message": told}))

    for said in (CONVERSE.read_error(403, body, str), reader.error):
        assert said is not None
        assert shown == said.message


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    ("kind", "message", "http", "wanted"),
    [
        ("ValidationException", "Input is too long for requested model.", 400, "context"),
        ("ValidationException", "The provided model identifier is invalid.", 400, "other"),
        ("AccessDeniedException", "You don't have access to the model", 403, "auth"),
        (
            "ExpiredTokenException",
            "The security token included in the request is expired",
            403,
            "auth",
        ),
        ("ThrottlingException", "Too many tokens, please wait before trying again.", 429, "other"),
        ("ThrottlingException", "Too many tokens per day, please wait", 429, "quota"),
        ("ServiceQuotaExceededException", "Your quota is used up", 400, "quota"),
        (None, "prompt is too long: 300000 tokens > 200000 maximum", 400, "context"),
    ],
)
def test_errors_are_classed(kind: str | None, message: str, http: int, wanted: str) -> None:
    said = CONVERSE.read_error(http, json.dumps({"message": message}).encode(), str)
    assert wanted == CONVERSE.error_class(replace(said, type=kind), http)
