"""What is scanned is what is sent: a word at every text of every request and answer is found (K24)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai.types import (
    Completion,
    CompletionCreateParams,
    EmbeddingCreateParams,
    ImageGenerateParams,
    ImagesResponse,
    ModerationCreateParams,
)
from openai.types.audio import SpeechCreateParams, Transcription, TranscriptionVerbose
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat import CompletionCreateParams as ChatParams
from openai.types.responses import Response, ResponseCreateParams, ResponseStreamEvent

from gateway.core.errors import PolicyError
from gateway.core.reply import Whole
from gateway.middleware.guardrail.layer import Guardrail
from tests.support.guarded import JSON, Written, call_of, event, guardrail, through
from tests.support.messages_types import (
    MessagesAnswer,
    MessagesEvent,
    MessagesRequest,
    RerankRequest,
)
from tests.support.schema_leaves import leaves

WORD = "zebrafish"
CHECK = {"kind": "words", "words": [WORD]}
REQUESTS: dict[str, tuple[str, Any]] = {
    "chat": ("openai_chat", ChatParams),
    "completions": ("openai_chat", CompletionCreateParams),
    "embeddings": ("openai_chat", EmbeddingCreateParams),
    "moderations": ("openai_chat", ModerationCreateParams),
    "images": ("openai_chat", ImageGenerateParams),
    "audio": ("openai_chat", SpeechCreateParams),
    "rerank": ("openai_chat", RerankRequest),
    "responses": ("openai_responses", ResponseCreateParams),
    "messages": ("anthropic_messages", MessagesRequest),
}
ANSWERS: dict[str, tuple[str, Any]] = {
    "chat": ("openai_chat", ChatCompletion),
    "completions": ("openai_chat", Completion),
    "images": ("openai_chat", ImagesResponse),
    "audio": ("openai_chat", Transcription | TranscriptionVerbose),
    "responses": ("openai_responses", Response),
    "messages": ("anthropic_messages", MessagesAnswer),
}
STREAMS: dict[str, tuple[str, Any]] = {
    "chat": ("openai_chat", ChatCompletionChunk),
    "responses": ("openai_responses", ResponseStreamEvent),
    "messages": ("anthropic_messages", MessagesEvent),
}
MADE_BY_PROVIDERS = {
    *(".id", ".model", ".system_fingerprint"),
    *(".message.id", ".message.model", ".response.id", ".response.model"),
}
"""Of answers: no model has a say in them. The model of a request is a name of the configuration."""


def words_of(kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield every place of a schema with a value that has the word there."""
    for path, value in leaves(kind, WORD):
        if (
            path not in MADE_BY_PROVIDERS
            and not path.startswith(".usage")
            and ".obfuscation" not in path
        ):
            yield path, value


async def is_refused(guard: Guardrail, dialect: str, endpoint: str, body: Any) -> bool:
    call = call_of(dialect, body, endpoint)
    before = {name: bytes(raw) for name, raw in (call.original.fields or {}).items()}
    try:
        await guard.check_request(call)
    except PolicyError as error:
        return error.code == "guardrail_violation"
    assert before == {name: bytes(raw) for name, raw in (call.original.fields or {}).items()}
    return False


@pytest.mark.bug("K24")
@pytest.mark.parametrize("endpoint", REQUESTS)
async def test_a_word_at_any_place_of_a_request_is_found(endpoint: str) -> None:
    dialect, kind = REQUESTS[endpoint]
    places = 0
    with guardrail(input=[CHECK]) as guard:
        for path, body in words_of(kind):
            places += 1
            assert await is_refused(guard, dialect, endpoint, body), (path, body)
    assert places > 1


@pytest.mark.bug("K24")
@pytest.mark.parametrize("endpoint", ANSWERS)
async def test_a_word_at_any_place_of_an_answer_is_found(endpoint: str) -> None:
    dialect, kind = ANSWERS[endpoint]
    with guardrail(output=[CHECK]) as guard:
        for path, body in words_of(kind):
            reply = Whole(200, JSON, json.dumps(body).encode())
            _, code = await through(guard, call_of(dialect, None, endpoint), reply)
            assert code == "guardrail_violation", (path, body)


@pytest.mark.bug("K24")
@pytest.mark.parametrize("endpoint", STREAMS)
async def test_a_word_at_any_place_of_an_event_is_found(endpoint: str) -> None:
    dialect, kind = STREAMS[endpoint]
    with guardrail(output=[CHECK], stream_mode="window") as guard:
        for path, body in words_of(kind):
            out, code = await through(guard, call_of(dialect), Written([event(body, "x")]))
            assert (out, code) == ([], "guardrail_violation"), (path, body)


HALVES = (WORD[:5], WORD[5:])


@pytest.mark.bug("K24")
@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai_chat", {"messages": [{"role": "user", "content": [{"type": "text", "text": h} for h in HALVES]}]}),
        ("openai_chat", {"messages": [{"role": "user", "content": h} for h in HALVES]}),
        ("anthropic_messages", {"system": [{"type": "text", "text": h} for h in HALVES], "messages": []}),
        ("anthropic_messages", {"messages": [{"role": "user", "content": h} for h in HALVES]}),
        ("openai_responses", {"input": [{"role": "user", "content": h} for h in HALVES]}),
        ("openai_chat", {"input": list(HALVES)}),
    ],
)  # fmt: skip
async def test_a_word_in_two_parts_is_found(dialect: str, body: Any) -> None:
    with guardrail(input=[CHECK]) as guard:
        assert await is_refused(guard, dialect, "", body)


@pytest.mark.bug("K24")
@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": "zebrafish"}',
        '{"a": "\\u007aebrafish"}',
        '{"zebrafish": 1}',
        '{"a": ["x", {"b": "zebrafish"}]}',
        '{"a": "zebrafish"',
        '["zebrafish"]',
    ],
)
async def test_a_word_in_arguments_is_found_however_it_is_written(arguments: str) -> None:
    function = {"name": "f", "arguments": arguments}
    call = {"id": "c", "type": "function", "function": function}
    body = {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
    with guardrail(input=[CHECK], output=[CHECK]) as guard:
        assert await is_refused(guard, "openai_chat", "chat", body)
        answer = {"choices": [{"index": 0, "message": body["messages"][0]}]}
        reply = Whole(200, JSON, json.dumps(answer).encode())
        assert (await through(guard, call_of("openai_chat"), reply))[1] == "guardrail_violation"


@pytest.mark.bug("K24")
async def test_what_is_named_twice_is_sent_as_it_was_seen() -> None:
    from gateway.core import codec

    raw = b'[{"role": "user", "content": "zebrafish", "content": "a \\\\\\" b"}]'
    call = call_of("openai_chat")
    assert call.original.fields is not None
    call.original.fields["messages"] = codec.Raw(raw)
    with guardrail(input=[CHECK]) as guard:
        await guard.check_request(call)

    sent = bytes(call.original.fields["messages"])
    assert json.loads(sent) == [{"role": "user", "content": 'a \\" b'}]
    assert b"zebrafish" not in sent


@pytest.mark.bug("K24")
async def test_what_is_nested_too_deep_to_be_seen_is_a_failure() -> None:
    value: Any = WORD
    for _ in range(300):
        value = [value]
    call = call_of("openai_chat", {"messages": value})
    with guardrail(input=[CHECK]) as guard, pytest.raises(PolicyError, match="could not be asked"):
        await guard.check_request(call)


@pytest.mark.bug("K24")
async def test_files_that_are_texts_are_read_and_pictures_are_not() -> None:
    from base64 import b64encode

    def file(media: str, content: bytes) -> dict[str, Any]:
        url = f"data:{media};base64,{b64encode(content).decode()}"
        part = {"type": "file", "file": {"file_data": url}}
        return {"messages": [{"role": "user", "content": [part]}]}

    text = f"it is a {WORD}".encode()
    with guardrail(input=[CHECK]) as guard:
        assert await is_refused(guard, "openai_chat", "chat", file("text/plain", text))
        assert not await is_refused(guard, "openai_chat", "chat", file("image/png", text))


def enclosed(media: str, content: bytes | str) -> list[tuple[str, dict[str, Any]]]:
    """Return requests of every format with a file in them, as each format can hold it."""
    from base64 import b64encode

    data = content if isinstance(content, str) else b64encode(content).decode()
    url = f"data:{media};base64,{data}"
    source = {"type": "base64", "media_type": media, "data": data}
    document = {"type": "document", "source": source}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [document]}
    inner = {"type": "document", "source": {"type": "content", "content": [document]}}
    found = [
        ("anthropic_messages", {"messages": [{"role": "user", "content": [part]}]})
        for part in (document, result, inner)
    ]
    for name in ({"file_data": url}, {"file_data": data, "format": media}):
        part: dict[str, Any] = {"type": "file", "file": name}
        found.append(("openai_chat", {"messages": [{"role": "user", "content": [part]}]}))
    output = {"type": "function_call_output", "call_id": "c"}
    for name in ({"file_data": url}, {"file_url": url}):
        part = {"type": "input_file", **name}
        found.append(("openai_responses", {"input": [{"role": "user", "content": [part]}]}))
        found.append(("openai_responses", {"input": [{**output, "output": [part]}]}))
    return found


TEXT_TYPES = ("text/plain", "text/csv; charset=utf-8", "application/json", "Application/Problem+JSON", "text/xml", "application/x-yaml")  # fmt: skip


@pytest.mark.bug("K24")
@pytest.mark.parametrize("action", ["block", "redact"])
@pytest.mark.parametrize("media", TEXT_TYPES)
async def test_files_that_are_texts_are_read_in_every_format(media: str, action: str) -> None:
    with guardrail(input=[{**CHECK, "action": action}]) as guard:
        for encoding in ("utf-8", "utf-16"):
            for dialect, body in enclosed(media, f"it is a {WORD}, é".encode(encoding)):
                assert await is_refused(guard, dialect, "", body), body
        for dialect, body in enclosed(media, b"it is a plain text"):
            assert not await is_refused(guard, dialect, "", body), body
        for dialect, body in enclosed("image/png", b"\x89PNG it is a zebrafish"):
            assert not await is_refused(guard, dialect, "", body), body


@pytest.mark.bug("K24")
@pytest.mark.parametrize("content", ["$no base64$", b"z\0e\0b\0r\0a\0"])
async def test_files_of_texts_that_cannot_be_read_are_failures(content: str | bytes) -> None:
    with guardrail(input=[CHECK]) as guard:
        for dialect, body in enclosed("text/plain", content):
            with pytest.raises(PolicyError, match="could not be asked"):
                await guard.check_request(call_of(dialect, body))
    with guardrail(input=[CHECK], on_check_error="allow") as guard:
        for dialect, body in enclosed("text/plain", content):
            assert not await is_refused(guard, dialect, "", body)


@pytest.mark.bug("K24")
async def test_files_of_no_type_are_read_where_they_are_texts() -> None:
    from base64 import urlsafe_b64encode

    data = urlsafe_b64encode(f"what ÿÿÿ is {WORD}? {'é' * 9000}".encode()).decode().rstrip("=")
    parts: list[dict[str, Any]] = [
        {"type": "input_file", "file_data": data},
        {"type": "input_file", "file_data": data, "filename": "notes.txt"},
        {"type": "input_file", "file_data": f"data:application/octet-stream;base64,{data}"},
        {"type": "input_file", "file_data": f"DATA:text/plain; Base64,{data}"},
        {"type": "input_file", "file_data": "data:text/plain,it%20is%20%7Aebrafish"},
        {"type": "input_text", "text": f"data:image/png;base64,it is a {WORD}!"},
    ]
    source = {"type": "text", "media_type": "text/plain", "data": f"{WORD} and " * 9}
    with guardrail(input=[CHECK]) as guard:
        for part in parts:
            body: dict[str, Any] = {"input": [{"role": "user", "content": [part]}]}
            assert await is_refused(guard, "openai_responses", "", body), part
        body = {"messages": [{"role": "user", "content": [{"type": "document", "source": source}]}]}
        assert await is_refused(guard, "anthropic_messages", "", body)
    with guardrail(input=[CHECK], texts="last_user") as guard:
        body = {"input": [{"role": "user", "content": parts[:1]}]}
        assert await is_refused(guard, "openai_responses", "", body)


@pytest.mark.bug("K24")
@pytest.mark.parametrize("text", ["data: so it is", "Data: 1, 2%, 3", "data:text/plain;base64,$"])
async def test_texts_that_only_begin_like_files_are_texts(text: str) -> None:
    with guardrail(input=[CHECK]) as guard:
        for said, is_bad in ((text, False), (f"{text} {WORD}", True)):
            body = {"messages": [{"role": "user", "content": said}]}
            assert await is_refused(guard, "openai_chat", "", body) is is_bad
        tool = {"name": "f", "description": f"data:image/png;base64,look for a {WORD}"}
        body = {"tools": [{"type": "function", "function": tool}]}
        assert await is_refused(guard, "openai_chat", "", body)


@pytest.mark.bug("K24")
@pytest.mark.parametrize("name", ["input", "prompt"])
@pytest.mark.parametrize("said", [[1, 2, 3], [[1, 2, 3]], ["a", [1]], ["a", 2]])
async def test_numbers_of_tokens_cannot_be_read(name: str, said: list[Any]) -> None:
    endpoint = "embeddings" if name == "input" else "completions"
    with (
        guardrail(input=[CHECK]) as guard,
        pytest.raises(PolicyError, match="could not be asked"),
    ):
        await guard.check_request(call_of("openai_chat", {name: said}, endpoint))
    with guardrail(input=[CHECK], on_check_error="allow") as guard:
        assert not await is_refused(guard, "openai_chat", endpoint, {name: said})
        assert await is_refused(guard, "openai_chat", endpoint, {name: [*said, WORD]})
