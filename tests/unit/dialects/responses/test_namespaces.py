"""Functions in namespaces reach targets of other formats, and their calls come back as such (B116, K34)."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.dialects.base import StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import Written, write
from tests.support.grammar_responses import breaches

Json = dict[str, Any]
RULES = StreamRules(hide_usage=False, done_required=False)
FLAT = "mcp__docs__find"
TARGET_FACTS = {
    "openai_chat": Facts("deepseek", "deepseek-chat"),
    "anthropic_messages": Facts("anthropic", "claude-sonnet-4-5"),
    "gemini": Facts("gemini", "gemini-2.5-flash"),
    "bedrock_converse": Facts("bedrock", "amazon.nova-pro-v1:0"),
    "cohere_v2": Facts("cohere", "command-a"),
    "ollama": Facts("ollama", "llama3"),
}

pytestmark = pytest.mark.bug("K34", "B116")


def function(name: str, **more: Any) -> Json:
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    return {"type": "function", "name": name, "description": name, "parameters": parameters, **more}


def space(name: str, *tools: Json, **more: Any) -> Json:
    return {"type": "namespace", "name": name, "description": "Docs", "tools": list(tools), **more}


DOCS = space("mcp__docs", function("find"), function("read"))
ASKED: Json = {"model": "m", "input": "Hi", "tools": [function("shell"), DOCS]}


def written(asked: Json, target: str = "openai_chat", notes: Notes | None = None) -> Written:
    side, wire = CALLERS["openai_responses"], TARGETS[target]
    facts = TARGET_FACTS.get(target, Facts("openai", "gpt-5"))
    notes = notes or Notes()
    prompt = side.read_request(codec.split(codec.encode(asked)), notes)
    told = Told("req_1", "m", 1, prompt)
    return write(prompt, side, wire, facts, wire.grammar(facts), told, notes)


def body_of(made: Written) -> Json:
    return json.loads(codec.join(made.fields))


def functions(body: Json) -> list[Json]:
    return [tool["function"] for tool in body["tools"]]


@pytest.mark.parametrize("target", sorted(TARGET_FACTS))
def test_functions_of_a_namespace_are_offered_by_name(target: str) -> None:
    notes = Notes()
    sent = codec.join(written(ASKED, target, notes).fields).decode()

    for name in ("shell", FLAT, "mcp__docs__read"):
        assert f'"{name}"' in sent
    assert not notes.warnings


def test_what_is_said_of_a_namespace_is_said_once() -> None:
    found = functions(body_of(written(ASKED)))

    said = [each["description"] for each in found]
    assert said == ["shell", "mcp__docs: Docs\n\nfind", "read"]


def test_a_target_of_the_format_gets_namespaces_as_they_are() -> None:
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "find",
        "namespace": "mcp__docs",
        "arguments": "{}",
    }
    result = {"type": "function_call_output", "call_id": "c", "output": "x"}
    choice = {"type": "function", "name": "find", "namespace": "mcp__docs"}
    asked = {**ASKED, "input": [call, result], "tool_choice": choice}
    body = body_of(written(asked, "openai_responses"))

    assert body["tools"][1] == DOCS
    assert body["input"] == [call, result]
    assert body["tool_choice"] == choice


def test_names_are_unique_and_may_be_long() -> None:
    long = space("n" * 60, function("find" * 5))
    tools = [function(FLAT), DOCS, space("mcp__docs__", function("find")), long]
    made = written({**ASKED, "tools": tools})
    names = [each["name"] for each in functions(body_of(made))]

    assert names[:4] == [FLAT, FLAT + "_", "mcp__docs__read", FLAT + "__"]
    assert len(names[4]) <= 64
    assert called(made, names[4])[0]["namespace"] == "n" * 60
    assert called(made, FLAT)[0].get("namespace") is None
    assert [called(made, names[at])[0]["namespace"] for at in (1, 3)] == [
        "mcp__docs",
        "mcp__docs__",
    ]


def test_calls_of_the_history_have_the_names_that_are_offered() -> None:
    calls = [
        {
            "type": "function_call",
            "call_id": name,
            "name": name,
            "namespace": home,
            "arguments": "{}",
        }
        for name, home in (("find", "mcp__docs"), ("gone", "mcp__old"))
    ]
    results = [
        {"type": "function_call_output", "call_id": name, "output": "x"}
        for name in ("find", "gone")
    ]
    notes = Notes()
    body = body_of(written({**ASKED, "input": [*calls, *results]}, notes=notes))

    names = [call["function"]["name"] for call in body["messages"][0]["tool_calls"]]
    assert names == [FLAT, "mcp__old__gone"]
    assert not notes.warnings


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"type": "function", "name": "find", "namespace": "mcp__docs"}, [FLAT]),
        ({"type": "namespace", "name": "mcp__docs"}, [FLAT, "mcp__docs__read"]),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [
                    {"type": "namespace", "name": "mcp__docs"},
                    {"type": "function", "name": "shell"},
                ],
            },
            [FLAT, "mcp__docs__read", "shell"],
        ),
    ],
)
def test_a_choice_names_functions_of_namespaces(choice: Json, names: list[str]) -> None:
    notes = Notes()
    body = body_of(written({**ASKED, "tool_choice": choice}, "gemini", notes))

    calling = body["toolConfig"]["functionCallingConfig"]
    assert (calling["mode"], sorted(calling["allowedFunctionNames"])) == ("ANY", sorted(names))
    assert not notes.warnings


def test_what_is_no_namespace_or_is_not_there_is_refused() -> None:
    wrong: list[Json] = [
        {"tools": [{"type": "namespace", "name": "x"}]},
        {"tools": [{"type": "namespace", "tools": []}]},
        {"tools": [space("x", {"type": "function"})]},
        {"tool_choice": {"type": "namespace", "name": "other"}},
        {"tool_choice": {"type": "function", "name": "other", "namespace": "mcp__docs"}},
    ]
    for each in wrong:
        with pytest.raises(InputError):
            written({**ASKED, **each})


def test_what_only_the_format_knows_of_them_is_named() -> None:
    notes = Notes()
    tools = [
        space("mcp__docs", function("find", y=1, defer_loading=True), {"type": "web_search"}, x=1)
    ]
    written({**ASKED, "tools": tools}, notes=notes)

    assert [text.partition(":")[0] for text in notes.warnings] == [
        "tools[0].tools[0].y",
        "tools[0].x",
        "tools[1] (web_search)",
    ]


def answer(name: str, arguments: str) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "x", "model": "m", "choices": [choice]}).encode()


def called(made: Written, name: str, arguments: str = "{}") -> list[Json]:
    """Return the items of an answer that calls a function, plain and streamed."""
    whole, _ = made.translation.read_whole(answer(name, arguments), RULES)
    (plain,) = json.loads(whole)["output"]
    message = json.loads(answer(name, arguments))["choices"][0]["message"]
    call = {"index": 0, **message["tool_calls"][0]}
    chunks: list[Json] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    stream = b"".join(b"data: %s\n\n" % json.dumps(c).encode() for c in chunks)
    watcher = made.translation.watch(RULES)
    out = watcher.feed(stream + b"data: [DONE]\n\n") + watcher.end(complete=True)
    assert breaches(out) == []
    events = [json.loads(line[6:]) for line in out.decode().splitlines() if line[:6] == "data: "]
    (done,) = (each["item"] for each in events if each["type"] == "response.output_item.done")
    (added,) = (each["item"] for each in events if each["type"] == "response.output_item.added")
    assert {added.get("namespace"), done.get("namespace")} == {plain.get("namespace")}
    return [plain, done]


def test_a_call_comes_back_with_its_namespace() -> None:
    for item in called(written(ASKED), FLAT, '{"q":"x"}'):
        assert item["type"] == "function_call"
        assert (item["namespace"], item["name"]) == ("mcp__docs", "find")
        assert item["arguments"] == '{"q":"x"}'
    for item in called(written(ASKED), "shell"):
        assert item["name"] == "shell"
        assert "namespace" not in item


def test_a_custom_tool_of_a_namespace_is_one_again() -> None:
    custom = {"type": "custom", "name": "exec", "description": "Runs code"}
    made = written({**ASKED, "tools": [space("code", custom)]})

    assert functions(body_of(made))[0]["parameters"]["required"] == ["input"]
    for item in called(made, "code__exec", '{"input": "ls"}'):
        assert item["type"] == "custom_tool_call"
        assert (item["namespace"], item["name"], item["input"]) == ("code", "exec", "ls")
