"""JSON of models that know no form of answers: a call that must be made, given back as text (K34)."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Choice,
    Collector,
    Delta,
    Event,
    Finish,
    Finished,
    PartBegan,
    PartEnded,
    events_of,
)
from gateway.core.errors import InputError
from gateway.core.message import Part, Text, Thinking, ToolCall
from gateway.dialects.base import StreamRules
from gateway.dialects.fit.forced_form import NAME, FormCall
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import Written, write
from tests.support.event_stream import event

Json = dict[str, Any]
SCHEMA: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
FORMS: dict[str, Callable[[Json | None], Json]] = {
    "openai_chat": lambda schema: {
        "response_format": {"type": "json_object"}
        if schema is None
        else {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, "strict": True}}
    },
    "openai_responses": lambda schema: {
        "text": {
            "format": {"type": "json_object"}
            if schema is None
            else {"type": "json_schema", "name": "a", "schema": schema}
        }
    },
    "anthropic_messages": lambda schema: {
        "output_config": {"format": {"type": "json_schema", "schema": schema or {}}}
    },
}
OLD = {
    "anthropic_messages": Facts("anthropic", "claude-sonnet-4-20250514"),
    "vertex_anthropic": Facts("vertex", "claude-sonnet-4-5@20250929"),
    "bedrock_anthropic": Facts("bedrock", "us.anthropic.claude-opus-4-7"),
    "bedrock_converse": Facts("bedrock", "anthropic.claude-3-haiku-20240307-v1:0"),
}
NOVA = Facts("bedrock", "us.amazon.nova-lite-v1:0")
RULES = StreamRules(hide_usage=False, done_required=False)
ARGUMENTS = '{"n": 1}'

pytestmark = pytest.mark.bug("K34")


def asked(caller: str, form: Json, **more: Any) -> codec.Fields:
    """Return a request in a caller's format."""
    said: Json = {"model": "m", **form, **more}
    if caller == "openai_responses":
        said["input"] = "Hi"
    else:
        said["messages"] = [{"role": "user", "content": "Hi"}]
    if caller == "anthropic_messages":
        said["max_tokens"] = 100
    return codec.split(codec.encode(said))


def written(caller: str, target: str, facts: Facts, fields: codec.Fields, notes: Notes) -> Written:
    side, wire = CALLERS[caller], TARGETS[target]
    prompt = side.read_request(fields, notes)
    told = Told("req_1", "m", 1, prompt)
    return write(prompt, side, wire, facts, wire.grammar(facts), told, notes)


def body_of(made: Written) -> Json:
    return json.loads(codec.join(made.fields))


def tool_of(target: str, body: Json) -> tuple[Json, Json]:
    """Return the schema of the one tool that is offered, and how it must be called."""
    if target == "bedrock_converse":
        (tool,) = body["toolConfig"]["tools"]
        return tool["toolSpec"]["inputSchema"]["json"], body["toolConfig"]["toolChoice"]
    (tool,) = body["tools"]
    return tool["input_schema"], body["tool_choice"]


@pytest.mark.parametrize("caller", sorted(FORMS))
@pytest.mark.parametrize("target", sorted(OLD))
def test_a_schema_is_what_a_tool_that_must_be_called_takes(caller: str, target: str) -> None:
    notes = Notes()
    fields = asked(caller, FORMS[caller](SCHEMA))
    body = body_of(written(caller, target, OLD[target], fields, notes))

    schema, choice = tool_of(target, body)
    assert schema == SCHEMA
    assert choice == ({"any": {}} if target == "bedrock_converse" else {"type": "any"})
    assert not {"output_config", "outputConfig"} & body.keys()
    assert [text for text in notes.warnings if "this target follows the schema" in text]


@pytest.mark.parametrize("caller", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("target", sorted(OLD))
def test_any_json_is_what_an_open_tool_takes(caller: str, target: str) -> None:
    notes = Notes()
    fields = asked(caller, FORMS[caller](None))
    body = body_of(written(caller, target, OLD[target], fields, notes))

    schema, _ = tool_of(target, body)
    assert schema == {"type": "object", "additionalProperties": True}
    assert not notes.warnings


@pytest.mark.parametrize(
    ("target", "facts"),
    [
        ("anthropic_messages", Facts("anthropic", "claude-haiku-4-5")),
        ("anthropic_messages", Facts("anthropic", "claude-fable-5")),
        ("vertex_anthropic", Facts("vertex", "claude-sonnet-4-6")),
        ("bedrock_anthropic", Facts("bedrock", "anthropic.claude-opus-4-5-20251101-v1:0")),
        ("bedrock_converse", Facts("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0")),
        ("bedrock_converse", Facts("bedrock", "openai.gpt-oss-120b-1:0")),
    ],
)
def test_a_schema_that_a_model_knows_is_left_to_it(target: str, facts: Facts) -> None:
    form = FORMS["openai_chat"](SCHEMA)
    tools = [{"type": "function", "function": {"name": "f"}}]
    fields = asked("openai_chat", form, tools=tools, reasoning_effort="high")
    body = body_of(written("openai_chat", target, facts, fields, Notes()))

    assert NAME not in json.dumps(body)
    assert {"output_config", "outputConfig"} & body.keys()


@pytest.mark.parametrize("caller", ["openai_chat", "openai_responses"])
def test_what_a_forced_call_excludes_is_refused_with_the_reason(caller: str) -> None:
    function: Json = {"name": "f", "parameters": {"type": "object"}}
    is_chat = caller == "openai_chat"
    tool = {"type": "function", **({"function": function} if is_chat else function)}
    thinking = {"reasoning_effort": "high"} if is_chat else {"reasoning": {"effort": "high"}}
    name = "response_format" if is_chat else "text.format"
    for more, beside in (({"tools": [tool]}, "tools"), (thinking, "thinking")):
        fields = asked(caller, FORMS[caller](None), **more)
        with pytest.raises(InputError) as caught:
            written(caller, "bedrock_anthropic", OLD["bedrock_anthropic"], fields, Notes())
        assert caught.value.code == "invalid_request"
        assert caught.value.param == name
        assert caught.value.message.startswith(f"{name} (with {beside}): is had of this target")


def test_thinking_that_a_model_does_not_know_is_no_hindrance() -> None:
    fields = asked("openai_chat", FORMS["openai_chat"](None), reasoning_effort="high")
    for facts in (OLD["bedrock_converse"], NOVA):
        notes = Notes()
        body = body_of(written("openai_chat", "bedrock_converse", facts, fields, notes))
        assert tool_of("bedrock_converse", body)[1] == {"any": {}}
        assert notes.warnings, facts


@pytest.mark.parametrize("target", ["bedrock_anthropic", "bedrock_converse"])
@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-5"])
def test_tools_are_not_asked_to_keep_schemas_where_bedrock_refuses_that(
    target: str, model: str
) -> None:
    function = {"name": "f", "parameters": SCHEMA, "strict": True}
    fields = asked("openai_chat", {}, tools=[{"type": "function", "function": function}])
    notes = Notes()
    body = written("openai_chat", target, Facts("bedrock", f"anthropic.{model}"), fields, notes)

    assert "strict" not in codec.join(body.fields).decode()
    assert any(text.startswith("strict of") for text in notes.warnings)


def test_tools_that_must_not_be_called_are_no_hindrance() -> None:
    tools = [{"type": "function", "function": {"name": NAME}}]
    fields = asked("openai_chat", FORMS["openai_chat"](SCHEMA), tools=tools, tool_choice="none")
    made = written("openai_chat", "anthropic_messages", OLD["anthropic_messages"], fields, Notes())

    body = body_of(made)
    assert [tool["name"] for tool in body["tools"]] == [NAME, NAME + "_"]
    assert body["tool_choice"] == {"type": "tool", "name": NAME + "_"}


@pytest.mark.parametrize(
    ("target", "facts", "schema"),
    [
        ("bedrock_converse", Facts("bedrock", "meta.llama3-3-70b-instruct-v1:0"), SCHEMA),
        ("bedrock_anthropic", Facts("bedrock", "anthropic.claude-fable-5"), SCHEMA),
        ("anthropic_messages", Facts("anthropic", "claude-mythos-5"), None),
        ("anthropic_messages", OLD["anthropic_messages"], {"type": "array"}),
        ("openai_chat", Facts("perplexity", "sonar"), None),
    ],
)
def test_what_cannot_be_had_is_refused(target: str, facts: Facts, schema: Json | None) -> None:
    fields = asked("openai_chat", FORMS["openai_chat"](schema))
    with pytest.raises(InputError, match="is a form of answers that this target cannot be held to"):
        written("openai_chat", target, facts, fields, Notes())


def test_an_effort_of_messages_is_no_thinking() -> None:
    form = FORMS["anthropic_messages"](SCHEMA)
    form["output_config"]["effort"] = "low"
    fields = asked("anthropic_messages", form)
    body = body_of(
        written(
            "anthropic_messages", "bedrock_anthropic", OLD["bedrock_anthropic"], fields, Notes()
        )
    )

    assert body["output_config"] == {"effort": "low"}
    assert tool_of("bedrock_anthropic", body) == (SCHEMA, {"type": "any"})


def test_a_model_that_thinks_unasked_is_told_not_to() -> None:
    facts = Facts("anthropic", "claude-sonnet-5")
    fields = asked("openai_chat", FORMS["openai_chat"](None))
    body = body_of(written("openai_chat", "anthropic_messages", facts, fields, Notes()))

    assert body["thinking"] == {"type": "disabled"}
    assert body["tool_choice"] == {"type": "any"}


def test_deepseek_knows_json_and_is_made_call_a_tool_for_a_schema() -> None:
    facts = Facts("deepseek", "deepseek-v4-pro")
    fields = asked("openai_responses", FORMS["openai_responses"](None))
    body = body_of(written("openai_responses", "openai_chat", facts, fields, Notes()))
    assert body["response_format"] == {"type": "json_object"}

    fields = asked("openai_responses", FORMS["openai_responses"](SCHEMA))
    body = body_of(written("openai_responses", "openai_chat", facts, fields, Notes()))
    assert body["tools"][0]["function"]["parameters"] == SCHEMA
    assert (body["tool_choice"], body["thinking"]) == ("required", {"type": "disabled"})
    assert "response_format" not in body


def test_a_begun_answer_is_gone_on_with_by_the_user() -> None:
    notes = Notes()
    fields = asked("openai_chat", FORMS["openai_chat"](None))
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "{"}]
    fields["messages"] = codec.raw(said)
    made = written("openai_chat", "anthropic_messages", OLD["anthropic_messages"], fields, notes)

    assert body_of(made)["messages"][-1]["role"] == "user"
    assert any("which this target does not continue" in text for text in notes.warnings)


def messages_answer() -> Json:
    call = {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": {"n": 1}}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "Sure."}, call],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }


def messages_stream() -> bytes:
    whole = messages_answer()
    pieces = [{"type": "input_json_delta", "partial_json": each} for each in ("", '{"n"', ": 1}")]
    events: list[Json] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Sure."},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {**whole["content"][1], "input": {}},
        },
        *({"type": "content_block_delta", "index": 1, "delta": piece} for piece in pieces),
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def converse_stream() -> bytes:
    start = {"toolUse": {"toolUseId": "tooluse_1", "name": NAME}}
    return b"".join(
        [
            event("messageStart", {"role": "assistant"}),
            event("contentBlockStart", {"contentBlockIndex": 0, "start": start}),
            *(
                event(
                    "contentBlockDelta",
                    {"contentBlockIndex": 0, "delta": {"toolUse": {"input": each}}},
                )
                for each in ('{"n"', ": 1}")
            ),
            event("contentBlockStop", {"contentBlockIndex": 0}),
            event("messageStop", {"stopReason": "tool_use"}),
            event("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}),
        ]
    )


def text_of(caller: str, body: Json) -> tuple[str, str]:
    """Return the text of a whole answer and why it ended."""
    match caller:
        case "openai_chat":
            (choice,) = body["choices"]
            assert not choice["message"].get("tool_calls")
            return choice["message"]["content"], choice["finish_reason"]
        case "anthropic_messages":
            (block,) = body["content"]
            return block["text"], body["stop_reason"]
        case _:
            (item,) = body["output"]
            return item["content"][0]["text"], body["status"]


ENDS = {"openai_chat": "stop", "anthropic_messages": "end_turn", "openai_responses": "completed"}


@pytest.mark.parametrize("caller", sorted(FORMS))
def test_a_whole_answer_is_the_arguments_as_text(caller: str) -> None:
    notes = Notes()
    fields = asked(caller, FORMS[caller](SCHEMA))
    made = written(caller, "anthropic_messages", OLD["anthropic_messages"], fields, notes)
    whole, answer = made.translation.read_whole(json.dumps(messages_answer()).encode(), RULES)

    assert text_of(caller, json.loads(whole)) == ('{"n":1}', ENDS[caller])
    assert answer.choices[0].finish == "stop"
    assert any(text.startswith("a part of the answer") for text in notes.warnings)


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("caller", sorted(FORMS))
@pytest.mark.parametrize("target", ["anthropic_messages", "bedrock_converse"])
def test_a_stream_is_the_arguments_as_text(caller: str, target: str, size: int) -> None:
    fields = asked(caller, FORMS[caller](SCHEMA), stream=True)
    made = written(caller, target, OLD[target], fields, Notes())
    body = messages_stream() if target == "anthropic_messages" else converse_stream()
    watcher = made.translation.watch(RULES)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    out = b"".join(map(watcher.feed, pieces)) + watcher.end(complete=True)

    assert watcher.done
    assert b"Sure" not in out
    assert NAME.encode() not in out
    (choice,) = watcher.collector.answer().choices
    assert (choice.parts, choice.finish) == ((Text(ARGUMENTS),), "stop")
    said = [json.loads(line[6:]) for line in out.decode().split("\n") if line[:7] == "data: {"]
    assert "".join(pieces_of(caller, said)) == ARGUMENTS


def pieces_of(caller: str, said: Sequence[Json]) -> list[str]:
    """Return the pieces of text in a stream."""
    match caller:
        case "openai_chat":
            choices = [choice for chunk in said for choice in chunk["choices"]]
            return [choice["delta"].get("content") or "" for choice in choices]
        case "anthropic_messages":
            deltas = [each["delta"] for each in said if each["type"] == "content_block_delta"]
            return [delta["text"] for delta in deltas]
        case _:
            return [each["delta"] for each in said if each["type"] == "response.output_text.delta"]


def call(arguments: str) -> ToolCall:
    return ToolCall("c", NAME, arguments)


@pytest.mark.parametrize(
    ("parts", "finish", "left", "end", "told"),
    [
        ((call("{}"),), "tool_calls", (Text("{}"),), "stop", 0),
        ((call(""),), "tool_calls", (Text("{}"),), "stop", 0),
        ((call('{"n":'),), "length", (Text('{"n":'),), "length", 0),
        ((Thinking("hm"), call("{}")), "tool_calls", (Thinking("hm"), Text("{}")), "stop", 0),
        ((Text("a"), call("{}"), Text("b"), call("1")), "tool_calls", (Text("{}"),), "stop", 1),
        ((Text(" "), call("{}")), "tool_calls", (Text("{}"),), "stop", 0),
        ((Text("I will not."),), "refusal", (Text("I will not."),), "refusal", 0),
        ((), "stop", (), "stop", 0),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_an_answer_becomes(
    parts: tuple[Part, ...],
    finish: Finish,
    left: tuple[Part, ...],
    end: Finish,
    told: int,
    *,
    streamed: bool,
) -> None:
    notes = Notes()
    form = FormCall(NAME, notes)
    answer = Answer("x", "i", "m", (Choice(0, parts, finish),))
    if streamed:
        collector, stream = Collector("x"), form.stream()
        for each in in_pieces(events_of(answer)):
            collector.add(stream.events([each]))
        found = collector.answer()
    else:
        found = form.answer(answer)

    assert (found.choices[0].parts, found.choices[0].finish) == (left, end)
    assert len(notes.warnings) == told


def in_pieces(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events with what parts say in a delta of its own."""
    found: list[Event] = []
    for each in events:
        match each:
            case PartBegan(choice, at, Text(text=text) as part):
                bare = codec.replace(part, text="")
                found += [PartBegan(choice, at, bare), *([Delta(choice, at, text)] if text else [])]
            case PartBegan(choice, at, ToolCall(arguments=text) as part):
                bare = codec.replace(part, arguments="")
                found += [PartBegan(choice, at, bare), *([Delta(choice, at, text)] if text else [])]
            case _:
                found.append(each)
    assert any(isinstance(each, Finished) for each in found)
    assert sum(isinstance(e, PartBegan) for e in found) == sum(
        isinstance(e, PartEnded) for e in found
    )
    return found
