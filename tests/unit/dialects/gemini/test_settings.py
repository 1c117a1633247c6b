"""Settings of requests to Gemini and Vertex: each is sent, named as lost, or refused (K34)."""

import json
from typing import Any, Literal

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
    Bag,
    File,
    Format,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Reasoning,
    Sampling,
    ServerTool,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.fit.prompt import fit
from gateway.dialects.gemini.side import GeminiTarget
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts
from tests.support.gemini_requests import about_schema, complaints

GEMINI = GeminiTarget()
FLASH, PRO, LITE = "gemini-2.5-flash", "gemini-2.5-pro", "gemini-2.5-flash-lite"
THIRD, THIRD_PRO = "gemini-3-flash-preview", "gemini-3-pro-preview"
Json = dict[str, Any]
ASKED = (Message("user", (Text("Hi"),)),)


def sent(
    *messages: Message,
    model: str = FLASH,
    kind: str = "gemini",
    lost: list[str] | None = None,
    **fields: Any,
) -> Json:
    """Return the body of a request; `lost` takes the names of what was lost."""
    notes = Notes()
    prompt = Prompt(fields.pop("origin", "openai_chat"), messages or ASKED, **fields)
    body = json.loads(codec.join(GEMINI.write_request(prompt, Facts(kind, model), notes)))
    if lost is not None:
        lost += [warning.partition(":")[0] for warning in notes.warnings]
    return body


THINKING: list[tuple[str, Reasoning, Json | None, bool]] = [
    (FLASH, Reasoning(effort="none"), {"thinkingBudget": 0}, False),
    (FLASH, Reasoning(enabled=False), {"thinkingBudget": 0}, False),
    (FLASH, Reasoning(effort="low"), {"thinkingBudget": 1024, "includeThoughts": True}, False),
    (FLASH, Reasoning(effort="medium"), {"thinkingBudget": 8192, "includeThoughts": True}, False),
    (FLASH, Reasoning(effort="high"), {"thinkingBudget": 24576, "includeThoughts": True}, False),
    (PRO, Reasoning(effort="xhigh"), {"thinkingBudget": 32768, "includeThoughts": True}, False),
    (FLASH, Reasoning(effort="odd"), {"thinkingBudget": -1, "includeThoughts": True}, True),
    (FLASH, Reasoning(enabled=True), {"thinkingBudget": -1, "includeThoughts": True}, False),
    (FLASH, Reasoning(budget=99_999), {"thinkingBudget": 24576, "includeThoughts": True}, True),
    (LITE, Reasoning(budget=100), {"thinkingBudget": 512, "includeThoughts": True}, True),
    (PRO, Reasoning(effort="none"), {"thinkingBudget": 128}, True),
    (PRO, Reasoning(summary="auto"), {"includeThoughts": True}, False),
    (FLASH, Reasoning(effort="low", summary="none"), {"thinkingBudget": 1024}, False),
    (THIRD, Reasoning(effort="minimal"), {"thinkingLevel": "minimal", "includeThoughts": True}, False),
    (THIRD, Reasoning(effort="none"), {"thinkingLevel": "minimal"}, True),
    (THIRD, Reasoning(effort="xhigh"), {"thinkingLevel": "high", "includeThoughts": True}, True),
    (THIRD, Reasoning(budget=9000), {"thinkingLevel": "high", "includeThoughts": True}, True),
    (THIRD, Reasoning(budget=1024), {"thinkingLevel": "low", "includeThoughts": True}, True),
    (THIRD, Reasoning(enabled=True), {"includeThoughts": True}, False),
    (THIRD_PRO, Reasoning(effort="medium"), {"thinkingLevel": "high", "includeThoughts": True}, True),
    ("gemini-3.1-pro", Reasoning(effort="medium"), {"thinkingLevel": "medium", "includeThoughts": True}, False),
    ("gemini-flash-latest", Reasoning(effort="low"), {"thinkingLevel": "low", "includeThoughts": True}, False),
    ("gemini-2.0-flash", Reasoning(effort="low"), None, True),
    ("gemini-2.0-flash", Reasoning(effort="none"), None, False),
    ("gemma-3-27b-it", Reasoning(enabled=True), None, True),
]  # fmt: skip


@pytest.mark.bug("K34")
@pytest.mark.parametrize(("model", "reasoning", "config", "is_changed"), THINKING)
def test_thinking_is_asked_for_as_each_generation_takes_it(
    model: str, reasoning: Reasoning, config: Json | None, is_changed: bool
) -> None:
    lost: list[str] = []
    body = sent(model=model, reasoning=reasoning, lost=lost)

    assert config == body.get("generationConfig", {}).get("thinkingConfig")
    assert lost == (["reasoning"] if is_changed else [])


@pytest.mark.bug("K34")
def test_every_setting_is_sent_or_named() -> None:
    lost: list[str] = []
    body = sent(
        sampling=Sampling(
            0.5, 0.9, 40, 7, 0.1, -0.1, {"1": 2}, logprobs=True, top_logprobs=3, n=2, stop=("END",)
        ),
        max_tokens=100,
        tools=(Tool("f", "d", {"type": "object"}, strict=True),),
        parallel=False,
        user="u",
        verbosity="low",
        cache_key="k",
        metadata={"a": "b"},
        service_tier="flex",
        store=True,
        extra={"modalities": ["text", "image"], "prediction": {}},
        lost=lost,
    )

    assert body["generationConfig"] == {
        "temperature": 0.5, "topP": 0.9, "topK": 40, "seed": 7, "presencePenalty": 0.1,
        "frequencyPenalty": -0.1, "candidateCount": 2, "maxOutputTokens": 100,
        "stopSequences": ["END"], "responseLogprobs": True, "logprobs": 3,
        "responseModalities": ["TEXT", "IMAGE"],
    }  # fmt: skip
    assert body["serviceTier"] == "flex"
    assert set(lost) == {
        "logit_bias", "strict", "parallel_tool_calls", "user", "verbosity", "prompt_cache_key",
        "metadata", "store", "prediction",
    }  # fmt: skip


def test_labels_of_vertex_take_what_is_a_label() -> None:
    lost: list[str] = []
    metadata = {"team": "a-1", "Bad": "x", "long": "y" * 64, "number": 1}
    body = sent(kind="vertex", metadata=metadata, service_tier="flex", store=False, lost=lost)

    assert body["labels"] == {"team": "a-1"}
    assert body.keys() == {"contents", "labels"}
    assert lost == ["metadata.Bad", "metadata.long", "metadata.number", "service_tier"]


@pytest.mark.bug("K34")
def test_fields_of_its_own_go_on_only_where_they_came_from() -> None:
    own: Bag = {"safetySettings": [], "generationConfig": {"speechConfig": {}, "topK": 1}}
    lost: list[str] = []
    body = sent(origin="gemini", extra=own, sampling=Sampling(top_k=5), lost=lost)
    assert (body["safetySettings"], lost) == ([], [])
    assert body["generationConfig"] == {"speechConfig": {}, "topK": 5}

    assert sent(extra=own, lost=lost).keys() == {"contents"}
    assert lost == ["safetySettings", "generationConfig"]


@pytest.mark.bug("B103")
@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (None, None),
        (ToolChoice(), {"mode": "AUTO"}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("named", ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice("required", ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice("auto", ("f",)), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}),
    ],
)
def test_each_choice_of_tools_has_its_mode(choice: ToolChoice | None, config: Json | None) -> None:
    for parallel in (None, True, False):
        body = sent(tools=(Tool("f"),), choice=choice, parallel=parallel)
        assert config == body.get("toolConfig", {}).get("functionCallingConfig")
        assert "toolConfig" not in sent(choice=choice, parallel=parallel)


def test_the_form_of_the_answer() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    assert "generationConfig" not in sent(format=Format("text"))
    assert sent(format=Format("json"))["generationConfig"] == {
        "responseMimeType": "application/json"
    }
    assert sent(format=Format("schema", "n", schema))["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
    }


SCHEMAS: list[tuple[Json, bool]] = [
    ({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}, True),
    ({"type": "object", "properties": {"a": {"type": ["integer", "null"]}}}, True),
    ({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}}, True),
    ({"type": "object", "properties": {"ref": {"type": "string"}, "const": {"type": "number"}}}, True),
    ({"type": "object", "properties": {"$ref": {"type": "string"}}}, False),
    ({"type": "object", "properties": {"a-b": {"type": "string"}}}, False),
    ({"type": "object", "properties": {"a": {"type": "string", "enum": ["x", ""]}}}, False),
    ({"type": "object", "properties": {"a": {"type": "string", "format": "date-time"}}}, True),
    ({"type": "object", "properties": {"a": {"type": "string", "format": "date"}}}, False),
    ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
    ({"type": "object", "properties": {}, "required": []}, True),
    ({"type": "object", "properties": {"a": {"type": "object"}}}, False),
    ({"type": "object", "properties": {"a": {"type": "array"}}}, False),
    ({"type": "object", "properties": {"a": {"type": "integer", "enum": [1, 2]}}}, False),
    ({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}, False),
    ({"type": "object", "properties": {"a": {}}}, False),
    ({"type": "object", "properties": {"a": {"const": 1}}}, False),
    ({"type": "object", "properties": {"a": True}}, False),
    ({"type": "object", "additionalProperties": False, "properties": {}}, False),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}, True),
]  # fmt: skip


@pytest.mark.bug("B106", "K34")
@pytest.mark.parametrize(("schema", "is_small"), SCHEMAS)
def test_a_schema_is_small_where_that_says_all_and_whole_otherwise(
    schema: Json, is_small: bool
) -> None:
    facts = Facts("gemini", FLASH)
    prompt = Prompt("openai_chat", ASKED, tools=(Tool("f", "", schema),))
    fitted = fit(prompt, GEMINI.grammar(facts), Notes())
    (tool,) = json.loads(codec.join(GEMINI.write_request(fitted, facts, Notes())))["tools"]
    (declared,) = tool["functionDeclarations"]

    assert is_small == ("parameters" in declared)
    if is_small:
        assert list(about_schema(declared["parameters"], "f")) == []
    else:
        assert '"#/$defs' not in json.dumps(declared["parametersJsonSchema"])


def test_tools_of_other_providers_are_refused_by_name() -> None:
    own = ServerTool("gemini", "googleSearch", {"googleSearch": {}})
    assert sent(tools=(own, Tool("f")))["tools"] == [
        {"functionDeclarations": [{"name": "f", "description": ""}]},
        {"googleSearch": {}},
    ]
    for tool in (ServerTool("anthropic_messages", "web_search", {}), Tool("f", custom=True)):
        with pytest.raises(InputError) as refused:
            sent(tools=(tool,))
        assert "tools[0]" in refused.value.message


def history(*calls: ToolCall, results: tuple[ToolResult, ...] = ()) -> tuple[Message, ...]:
    told = results or tuple(ToolResult(call.id, (Text("r"),)) for call in calls)
    return (*ASKED, Message("assistant", calls), Message("tool", told))


@pytest.mark.bug("K32", "B108")
def test_calls_that_no_model_of_it_made_are_marked_for_later_models_alone() -> None:
    calls = (ToolCall("call_1", "f", '{"a": 1.0}'), ToolCall("call_2", "g"))
    lost: list[str] = []
    before = sent(*history(*calls), lost=lost)["contents"][1]["parts"]
    assert ([part.keys() for part in before], lost) == ([{"functionCall"}] * 2, [])

    first, second = sent(*history(*calls), model=THIRD, lost=lost)["contents"][1]["parts"]
    assert first["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in second
    assert lost == ["tool_calls"]

    sealed = codec.replace(calls[0], signature="s", maker="gemini")
    kept = sent(*history(sealed, calls[1]), model=THIRD, lost=(lost := []))["contents"][1]["parts"]
    assert (kept[0]["thoughtSignature"], lost) == ("s", [])


@pytest.mark.bug("K32")
def test_ids_go_back_where_the_provider_gave_them() -> None:
    """Ids of a turn that it sealed are its own, unless the gateway or another provider made them up."""
    own = (ToolCall("8f2b1a3c", "f", signature="s", maker="gemini"), ToolCall("9a", "f"))
    _, calls, results = sent(*history(*own))["contents"]
    assert [part["functionCall"]["id"] for part in calls["parts"]] == ["8f2b1a3c", "9a"]
    assert [part["functionResponse"]["id"] for part in results["parts"]] == ["8f2b1a3c", "9a"]

    for other in (
        (ToolCall("8f2b1a3c", "f"),),
        (ToolCall("call_1", "f", signature="s", maker="gemini"),),
        (ToolCall("toolu_1", "f", signature="s", maker="gemini"),),
    ):
        _, calls, results = sent(*history(*other))["contents"]
        assert "id" not in calls["parts"][0]["functionCall"]
        assert "id" not in results["parts"][0]["functionResponse"]


@pytest.mark.bug("B104")
@pytest.mark.parametrize(
    ("text", "is_error", "response"),
    [
        ("plain", False, {"output": "plain"}),
        (' {"a": 1} ', False, {"a": 1}),
        ("[1]", False, {"output": "[1]"}),
        ("{broken", False, {"output": "{broken"}),
        ('{"a": 1}', True, {"error": '{"a": 1}'}),
        ("", False, {"output": ""}),
    ],
)
def test_a_result_is_an_object(text: str, is_error: bool, response: Json) -> None:
    result = ToolResult("c", (Text(text),), is_error=is_error)
    told = sent(*history(ToolCall("c", "f"), results=(result,)))["contents"][2]["parts"]

    assert told == [{"functionResponse": {"name": "f", "response": response}}]


def test_pictures_in_results_stand_beside_the_words_where_they_are_taken() -> None:
    result = ToolResult("c", (Text("see"), Image("image/png", "AAAA")))
    prompt = Prompt("openai_chat", history(ToolCall("c", "f"), results=(result,)))
    for model, places in ((THIRD, ["functionResponse.parts"]), (FLASH, ["text", "inlineData"])):
        facts = Facts("gemini", model)
        fitted = fit(prompt, GEMINI.grammar(facts), Notes())
        body = json.loads(codec.join(GEMINI.write_request(fitted, facts, Notes())))
        assert complaints(body) == []
        told = body["contents"][2]["parts"][0]["functionResponse"]
        picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
        if "parts" in told:
            assert (places, told["parts"]) == (["functionResponse.parts"], [picture])
        else:
            shown = body["contents"][3]["parts"]
            assert places == [kind for part in shown for kind in part]
            assert shown[-1] == picture


@pytest.mark.bug("B110")
@pytest.mark.parametrize(
    ("part", "written"),
    [
        (Image("image/png", "AA"), {"inlineData": {"mimeType": "image/png", "data": "AA"}}),
        (
            Image(url="https://e.com/a.webp?x=1"),
            {"fileData": {"fileUri": "https://e.com/a.webp?x=1", "mimeType": "image/webp"}},
        ),
        (
            Image(url="gs://b/a"),
            {"fileData": {"fileUri": "gs://b/a", "mimeType": "image/jpeg"}},
        ),
        (Audio("AA", "mp3"), {"inlineData": {"mimeType": "audio/mpeg", "data": "AA"}}),
        (Audio("AA", "flac"), {"inlineData": {"mimeType": "audio/flac", "data": "AA"}}),
        (File("application/pdf", "AA"), {"inlineData": {"mimeType": "application/pdf", "data": "AA"}}),
        (File(data="AA", name="a.csv"), {"inlineData": {"mimeType": "text/csv", "data": "AA"}}),
        (File(text="é"), {"inlineData": {"mimeType": "text/plain", "data": "w6k="}}),
        (
            File(url="https://youtu.be/x"),
            {"fileData": {"fileUri": "https://youtu.be/x", "mimeType": "video/mp4"}},
        ),
        (File(url="https://e.com/x"), {"fileData": {"fileUri": "https://e.com/x"}}),
        (
            File(file_id="files/abc"),
            {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}},
        ),
    ],
)  # fmt: skip
def test_each_kind_of_content_is_sent(part: Part, written: Json) -> None:
    assert sent(Message("user", (part,)))["contents"] == [{"role": "user", "parts": [written]}]


@pytest.mark.bug("B110")
@pytest.mark.parametrize(
    "part", [Audio(id="a"), Image(file_id="file-1"), File(url="ftp://e.com/a")]
)
def test_content_that_cannot_be_sent_is_refused(part: Part) -> None:
    with pytest.raises(InputError) as refused:
        sent(Message("user", (part,)))
    assert refused.value.code == "invalid_request"


def test_items_of_others_are_left_out_by_name() -> None:
    lost: list[str] = []
    said = (
        Text("a"),
        Opaque("anthropic_messages", "server_tool_use", {}),
        Opaque("gemini", "groundingMetadata", {}),
    )
    body = sent(*ASKED, Message("assistant", said), *ASKED, lost=lost)

    assert body["contents"][1]["parts"] == [{"text": "a"}]
    assert lost == ["server_tool_use"]


Kind = Literal["gemini", "vertex"]


@pytest.mark.bug("K29", "B085")
@pytest.mark.parametrize(
    ("kind", "model", "path"),
    [
        ("gemini", FLASH, "/models/gemini-2.5-flash"),
        ("gemini", "models/x", "/models/x"),
        ("gemini", "tunedModels/x", "/tunedModels/x"),
        ("gemini", "a/../b?c#d", "/models/a%2F..%2Fb%3Fc%23d"),
        ("vertex", "x@001", "/publishers/google/models/x%40001"),
        ("vertex", "google/x", "/publishers/google/models/x"),
        ("vertex", "publishers/meta/models/y", "/publishers/meta/models/y"),
        ("vertex", "publishers/meta/models/../../y", "/publishers/meta/models/..%2F..%2Fy"),
        ("vertex", "endpoints/12", "/endpoints/12"),
        ("vertex", "endpoints/../x", "/publishers/google/models/endpoints%2F..%2Fx"),
    ],
)
def test_a_models_name_is_one_segment(kind: Kind, model: str, path: str) -> None:
    assert GEMINI.path(Facts(kind, model)) == f"{path}:generateContent".encode()
    stream = GEMINI.path(Facts(kind, model, stream=True))
    assert stream == f"{path}:streamGenerateContent?alt=sse".encode()
