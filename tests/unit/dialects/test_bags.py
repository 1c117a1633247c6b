"""What only the caller's format knows: named in the caller's words at targets that cannot be told, or refused (K34)."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write

Json = dict[str, Any]
FACTS = {
    "anthropic_messages": Facts("anthropic", "claude-opus-4-5"),
    "bedrock_converse": Facts("bedrock", "anthropic.claude-sonnet-4-5-v1:0"),
    "cohere_v2": Facts("cohere", "command-a"),
    "gemini": Facts("gemini", "gemini-2.5-pro"),
    "ollama": Facts("ollama", "llama4"),
    "openai_chat": Facts("openai", "gpt-4.1"),
    "openai_responses": Facts("openai", "gpt-5"),
}
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "string"}}}
FORM = {"type": "json_schema", "name": "n", "schema": SCHEMA, "description": "why"}


def written(caller: str, wire: str, body: Json, facts: Facts | None = None) -> tuple[Json, Notes]:
    notes, side = Notes(), TARGETS[wire]
    facts = facts or FACTS[wire]
    fields = {name: codec.raw(value) for name, value in body.items()}
    prompt = CALLERS[caller].read_request(fields, notes)
    told = Told("req_1", "m", 0, prompt)
    out = write(prompt, CALLERS[caller], side, facts, side.grammar(facts), told, notes)
    return {name: codec.value_of(field) for name, field in out.fields.items()}, notes


def lost(caller: str, wire: str, body: Json, facts: Facts | None = None) -> list[str]:
    return [text.partition(": ")[0] for text in written(caller, wire, body, facts)[1].warnings]


def document(**more: Any) -> Json:
    source = {"type": "text", "media_type": "text/plain", "data": "words"}
    return {"type": "document", "source": source, **more}


def asked(*blocks: Json, **more: Any) -> Json:
    content = [{"type": "text", "text": "Hi"}, *blocks]
    return {"max_tokens": 99, "messages": [{"role": "user", "content": content}], **more}


def answered(*blocks: Json) -> Json:
    results = [
        {"type": "tool_result", "tool_use_id": b["id"], "content": "done"}
        for b in blocks
        if b["type"] == "tool_use"
    ]
    return {
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [*blocks]},
            {"role": "user", "content": [*results, {"type": "text", "text": "More"}]},
        ],
    }


OTHERS = [wire for wire in FACTS if wire != "anthropic_messages"]
BESIDE = {
    "input_examples": [{"a": "b"}],
    "allowed_callers": ["code_execution_20250825"],
    "defer_loading": True,
    "eager_input_streaming": True,
}


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", OTHERS)
def test_members_of_tools_of_messages_are_named(wire: str) -> None:
    tool = {"name": "find", "input_schema": SCHEMA, **BESIDE}

    assert lost("anthropic_messages", wire, asked(tools=[tool])) == [
        f"tools[0].{name}" for name in BESIDE
    ]


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", OTHERS)
def test_what_documents_say_besides_is_named(wire: str) -> None:
    body = asked(document(context="where", citations={"enabled": True}))

    told = ["messages[0].content[1] (file)"] if wire == "openai_chat" else []
    assert lost("anthropic_messages", wire, body) == [
        "messages[0].content[1].context",
        "messages[0].content[1].citations.enabled",
        *told,
    ]


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", OTHERS)
def test_the_title_of_a_document_is_told_or_named(wire: str) -> None:
    body, notes = written("anthropic_messages", wire, asked(document(title="Novel")))

    is_told = b"Novel" in codec.encode(body)
    is_named = any("content[1].title" in text for text in notes.warnings)
    assert is_told is not is_named


NO_FILES = [Facts(kind, "m") for kind in ("openai", "azure", "openrouter", "mistral", "groq")]


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("facts", NO_FILES, ids=lambda facts: facts.kind)
@pytest.mark.parametrize("inside", [False, True], ids=["asked", "in a result"])
def test_a_document_of_plain_text_is_told_as_text(facts: Facts, inside: bool) -> None:
    block = document(title="Novel")
    body = resulted(block) if inside else asked(block)

    out, notes = written("anthropic_messages", "openai_chat", body, facts)

    said = codec.encode(out).decode()
    assert "Novel\\nwords" in said
    assert "file_data" not in said
    assert "data:text" not in said
    assert any("it was sent as text" in text for text in notes.warnings)


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("kind", ["text/csv", "application/json", "text/plain; charset=utf-8"])
def test_a_file_that_holds_text_is_told_as_text(kind: str) -> None:
    given = {"type": "base64", "media_type": kind, "data": "YSxi"}
    block = {"type": "document", "source": given}

    out, _ = written("anthropic_messages", "openai_chat", asked(block))

    assert out["messages"][-1]["content"][-1] == {"type": "text", "text": "a,b"}


@pytest.mark.bug("K33")
@pytest.mark.parametrize("data", ["/9j/", "YQ==YQ=="])
def test_a_file_that_only_claims_to_be_text_is_none(data: str) -> None:
    given = {"type": "base64", "media_type": "text/plain", "data": data}
    block = {"type": "document", "source": given}

    with pytest.raises(InputError, match=r"content\[1\] \(file\)"):
        written("anthropic_messages", "openai_chat", asked(block), Facts("groq", "m"))


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", OTHERS)
@pytest.mark.parametrize("kind", ["image", "document"])
def test_a_file_that_anthropic_keeps_is_refused_elsewhere(wire: str, kind: str) -> None:
    block: Json = {"type": kind, "source": {"type": "file", "file_id": "file_1"}}

    with pytest.raises(InputError, match=r"messages\[0\]\.content\[1\]") as refused:
        written("anthropic_messages", wire, asked(block))

    assert refused.value.http == 400


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", ["bedrock_anthropic", "vertex_anthropic"])
def test_a_file_that_anthropic_keeps_is_refused_at_other_clouds(wire: str) -> None:
    facts = Facts(wire.partition("_")[0], "claude-opus-4-6", 9_000)
    block: Json = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}

    with pytest.raises(InputError, match="another provider keeps"):
        written("anthropic_messages", wire, asked(block), facts)


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", ["openai_responses", "openai_chat"])
def test_files_of_openai_go_on_between_its_formats(wire: str) -> None:
    chat = {"type": "file", "file": {"file_id": "file-1"}}
    item = {"type": "input_file", "file_id": "file-1"}

    for caller, body in (
        ("openai_chat", {"messages": [{"role": "user", "content": [chat]}]}),
        ("openai_responses", {"input": [{"role": "user", "content": [item]}]}),
    ):
        assert b"file-1" in codec.encode(written(caller, wire, body)[0])


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", OTHERS)
def test_members_of_calls_and_citations_are_named(wire: str) -> None:
    cited = {"type": "char_location", "cited_text": "words", "document_index": 0}
    body = answered(
        {"type": "text", "text": "So", "citations": [cited]},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}},
    )

    assert lost("anthropic_messages", wire, body) == [
        "messages[1].content[0].citations",
        "messages[1].content[1].caller.type",
    ]


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", ["cohere_v2", "gemini", "ollama", "openai_chat"])
def test_how_thinking_is_shown_is_named(wire: str) -> None:
    thinking = {"type": "adaptive", "display": "omitted"}

    found = lost("anthropic_messages", wire, asked(thinking=thinking))

    assert "thinking.display" in found


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    "model",
    ["anthropic.claude-sonnet-4-5-v1:0", "amazon.nova-pro-v1:0", "meta.llama3-70b-instruct-v1:0"],
)
def test_an_effort_alone_is_named_where_models_take_none(model: str) -> None:
    body = asked(output_config={"effort": "high"})

    found = lost("anthropic_messages", "bedrock_converse", body, Facts("bedrock", model))

    assert found == ["output_config.effort"]


@pytest.mark.bug("K34")
def test_a_member_of_many_tools_is_named_once_with_their_number() -> None:
    tools = [
        {"name": f"t{at}", "input_schema": SCHEMA, "defer_loading": at > 0} for at in range(40)
    ]

    assert lost("anthropic_messages", "gemini", asked(tools=tools)) == [
        "tools[1].defer_loading and 38 more"
    ]


@pytest.mark.bug("K34")
def test_members_go_back_to_their_own_format() -> None:
    tool = {"name": "find", "input_schema": SCHEMA, **BESIDE}
    body = asked(document(context="where", title="Novel"), tools=[tool])

    out, notes = written("anthropic_messages", "anthropic_messages", body)

    assert out["tools"] == [tool]
    assert out["messages"] == body["messages"]
    assert notes.warnings == []


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", ["anthropic_messages", "cohere_v2", "gemini", "ollama"])
def test_what_a_format_says_of_itself_is_named_in_the_callers_words(wire: str) -> None:
    inner = {key: value for key, value in FORM.items() if key != "type"}
    form = {"type": "json_schema", "json_schema": inner}
    chat = {"messages": [{"role": "user", "content": "Hi"}], "response_format": form}
    responses = {"input": "Hi", "text": {"format": FORM}}

    assert "response_format.json_schema.description" in lost("openai_chat", wire, chat)
    assert "text.format.description" in lost("openai_responses", wire, responses)


@pytest.mark.bug("K34")
@pytest.mark.parametrize("caller", ["openai_chat", "openai_responses"])
def test_an_answer_that_is_to_be_stored_is_told_of_once(caller: str) -> None:
    asks = "input" if caller == "openai_responses" else "messages"
    body = {asks: [{"role": "user", "content": "Hi"}], "store": True}

    out, notes = written(caller, "openai_responses", body)

    assert out["store"] is False
    assert [text.partition(":")[0] for text in notes.warnings] == ["store"]


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", ["anthropic_messages", "cohere_v2", "gemini", "openai_responses"])
def test_annotations_and_members_of_chat_are_named(wire: str) -> None:
    cited = {"url": "https://a.example", "title": "a", "start_index": 0, "end_index": 2}
    said = {
        "role": "assistant",
        "content": "So",
        "annotations": [{"type": "url_citation", "url_citation": cited}],
    }
    tool = {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "kept": 1}}
    asks = {"role": "user", "content": "Hi"}
    body = {"messages": [asks, said, {**asks, "seen": "now"}], "tools": [tool]}

    assert lost("openai_chat", wire, body) == [
        "tools[0].function.kept",
        "messages[1].content[0].annotations",
        "messages[2].seen",
    ]


@pytest.mark.bug("K34")
@pytest.mark.parametrize("wire", ["anthropic_messages", "cohere_v2", "gemini", "openai_chat"])
def test_members_of_responses_are_named(wire: str) -> None:
    cited = {"type": "url_citation", "url": "https://a.example", "start_index": 0, "end_index": 2}
    text = {"type": "output_text", "text": "So", "annotations": [cited]}
    said = {"type": "message", "role": "assistant", "phase": "commentary", "content": [text]}
    tool = {"type": "function", "name": "f", "parameters": SCHEMA, "defer_loading": True}
    asks = {"role": "user", "content": "Hi"}

    assert lost("openai_responses", wire, {"input": [asks, said, asks], "tools": [tool]}) == [
        "tools[0].defer_loading",
        "input[].phase",
        "input[].content[].annotations",
    ]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(("model", "is_ended"), [("gpt-5", True), ("gpt-4.1", False)])
@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses"])
def test_an_answer_that_was_begun_is_ended_where_models_begin_anew(
    wire: str, model: str, is_ended: bool
) -> None:
    body = asked()
    body["messages"].append({"role": "assistant", "content": "So"})

    out, notes = written("anthropic_messages", wire, body, Facts("openai", model))

    turns: list[Json] = out.get("messages") or out["input"]
    assert (turns[-1]["role"] == "user") is is_ended
    assert any("ends with the assistant" in text for text in notes.warnings) is is_ended


FOUND = {
    "type": "search_result",
    "title": "Title",
    "source": "https://a.example",
    "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}],
    "citations": {"enabled": True},
}
NAMED = {"type": "tool_reference", "tool_name": "find"}


def resulted(*content: Json) -> Json:
    call: Json = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [*content]}
    return {
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("wire", OTHERS)
@pytest.mark.parametrize("make", [asked, resulted])
@pytest.mark.parametrize(
    ("block", "said"),
    [(FOUND, "Title\\nhttps://a.example\\nOne\\nTwo"), (NAMED, "find")],
    ids=["search_result", "tool_reference"],
)
def test_search_results_are_told_as_their_texts(
    wire: str, make: Any, block: Json, said: str
) -> None:
    out, notes = written("anthropic_messages", wire, make(block))

    assert said in codec.encode(out).decode()
    assert any(f"({block['type']}): is a kind of content" in text for text in notes.warnings)


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("wire", OTHERS)
@pytest.mark.parametrize("make", [asked, resulted])
@pytest.mark.parametrize(
    "block",
    [{"type": "container_upload", "file_id": "file_1"}, {"type": "hologram", "data": "x"}],
    ids=["container_upload", "unknown"],
)
def test_content_that_cannot_be_told_is_refused_by_name(wire: str, make: Any, block: Json) -> None:
    with pytest.raises(
        InputError, match=rf"\({block['type']}\): is a kind of content that"
    ) as said:
        written("anthropic_messages", wire, make(block))

    assert said.value.http == 400


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("wire", OTHERS)
def test_items_of_a_providers_own_tools_are_left_out_with_a_note(wire: str) -> None:
    body = answered(
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "a"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "So"},
    )

    assert lost("anthropic_messages", wire, body) == [
        "messages[1].content[0] (server_tool_use)",
        "messages[1].content[1] (web_search_tool_result)",
    ]


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("wire", OTHERS)
def test_a_document_of_texts_and_pictures_is_told_in_both(wire: str) -> None:
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    content = [{"type": "text", "text": "Page"}, {"type": "image", "source": picture}]
    block = {"type": "document", "source": {"type": "content", "content": content}}

    out, _ = written("anthropic_messages", wire, asked(block))

    said = codec.encode(out).decode()
    assert "Page" in said
    assert "iVBORw0KGgo=" in said
