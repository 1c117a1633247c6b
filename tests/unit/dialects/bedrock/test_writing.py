"""What a caller asks for becomes Converse's own words, the model's fields, a note or a refusal; nothing is lost."""

import base64
import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
    CacheMark,
    File,
    Format,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Reasoning,
    Refusal,
    Sampling,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.bedrock.converse import Converse
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts

CONVERSE = Converse()
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OLD = "anthropic.claude-3-haiku-20240307-v1:0"
NEWEST = "global.anthropic.claude-opus-4-7"
NOVA = "us.amazon.nova-2-lite-v1:0"
GPT = "openai.gpt-oss-120b-1:0"
LLAMA = "us.meta.llama3-3-70b-instruct-v1:0"
OPAQUE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
HELLO = (Message("user", (Text("Hello"),)),)
WEATHER = Tool("weather", "How it is", {"type": "object"}, strict=True)
CALL = ToolCall("c1", "weather", '{"n": 12345678901234567890}')
CALLED = (
    *HELLO,
    Message("assistant", (CALL,)),
    Message("tool", (ToolResult("c1", (Text("Sunny"),)),)),
)


def asked(*messages: Message, **settings: Any) -> Prompt:
    return Prompt("openai_chat", messages or HELLO, **settings)


def written(prompt: Prompt, model: str = CLAUDE, notes: Notes | None = None) -> dict[str, Any]:
    fields = CONVERSE.write_request(prompt, Facts("bedrock", model, 64_000), notes or Notes())
    return json.loads(codec.join(fields))


def lost(notes: Notes) -> list[str]:
    return [text.partition(":")[0] for text in notes.warnings]


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


CHOICES = {
    "absent": None,
    "auto": ToolChoice("auto"),
    "none": ToolChoice("none"),
    "required": ToolChoice("required"),
    "named": ToolChoice("named", ("weather",)),
}
FORCED: Mapping[str, Mapping[str, Any]] = {
    "required": {"any": {}},
    "named": {"tool": {"name": "weather"}},
}
OWN = {
    "required": {"type": "any"},
    "named": {"type": "tool", "name": "weather"},
    "absent": {"type": "auto"},
    "auto": {"type": "auto"},
}


@pytest.mark.bug("B103")
@pytest.mark.parametrize(
    ("mode", "parallel", "has_tools"),
    list(itertools.product(CHOICES, (None, True, False), (True, False))),
)
def test_every_choice_of_tools_is_written_as_it_is_meant(
    mode: str, parallel: bool | None, has_tools: bool
) -> None:
    tools = (WEATHER,) if has_tools else ()
    body = written(asked(tools=tools, choice=CHOICES[mode], parallel=parallel))
    config = body.get("toolConfig", {})
    fields = body.get("additionalModelRequestFields", {})
    is_offered = has_tools and mode != "none"

    assert is_offered == bool(config.get("tools"))
    assert (FORCED.get(mode) if is_offered else None) == config.get("toolChoice")
    if is_offered and parallel is False:
        assert {**OWN[mode], "disable_parallel_tool_use": True} == fields["tool_choice"]
    else:
        assert "tool_choice" not in fields


@pytest.mark.bug("B103", "B116")
def test_tools_stay_while_a_history_holds_calls() -> None:
    notes = Notes()
    none = written(asked(*CALLED, tools=(WEATHER,), choice=ToolChoice("none")), notes=notes)
    assert "weather" == none["toolConfig"]["tools"][0]["toolSpec"]["name"]
    assert ["tool_choice"] == lost(notes)
    bare = written(asked(*CALLED))
    spec: Mapping[str, Any] = {
        "name": "weather",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }
    assert {"tools": [{"toolSpec": spec}]} == bare["toolConfig"]


def test_only_allowed_tools_are_offered() -> None:
    other = Tool("other")
    body = written(asked(tools=(WEATHER, other), choice=ToolChoice("required", ("other",))))

    assert ["other"] == [each["toolSpec"]["name"] for each in body["toolConfig"]["tools"]]
    assert {"any": {}} == body["toolConfig"]["toolChoice"]


@pytest.mark.bug("K34")
def test_tools_that_are_no_functions_are_sent_back_to_their_maker_or_refused() -> None:
    own = ServerTool("bedrock_converse", "systemTool", {"systemTool": {"name": "nova_grounding"}})
    assert [dict(own.value)] == written(asked(tools=(own,)), NOVA)["toolConfig"]["tools"]
    for tool in (ServerTool("openai_responses", "web_search", {}), Tool("patch", custom=True)):
        with pytest.raises(InputError):
            written(asked(tools=(tool,)))


@pytest.mark.bug("K34")
def test_strict_and_single_calls_are_asked_of_models_that_know_them() -> None:
    prompt = asked(tools=(WEATHER,), parallel=False)
    for model, strict, single in ((CLAUDE, True, True), (GPT, True, False), (OLD, None, False)):
        notes = Notes()
        body = written(prompt, model, notes)
        assert strict == body["toolConfig"]["tools"][0]["toolSpec"].get("strict")
        assert single == ("additionalModelRequestFields" in body)
        wanted = ["strict of a tool"] * (not strict) + ["parallel_tool_calls"] * (not single)
        assert wanted == lost(notes)


@pytest.mark.bug("K34")
def test_the_form_of_the_answer_is_a_schema_in_a_text() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    form = Format("schema", "number", schema, description="A number")
    notes = Notes()
    body = written(asked(format=form), notes=notes)["outputConfig"]["textFormat"]

    told = body["structure"]["jsonSchema"]
    assert ("json_schema", "number", "A number") == (
        body["type"],
        told["name"],
        told["description"],
    )
    assert {**schema, "additionalProperties": False} == json.loads(told["schema"])
    assert [] == lost(notes)
    assert "outputConfig" not in written(asked(format=Format("json")), notes=notes)
    assert ["response_format"] == lost(notes)
    assert "outputConfig" not in written(asked(format=Format("text")))


@pytest.mark.bug("K34")
def test_sampling_is_said_where_it_is_taken() -> None:
    sampling = Sampling(temperature=1.5, top_p=0.5, top_k=7, stop=("END",), seed=1, logprobs=True)
    notes = Notes()
    body = written(asked(sampling=sampling, max_tokens=9), OLD, notes)

    wanted = {"maxTokens": 9, "temperature": 1, "topP": 0.5, "stopSequences": ["END"]}
    assert wanted == body["inferenceConfig"]
    assert {"top_k": 7} == body["additionalModelRequestFields"]
    assert ["/stop_sequence"] == body["additionalModelResponseFieldPaths"]
    assert ["seed", "logprobs", "temperature"] == lost(notes)


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("model", "inference", "fields", "noted"),
    [
        (CLAUDE, {"temperature": 0.5}, {"top_k": 7}, ["top_p"]),
        (NEWEST, None, None, ["temperature", "top_p", "top_k"]),
        (NOVA, {"temperature": 0.5, "topP": 0.5}, {"inferenceConfig": {"topK": 7}}, []),
        ("mistral.mistral-large-2407-v1:0", {"temperature": 0.5, "topP": 0.5}, {"top_k": 7}, []),
        ("cohere.command-r-v1:0", {"temperature": 0.5, "topP": 0.5}, {"k": 7}, []),
        (LLAMA, {"temperature": 0.5, "topP": 0.5}, None, ["top_k"]),
    ],
)
def test_sampling_is_what_the_family_takes(
    model: str, inference: Any, fields: Any, noted: list[str]
) -> None:
    notes = Notes()
    body = written(asked(sampling=Sampling(temperature=0.5, top_p=0.5, top_k=7)), model, notes)

    assert inference == body.get("inferenceConfig")
    assert fields == body.get("additionalModelRequestFields")
    assert noted == lost(notes)


@pytest.mark.bug("K34")
def test_more_than_one_answer_is_refused() -> None:
    with pytest.raises(InputError):
        written(asked(sampling=Sampling(n=2)))
    assert written(asked(sampling=Sampling(n=1)))


ADAPTIVE = {"thinking": {"type": "adaptive"}}


@pytest.mark.bug("K34", "B111")
@pytest.mark.parametrize(
    ("model", "reasoning", "fields", "effort", "noted"),
    [
        (
            CLAUDE,
            Reasoning(enabled=True, budget=2000),
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            None,
            [],
        ),
        (NEWEST, Reasoning(effort="high"), ADAPTIVE, "high", []),
        (NEWEST, Reasoning(enabled=False), {"thinking": {"type": "disabled"}}, None, []),
        (OLD, Reasoning(effort="high"), None, None, ["reasoning"]),
        (OLD, Reasoning(enabled=False), None, None, []),
        (GPT, Reasoning(effort="xhigh"), {"reasoning_effort": "high"}, None, ["reasoning_effort"]),
        (GPT, Reasoning(enabled=True), {"reasoning_effort": "medium"}, None, []),
        (
            GPT,
            Reasoning(enabled=True, budget=1024),
            {"reasoning_effort": "low"},
            None,
            ["reasoning_effort"],
        ),
        (GPT, Reasoning(effort="none"), None, None, []),
        (
            NOVA,
            Reasoning(effort="low"),
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}},
            None,
            [],
        ),
        (LLAMA, Reasoning(effort="low"), None, None, ["reasoning_effort"]),
        (LLAMA, Reasoning(summary="auto"), None, None, []),
        (OPAQUE, Reasoning(effort="low"), None, None, ["reasoning_effort"]),
    ],
)
def test_each_family_is_told_in_its_words_how_much_to_think(
    model: str, reasoning: Reasoning, fields: Any, effort: str | None, noted: list[str]
) -> None:
    notes = Notes()
    body = written(asked(reasoning=reasoning, max_tokens=9000), model, notes)

    assert fields == body.get("additionalModelRequestFields")
    assert effort == body.get("outputConfig", {}).get("effort")
    assert noted == lost(notes)


def test_nova_thinks_hardest_only_without_limits() -> None:
    notes = Notes()
    free = written(asked(reasoning=Reasoning(effort="high")), NOVA, notes)
    bound = written(asked(reasoning=Reasoning(effort="high"), max_tokens=5), NOVA, notes)

    efforts = [
        body["additionalModelRequestFields"]["reasoningConfig"]["maxReasoningEffort"]
        for body in (free, bound)
    ]
    assert ["high", "medium"] == efforts
    assert ["reasoning_effort"] == lost(notes)


@pytest.mark.bug("B111")
def test_a_limit_is_said_where_thinking_needs_one_and_else_left_to_the_model() -> None:
    assert "inferenceConfig" not in written(asked())
    body = written(asked(reasoning=Reasoning(enabled=True, budget=2000)))
    assert 64_000 == body["inferenceConfig"]["maxTokens"]


def test_thinking_is_drawn_at_one() -> None:
    notes = Notes()
    prompt = asked(reasoning=Reasoning(enabled=True, budget=2000), sampling=Sampling(0.5, top_k=3))
    body = written(prompt, notes=notes)

    assert "temperature" not in body["inferenceConfig"]
    assert {"thinking"} == body["additionalModelRequestFields"].keys()
    assert ["temperature", "top_k"] == lost(notes)


@pytest.mark.bug("K34")
def test_what_concerns_the_account_is_said_or_noted() -> None:
    notes = Notes()
    metadata = {"team": "a b", "bad": "ü", "number": 5, **{f"k{n}": "v" for n in range(20)}}
    body = written(
        asked(
            metadata=metadata,
            service_tier="flex",
            user="u",
            store=True,
            cache_key="k",
            verbosity="low",
        ),
        notes=notes,
    )

    assert {"type": "flex"} == body["serviceTier"]
    assert 16 == len(body["requestMetadata"])
    assert "a b" == body["requestMetadata"]["team"]
    assert {
        "user",
        "store",
        "prompt_cache_key",
        "verbosity",
        "metadata.bad",
        "metadata.number",
    } < set(lost(notes))
    for tier, wanted, noted in (
        ("auto", None, []),
        ("default", {"type": "default"}, []),
        ("standard_only", {"type": "default"}, ["service_tier"]),
        ("scale", None, ["service_tier"]),
    ):
        notes = Notes()
        assert wanted == written(asked(service_tier=tier), notes=notes).get("serviceTier")
        assert noted == lost(notes)


@pytest.mark.bug("K34")
def test_fields_of_converse_itself_go_on_and_unknown_ones_are_noted() -> None:
    guardrail = {"guardrailIdentifier": "g", "guardrailVersion": "1"}
    extra = {
        "guardrailConfig": guardrail,
        "performanceConfig": {"latency": "optimized"},
        "additionalModelRequestFields": {"top_k": 9, "x": 1},
        "anthropic_beta": ["b"],
        "odd": 1,
    }
    notes = Notes()
    body = written(asked(extra=extra, sampling=Sampling(top_k=3)), notes=notes)

    assert guardrail == body["guardrailConfig"]
    assert {"latency": "optimized"} == body["performanceConfig"]
    assert {"top_k": 9, "x": 1, "anthropic_beta": ["b"]} == body["additionalModelRequestFields"]
    assert ["odd"] == lost(notes)
    notes = Notes()
    written(asked(extra={"anthropic_beta": ["b"]}), NOVA, notes)
    assert ["anthropic_beta"] == lost(notes)


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
