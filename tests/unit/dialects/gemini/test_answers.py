"""Answers of Gemini that are odd in some way: blocked, cut, in pieces, with sources, signatures and media."""

import json
from typing import Any

import pytest

from gateway.core.answer import Answer, Collector, Finish, PartBegan
from gateway.core.errors import UpstreamError
from gateway.core.message import (
    Audio,
    Citation,
    File,
    Image,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
)
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, StreamRules
from gateway.dialects.gemini.side import GeminiTarget
from gateway.dialects.gemini.stream_reader import GeminiReader

GEMINI = GeminiTarget()
Json = dict[str, Any]
CALL: Json = {"functionCall": {"name": "f", "args": {"a": 1}}}


def reader(most: int = 1 << 20) -> GeminiReader:
    rules = StreamRules(hide_usage=False, done_required=True, max_event_bytes=most)
    return GEMINI.reader(rules)


def piece(*parts: Json, index: int | None = None, **candidate: Any) -> Json:
    content: Json = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    where: Json = {} if index is None else {"index": index}
    return {
        "candidates": [{**content, **candidate, **where}],
        "modelVersion": "gemini-x",
        "responseId": "r1",
    }


def framed(*pieces: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in pieces)


def streamed(*pieces: Json) -> Answer:
    read, collector = reader(), Collector("gemini")
    collector.add(read.feed(framed(*pieces)))
    collector.add(read.end(True))
    assert (read.error, read.broken, collector.ended) == (None, 0, True)
    return collector.answer()


def whole(body: Json | list[Json]) -> Answer:
    return GEMINI.read_whole(json.dumps(body).encode())


def parts(*given: Json) -> tuple[Part, ...]:
    """Return what parts of one answer become, the same whole and in a stream."""
    answer = piece(*given, finishReason="STOP")
    assert whole(answer) == streamed(answer)
    return whole(answer).choices[0].parts


@pytest.mark.bug("K35", "B107")
@pytest.mark.parametrize(
    ("native", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("MODEL_ARMOR", "content_filter"),
        ("OTHER", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "content_filter"),
        ("UNEXPECTED_TOOL_CALL", "content_filter"),
        ("A_REASON_OF_TOMORROW", "content_filter"),
    ],
)
def test_each_reason_has_its_finish_and_a_call_outweighs_it(native: str, finish: Finish) -> None:
    for given, told in (((), finish), (({"text": "Hm"},), finish), ((CALL,), "tool_calls")):
        answer = piece(*given, finishReason=native)
        for read in (whole(answer), streamed(answer)):
            assert (told, native) == (read.choices[0].finish, read.choices[0].native)


@pytest.mark.bug("K35", "B107")
def test_a_blocked_prompt_is_no_empty_success() -> None:
    blocked: Json = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 8, "totalTokenCount": 8},
    }
    for answer in (whole(blocked), streamed(blocked)):
        (choice,) = answer.choices
        assert (choice.parts, choice.finish, choice.native) == (
            (), "content_filter", "PROHIBITED_CONTENT"
        )  # fmt: skip
        assert answer.usage == Usage(input=8, output=0)


@pytest.mark.bug("K35", "K04", "B107")
@pytest.mark.parametrize(
    "body", [{}, {"candidates": []}, {"promptFeedback": {}}, {"usageMetadata": {}}]
)
def test_no_candidates_and_no_reason_is_no_answer(body: Json) -> None:
    with pytest.raises(UpstreamError) as unusable:
        whole(body)
    assert unusable.value.code == "upstream_invalid_response"
    with pytest.raises(UpstreamError) as cut:
        streamed(body)
    assert cut.value.code == "upstream_truncated"


@pytest.mark.bug("K04")
def test_a_stream_ends_when_each_candidate_has() -> None:
    one, other = piece({"text": "a"}, index=0), piece({"text": "b"}, index=1)
    ends = [piece(index=0, finishReason="STOP"), piece(index=1, finishReason="MAX_TOKENS")]
    with pytest.raises(UpstreamError):
        streamed(one, other, ends[0])

    answer = streamed(one, other, one, *ends)
    assert [("aa", "stop"), ("b", "length")] == [
        ("".join(part.text for part in choice.parts if isinstance(part, Text)), choice.finish)
        for choice in answer.choices
    ]


@pytest.mark.bug("K32", "B108")
def test_signatures_are_kept_wherever_they_stand() -> None:
    assert parts(
        {"text": "Hm.", "thought": True},
        {"text": "Say", "thoughtSignature": "s1"},
        {"text": " it"},
        {**CALL, "thoughtSignature": "s2"},
        CALL,
        {"text": "", "thoughtSignature": "s3"},
        {"thoughtSignature": "s4"},
    ) == (
        Thinking("Hm."),
        Text("Say", signature="s1", maker="gemini"),
        Text(" it"),
        ToolCall(ids(0), "f", '{"a":1}', signature="s2", maker="gemini"),
        ToolCall(ids(1), "f", '{"a":1}'),
        Thinking(signature="s3", maker="gemini"),
        Thinking(signature="s4", maker="gemini"),
    )


def ids(at: int) -> str:
    """Return the id that is made up for the n-th of two equal calls."""
    calls = whole(piece(CALL, CALL, finishReason="STOP")).choices[0].parts
    call = calls[at]
    assert isinstance(call, ToolCall)
    return call.id


def test_a_call_keeps_the_id_it_has_and_may_lack_arguments() -> None:
    named: Json = {"functionCall": {"id": "own", "name": "f", "args": {}}}
    assert parts(named, {"functionCall": {"id": "two", "name": "g"}}) == (
        ToolCall("own", "f"),
        ToolCall("two", "g"),
    )
    assert ids(0) != ids(1)


@pytest.mark.bug("K07")
@pytest.mark.parametrize("call", [{"args": {"a": 1}}, {"partialArgs": [{"jsonPath": "$.a"}]}])
def test_a_call_without_a_name_is_no_call(call: Json) -> None:
    with pytest.raises(UpstreamError) as unusable:
        whole(piece({"functionCall": call}, finishReason="STOP"))
    assert unusable.value.code == "upstream_invalid_response"


def test_answers_without_an_id_make_up_ids_that_no_other_answer_has() -> None:
    answer = piece(CALL, finishReason="STOP")
    del answer["responseId"]
    one, other = (whole(answer).choices[0].parts[0] for _ in range(2))
    assert isinstance(one, ToolCall)
    assert isinstance(other, ToolCall)
    assert one.id != other.id


def test_pieces_of_a_text_are_one_part_and_empty_ones_none() -> None:
    answer = streamed(
        piece({"text": "a", "thought": True}), piece({"text": ""}), piece({"text": "b", "thought": True}),
        piece({"text": "c"}), piece({"text": "d", "thoughtSignature": "s"}, finishReason="STOP"),
    )  # fmt: skip
    assert answer.choices[0].parts == (Thinking("ab"), Text("cd", signature="s", maker="gemini"))


def test_media_are_parts_of_their_own() -> None:
    def inline(kind: str, **more: Any) -> Json:
        return {"inlineData": {"mimeType": kind, "data": "AAAA"}, **more}

    drawn = inline("image/png", thought=True)
    assert parts(
        {"text": "See:"},
        inline("image/png", thoughtSignature="s"),
        inline("audio/mpeg"),
        inline("video/mp4"),
        drawn,
    ) == (
        Text("See:"),
        Image("image/png", "AAAA", extra={"thoughtSignature": "s"}),
        Audio("AAAA", "mp3"),
        File("video/mp4", "AAAA"),
        Opaque("gemini", "thought", drawn),
    )


def test_items_of_the_providers_own_tools_are_no_calls() -> None:
    code: Json = {"executableCode": {"code": "1"}, "thoughtSignature": "s"}
    odd: Json = {"videoMetadata": {"fps": 1}}
    assert parts(code, odd) == (
        Opaque("gemini", "executableCode", code),
        Opaque("gemini", "videoMetadata", odd),
    )


def test_offsets_of_citations_count_characters_of_their_part() -> None:
    chunk: Json = {"web": {"uri": "https://example.com/", "title": "T"}}
    segment: Json = {"startIndex": 4, "endIndex": 7, "text": "日"}
    grounding: Json = {
        "groundingChunks": [chunk],
        "groundingSupports": [
            {"segment": segment, "groundingChunkIndices": [0, 7]},
            {"segment": {"endIndex": 99}, "groundingChunkIndices": [0]},
        ],
    }
    cited: Json = {"citations": [{"startIndex": 0, "endIndex": 3, "uri": "https://example.org/"}]}
    queries: Json = {"webSearchQueries": ["q"]}
    answer = streamed(
        piece({"text": "ün"}, groundingMetadata=queries, citationMetadata=cited),
        piece({"text": " 日本"}, urlContextMetadata={"urlMetadata": []}),
        piece(finishReason="STOP", groundingMetadata=grounding, citationMetadata=cited),
    )

    text, opaque, urls = answer.choices[0].parts
    assert opaque == Opaque("gemini", "groundingMetadata", {**queries, **grounding})
    assert urls == Opaque("gemini", "urlContextMetadata", {"urlMetadata": []})
    assert isinstance(text, Text)
    assert text.text == "ün 日本"
    assert [("日", 3, 4), ("", None, None), ("ün", 0, 2)] == [
        (each.text, each.start, each.end) for each in text.citations
    ]
    assert text.citations[0] == Citation(
        "gemini", {"segment": segment, "chunk": chunk}, "https://example.com/", "T", "日", 3, 4
    )


def test_citations_stand_at_their_text_where_others_follow() -> None:
    code: Json = {"executableCode": {"code": "1"}}
    listed: Json = {
        "citations": [
            {"endIndex": 1, "uri": "https://example.org/1"},
            {"startIndex": 2, "endIndex": 3, "uri": "https://example.org/2"},
        ]
    }
    told = piece(
        {"text": "ab"}, code, {"text": "c"}, CALL, finishReason="STOP", citationMetadata=listed
    )
    first, _, second, call = whole(told).choices[0].parts

    assert isinstance(first, Text)
    assert isinstance(second, Text)
    assert [(each.url, each.start, each.end) for each in first.citations] == [
        ("https://example.org/1", 0, 1)
    ]
    assert [(each.url, each.start, each.end) for each in second.citations] == [
        ("https://example.org/2", 0, 1)
    ]
    assert isinstance(call, ToolCall)


def test_citations_that_come_behind_a_call_are_not_lost() -> None:
    cited: Json = {"citations": [{"endIndex": 1, "uri": "https://example.org/"}]}
    answer = streamed(
        piece({"text": "a"}, CALL), piece(finishReason="STOP", citationMetadata=cited)
    )

    last = answer.choices[0].parts[-1]
    assert isinstance(last, Text)
    assert last.citations[0].url == "https://example.org/"


def test_log_probabilities_are_told_in_the_form_of_openai() -> None:
    logprobs: Json = {
        "chosenCandidates": [{"token": "é", "logProbability": -0.5, "tokenId": 1}, {"token": "b"}],
        "topCandidates": [{"candidates": [{"token": "é", "logProbability": -0.5}]}],
    }
    answer = whole(piece({"text": "éb"}, finishReason="STOP", logprobsResult=logprobs))

    first: Json = {"token": "é", "logprob": -0.5, "bytes": [195, 169]}
    assert answer.choices[0].logprobs == (
        {**first, "top_logprobs": [first]},
        {"token": "b", "logprob": 0.0, "bytes": [98], "top_logprobs": []},
    )


@pytest.mark.bug("K07", "K16")
def test_usage_is_the_last_one_told() -> None:
    def counted(**counts: Any) -> Json:
        return {**piece({"text": "a"}), "usageMetadata": counts}

    answer = streamed(
        counted(promptTokenCount=5, totalTokenCount=5),
        counted(promptTokenCount=5, candidatesTokenCount=2, totalTokenCount=7),
        {
            **piece(finishReason="STOP"),
            "usageMetadata": {
                "promptTokenCount": 5,
                "toolUsePromptTokenCount": 1,
                "candidatesTokenCount": 3,
                "thoughtsTokenCount": 4,
                "cachedContentTokenCount": 0,
                "promptTokensDetails": [
                    {"modality": "AUDIO", "tokenCount": 2},
                    {"modality": "TEXT"},
                ],
                "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 1}],
            },
        },
    )
    assert answer.usage == Usage(
        input=6, output=7, cached=0, reasoning=4, audio_input=2, audio_output=1
    )
    assert streamed(piece({"text": "a"}, finishReason="STOP")).usage is None


ERROR: Json = {"error": {"code": 429, "message": "Slow down", "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    "body",
    [json.dumps(ERROR).encode(), json.dumps([ERROR], indent=1).encode(), framed(ERROR)],
    ids=["bare", "list", "event"],
)
def test_an_error_in_place_of_a_stream_is_told(body: bytes) -> None:
    for size in (1, 7, len(body)):
        read = reader()
        events = [e for at in range(0, len(body), size) for e in read.feed(body[at : at + size])]
        assert [*events, *read.end(True)] == []
        assert read.error is not None
        assert (read.error.message, read.error.http) == ("Slow down", 429)


@pytest.mark.bug("K08", "K10")
def test_an_error_in_the_middle_of_a_stream_comes_behind_what_was_said() -> None:
    read = reader()
    events = read.feed(framed(piece({"text": "a"}), ERROR, piece({"text": "b"})))

    assert [event.part for event in events if isinstance(event, PartBegan)] == [Text("")]
    assert read.error is not None
    assert (read.surplus, read.end(True)) == (1, [])


def test_a_whole_answer_that_is_an_error_is_one() -> None:
    for body in (ERROR, [ERROR], {"error": "text"}):
        with pytest.raises(AnswerIsError):
            whole(body)


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b'"x"', b'{"candidates": 1}', b"\xff"])
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(UpstreamError) as unusable:
        GEMINI.read_whole(body)
    assert unusable.value.code == "upstream_invalid_response"


def test_a_stream_that_ignored_its_form_is_read_all_the_same() -> None:
    pieces = [piece({"text": "a"}), piece({"text": "b"}, finishReason="STOP")]
    listed = json.dumps(pieces).encode()
    read, collector = reader(), Collector("gemini")
    for at in range(0, len(listed), 9):
        collector.add(read.feed(listed[at : at + 9]))
    collector.add(read.end(True))

    assert collector.answer() == streamed(*pieces) == whole(pieces)


@pytest.mark.bug("K01")
def test_a_broken_event_is_counted_and_comments_are_none() -> None:
    read = reader()
    read.feed(b": hello\n\ndata: {\n\ndata: [DONE]\n\n" + framed(piece({"text": "a"}))[:-2])
    read.feed(b"\r\n")
    assert (read.broken, read.frames) == (1, 2)
    read.feed(b": ping\n\n")
    assert read.real is False


@pytest.mark.bug("K38")
@pytest.mark.parametrize("begin", [b'data: {"candidates": "', b'{"candidates": "'])
def test_an_open_event_is_bounded(begin: bytes) -> None:
    read = reader(most=1000)
    read.feed(begin + b"x" * 900)
    with pytest.raises(UpstreamError) as large:
        read.feed(b"x" * 100)
    assert large.value.code == "upstream_invalid_response"
