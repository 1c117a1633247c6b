"""What a history says becomes the blocks of Converse, or is refused by name; nothing is lost."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
    CacheMark,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts
from tests.support.bedrock_written import (
    CALL,
    CALLED,
    CLAUDE,
    CONVERSE,
    HELLO,
    LLAMA,
    NEWEST,
    NOVA,
    OPAQUE,
    WEATHER,
    asked,
    lost,
    written,
)


def content(*parts: Part) -> list[dict[str, Any]]:
    return written(asked(Message("user", parts)))["messages"][0]["content"]


@pytest.mark.bug("K34", "B110")
@pytest.mark.parametrize(
    ("part", "block"),
    [
        (Refusal("No"), {"text": "No"}),
        (
            Image("image/jpg", "AA=="),
            {"image": {"format": "jpeg", "source": {"bytes": "AA=="}}},
        ),
        (
            Image(url="s3://bucket/a.png"),
            {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.png"}}}},
        ),
        (
            File("application/pdf", "AA==", name="My report_v2.pdf"),
            {"document": {"format": "pdf", "name": "My report v2", "source": {"bytes": "AA=="}}},
        ),
        (
            File(data="AA==", name="a.docx"),
            {"document": {"format": "docx", "name": "a", "source": {"bytes": "AA=="}}},
        ),
        (
            File("text/x-log", text="grüß", name="ß.log"),
            {
                "document": {
                    "format": "txt",
                    "name": "document",
                    "source": {"bytes": base64.b64encode("grüß".encode()).decode()},
                }
            },
        ),
        (
            File("video/quicktime", "AA=="),
            {"video": {"format": "mov", "source": {"bytes": "AA=="}}},
        ),
        (
            File(url="s3://bucket/a.mp4"),
            {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://bucket/a.mp4"}}}},
        ),
        (Audio("AA==", "wav"), {"audio": {"format": "wav", "source": {"bytes": "AA=="}}}),
        (Opaque("bedrock_converse", "x", {"x": {"y": 1}}), {"x": {"y": 1}}),
    ],
)
def test_each_kind_of_content_has_its_block(part: Part, block: Mapping[str, Any]) -> None:
    assert [{"text": "Look"}, block] == content(Text("Look"), part)


@pytest.mark.bug("B110")
@pytest.mark.parametrize(
    "part",
    [
        Image("image/tiff", "AA=="),
        Image("image/png", url="https://example.com/a.png"),
        Image(file_id="f"),
        File("application/zip", "AA=="),
        File("application/pdf", url="https://example.com/a.pdf"),
        File("application/pdf", file_id="f"),
        Audio("AA==", "midi"),
        Audio(id="a"),
    ],
)
def test_content_that_cannot_be_sent_is_refused_by_name(part: Part) -> None:
    with pytest.raises(InputError) as caught:
        content(Text("Look"), part)
    assert "messages.0" == caught.value.param


def test_documents_have_names_of_their_own_and_a_text_beside_them() -> None:
    file = File("application/pdf", "AA==", name="a.pdf")
    first, *blocks = content(file, file, File("text/csv", "AA=="))

    assert {"text": "a, a 2, document"} == first
    assert ["a", "a 2", "document"] == [each["document"]["name"] for each in blocks]


@pytest.mark.bug("K34")
def test_items_of_other_providers_are_noted() -> None:
    notes = Notes()
    prompt = asked(Message("user", (Text("a"), Opaque("anthropic_messages", "web_search", {}))))

    assert [{"text": "a"}] == written(prompt, notes=notes)["messages"][0]["content"]
    assert ["web_search"] == lost(notes)


@pytest.mark.bug("B105", "B112")
def test_results_and_what_the_user_says_besides_are_one_turn() -> None:
    prompt = asked(*CALLED, Message("user", (Text("And?"),)), tools=(WEATHER,))
    messages = written(prompt)["messages"]

    assert ["user", "assistant", "user"] == [each["role"] for each in messages]
    assert 12345678901234567890 == messages[1]["content"][0]["toolUse"]["input"]["n"]
    assert [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "Sunny"}]}},
        {"text": "And?"},
    ] == messages[2]["content"]


@pytest.mark.bug("B112")
def test_arguments_are_objects_or_refused() -> None:
    def history(arguments: str) -> Prompt:
        return asked(*HELLO, Message("assistant", (ToolCall("c", "f", arguments),)))

    for empty in ("", " "):
        call = written(history(empty))["messages"][1]["content"][0]["toolUse"]
        assert {"toolUseId": "c", "name": "f", "input": {}} == call
    for broken in ('{"a":', "[1]", "null", '"x"'):
        with pytest.raises(InputError):
            written(history(broken))
    custom = asked(*HELLO, Message("assistant", (ToolCall("c", "f", "ls", custom=True),)))
    assert {"input": "ls"} == written(custom)["messages"][1]["content"][0]["toolUse"]["input"]


def test_the_mark_of_an_error_goes_where_it_is_known() -> None:
    result = Message("tool", (ToolResult("c1", (Text("No"),), is_error=True),))
    prompt = asked(*CALLED[:2], result)
    for model, status in ((CLAUDE, "error"), (NOVA, "error"), (OPAQUE, "error"), (LLAMA, None)):
        notes = Notes()
        block = written(prompt, model, notes)["messages"][2]["content"][0]
        assert status == block["toolResult"].get("status")
        assert (status is None) == bool(notes.warnings)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [('{"t": 20}', {"t": 20}), ("Sunny", {"result": "Sunny"}), ("[1]", {"result": "[1]"})],
)
def test_a_result_is_an_object_where_texts_are_not_taken(text: str, wanted: Any) -> None:
    picture = Image("image/png", "AA==")
    prompt = asked(*CALLED[:2], Message("tool", (ToolResult("c1", (Text(text), picture)),)))
    body = written(prompt, "mistral.mistral-large-2407-v1:0")
    first, second = body["messages"][2]["content"][0]["toolResult"]["content"]

    assert {"json": wanted} == first
    assert "image" in second


@pytest.mark.bug("K32", "B100")
def test_sealed_reasoning_goes_back_byte_for_byte() -> None:
    parts = (
        Thinking("Hm", "c2ln", maker="anthropic"),
        Thinking("", "c2ln", maker="anthropic"),
        Thinking(redacted="Esealed", maker="anthropic"),
        Thinking(redacted="/////w==", maker="bedrock"),
        Thinking(),
        Text("So"),
    )
    blocks = written(asked(*HELLO, Message("assistant", parts), *HELLO))["messages"][1]["content"]

    assert [
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "RXNlYWxlZA=="}},
        {"reasoningContent": {"redactedContent": "/////w=="}},
        {"text": "So"},
    ] == blocks


@pytest.mark.bug("B109")
def test_cache_marks_stand_behind_what_they_mark() -> None:
    mark, hour = CacheMark(), CacheMark("1h")
    point, long = (
        {"cachePoint": {"type": "default"}},
        {"cachePoint": {"type": "default", "ttl": "1h"}},
    )
    prompt = asked(
        Message("system", (Text("S", cache=mark), Text("T"))),
        Message("user", (Text("U", cache=hour),)),
        Message("assistant", (codec.replace(CALL, cache=mark),)),
        Message("tool", (ToolResult("c1", (Text("R", cache=mark),)),)),
        tools=(codec.replace(WEATHER, cache=mark),),
    )
    body = written(prompt)

    assert [{"text": "S"}, point, {"text": "T"}] == body["system"]
    assert [{"text": "U"}, long] == body["messages"][0]["content"]
    for at in (1, 2):
        assert point == body["messages"][at]["content"][1]
    assert point == body["toolConfig"]["tools"][1]
    notes = Notes()
    nova = written(asked(Message("user", (Text("U", cache=hour),))), NOVA, notes)
    assert point == nova["messages"][0]["content"][1]
    assert ["ttl of a cache marker"] == lost(notes)


def test_a_beginning_of_the_answer_does_not_end_in_blanks() -> None:
    body = written(asked(*HELLO, Message("assistant", (Text("It is \n"),))))
    assert [{"text": "It is"}] == body["messages"][1]["content"]


def test_a_system_prompt_is_text() -> None:
    with pytest.raises(InputError):
        written(asked(Message("system", (Image("image/png", "AA=="),)), *HELLO))


def test_what_has_no_place_is_noted() -> None:
    notes = Notes()
    prompt = asked(Message("user", (Image("image/png", "AA==", detail="low"),), name="Ann"))
    written(prompt, notes=notes)

    assert ["name of a message", "detail of an image"] == lost(notes)


@pytest.mark.parametrize(
    ("model", "makers", "prefill", "marks", "stops"),
    [
        (CLAUDE, True, True, 4, 2500),
        (NEWEST, True, False, 4, 2500),
        (NOVA, False, True, 4, 4),
        (LLAMA, False, False, 0, 2500),
        (OPAQUE, True, False, 4, 2500),
    ],
)
def test_the_grammar_is_that_of_the_family(
    model: str, makers: bool, prefill: bool, marks: int, stops: int
) -> None:
    grammar = CONVERSE.grammar(Facts("bedrock", model))

    assert makers == ("anthropic" in grammar.makers)
    assert (prefill, marks, stops) == (grammar.prefill, grammar.cache_marks, grammar.most_stops)
    assert grammar is CONVERSE.grammar(Facts("bedrock", model))


def test_an_arn_is_one_segment_of_the_path() -> None:
    path = CONVERSE.path(Facts("bedrock", OPAQUE, stream=True))

    assert path == (
        b"/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3A"
        b"application-inference-profile%2Fabc123/converse-stream"
    )
