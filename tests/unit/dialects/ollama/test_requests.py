"""What Ollama is asked says what the neutral request says, up to the table of losses."""

from random import Random

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
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
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.losses import Notes
from gateway.dialects.ollama.target import Ollama
from gateway.dialects.sides import Facts
from tests.support.native_recordings import Json, differences, exchanges
from tests.support.neutral import Can, prompt
from tests.support.ollama_requests import read_prompt
from tests.support.rounds import rounds

OLLAMA = Ollama()
FACTS = Facts(kind="ollama_native", model="gpt-oss:20b")
CAN = Can(
    OLLAMA.name,
    user=frozenset({"text", "image_data"}),
    no_arguments="{}",
    settings=frozenset(
        {
            "temperature",
            "top_p",
            "top_k",
            "seed",
            "presence_penalty",
            "frequency_penalty",
            "logprobs",
            "top_logprobs",
            "stop",
            "max_tokens",
            "tools",
            "choice",
            "allowed",
            "json",
            "schema",
            "effort",
            "disabled",
            "stream",
        }
    ),
)
HELLO = (Message("user", (Text("Hello"),)),)


def written(asked: Prompt, notes: Notes | None = None, *, model: str = FACTS.model) -> Json:
    facts = Facts(kind=FACTS.kind, model=model)
    fields = OLLAMA.write_request(asked, facts, Notes() if notes is None else notes)
    return {name: codec.value_of(field) for name, field in fields.items()}


def _parts(parts: tuple[Part, ...], glue: str, names: dict[str, str]) -> tuple[Part, ...]:
    """Return parts as one text with its pictures and calls, which is all that a message can hold."""
    text = glue.join(part.text for part in parts if isinstance(part, Text))
    found: list[Part] = [part for part in parts if isinstance(part, Thinking)]
    found += [Text(text)] if text else []
    for part in parts:
        match part:
            case Image(data=data):
                found.append(Image(data=data))
            case ToolCall():
                arguments = codec.encode(codec.decode(part.arguments)).decode()
                found.append(codec.replace(part, arguments=arguments))
                names[part.id] = part.name
            case ToolResult(call_id=id_, parts=inner):
                said = _parts(inner, "\n", names)
                found.append(codec.replace(part, name=names[id_], parts=said))
            case _:
                pass
    return tuple(found) or (Text(""),)


def _expressible(asked: Prompt) -> Prompt:
    names: dict[str, str] = {}
    messages = tuple(
        codec.replace(m, parts=_parts(m.parts, "" if m.role == "assistant" else "\n", names))
        for m in asked.messages
    )
    choice = asked.choice
    tools = tuple(
        codec.replace(tool, parameters=tool.parameters or {"type": "object", "properties": {}})
        for tool in asked.tools
        if isinstance(tool, Tool)
        and (
            choice is None
            or (choice.mode != "none" and tool.name in (choice.names or (tool.name,)))
        )
    )
    form = asked.format
    return codec.replace(
        asked,
        messages=messages,
        tools=tools,
        choice=None,
        format=None if form is None else codec.replace(form, name="", strict=None),
    )


@pytest.mark.bug("K33", "K34")
def test_a_request_read_back_is_the_one_that_was_written_up_to_noted_losses() -> None:
    for seed in rounds(300):
        asked = prompt(Random(seed), CAN)
        notes = Notes()
        body = written(asked, notes) | {"stream": asked.stream}
        assert _expressible(asked) == read_prompt(body), seed
        forced = asked.choice is not None and asked.choice.mode in {"required", "named"}
        assert not forced or notes.warnings, seed


def test_recorded_requests_are_written_as_they_were_sent() -> None:
    for exchange in exchanges("ollama", "/api/chat"):
        recorded: Json = {"stream": True, **exchange.request}
        notes = Notes()
        body = written(read_prompt(recorded), notes, model=recorded["model"])
        body |= {"model": recorded["model"], "stream": recorded["stream"]}
        # An empty format says nothing; only that client sends one.
        empty = ["format"] if recorded.get("format") == "" else []
        assert empty == differences(recorded, body), exchange.id
        assert [] == notes.warnings, exchange.id


def test_the_address_lies_below_the_host() -> None:
    assert b"/api/chat" == OLLAMA.path(FACTS)


def test_a_result_names_its_tool_and_its_call() -> None:
    call = ToolCall("c1", "roll", '{"sides": 6}')
    result = ToolResult("c1", (Text("4"),))
    body = written(Prompt("x", (Message("assistant", (call,)), Message("tool", (result,)))))
    assert [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": {"name": "roll", "arguments": {"sides": 6}}}],
        },
        {"role": "tool", "content": "4", "tool_name": "roll", "tool_call_id": "c1"},
    ] == body["messages"]


@pytest.mark.parametrize(
    ("asked", "model", "think", "noted"),
    [
        (Reasoning(enabled=True), "qwen3", True, False),
        (Reasoning(enabled=False), "qwen3", False, False),
        (Reasoning(effort="none"), "qwen3", False, False),
        (Reasoning(effort="high"), "qwen3", True, True),
        (Reasoning(enabled=True, budget=500), "qwen3", True, True),
        (Reasoning(effort="high"), "gpt-oss:120b-cloud", "high", False),
        (Reasoning(effort="minimal"), "gpt-oss", "low", True),
        (Reasoning(effort="xhigh"), "gpt-oss", "high", True),
        (Reasoning(summary="auto"), "qwen3", None, False),
    ],
)
def test_thinking_has_levels_only_where_the_model_knows_them(
    asked: Reasoning, model: str, think: object, noted: bool
) -> None:
    notes = Notes()
    body = written(Prompt("x", HELLO, reasoning=asked), notes, model=model)
    assert (think, noted) == (body.get("think"), bool(notes.warnings))


def test_no_tool_is_offered_where_none_may_be_called() -> None:
    notes = Notes()
    asked = Prompt("x", HELLO, tools=(Tool("a"),), choice=ToolChoice("none"))
    assert "tools" not in written(asked, notes)
    assert [] == notes.warnings


def test_options_of_the_caller_s_own_join_the_settings() -> None:
    extra = {"options": {"num_ctx": 4096, "temperature": 0.25}, "keep_alive": "5m"}
    asked = Prompt(
        "openai_chat", HELLO, max_tokens=9, sampling=Sampling(temperature=1.0), extra=extra
    )
    body = written(asked)
    assert {"temperature": 0.25, "num_predict": 9, "num_ctx": 4096} == body["options"]
    assert "5m" == body["keep_alive"]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (Prompt("x", HELLO, user="u1"), "user"),
        (Prompt("x", HELLO, metadata={"a": "b"}), "metadata"),
        (Prompt("x", HELLO, service_tier="flex"), "service_tier"),
        (Prompt("x", HELLO, store=True), "store"),
        (Prompt("x", HELLO, cache_key="k"), "prompt_cache_key"),
        (Prompt("x", HELLO, verbosity="low"), "verbosity"),
        (Prompt("x", HELLO, tools=(Tool("a"),), parallel=False), "parallel_tool_calls"),
        (Prompt("x", HELLO, tools=(Tool("a"),), choice=ToolChoice("required")), "tool_choice"),
        (Prompt("x", HELLO, tools=(Tool("a", strict=True),)), "tools.strict"),
        (
            Prompt("x", HELLO, format=Format("json", description="A")),
            "response_format.json_schema.description",
        ),
        (Prompt("x", HELLO, sampling=Sampling(logit_bias={"1": 2})), "logit_bias"),
        (Prompt("x", HELLO, extra={"made_up": 1}), "made_up"),
        (Prompt("x", (Message("user", (Image(data="AA", detail="low"),)),)), "detail"),
        (Prompt("x", (Message("user", (Text("Hi"),), name="Ann"),)), "name"),
        (Prompt("x", (Message("tool", (ToolResult("c", is_error=True),)),)), "is_error"),
    ],
)
def test_what_cannot_be_said_is_noted_by_name(asked: Prompt, name: str) -> None:
    notes = Notes()
    written(asked, notes)
    assert [name] == [warning.partition(":")[0] for warning in notes.warnings]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    "asked",
    [
        Prompt("x", HELLO, sampling=Sampling(n=2)),
        Prompt("x", HELLO, tools=(Tool("a", custom=True),)),
        Prompt("x", HELLO, tools=(ServerTool("y", "web_search", {}),)),
        Prompt("x", (Message("user", (Audio("AAAA", "wav"),)),)),
        Prompt("x", (Message("assistant", (Opaque("y", "search", {}),)),)),
        Prompt("x", (Message("user", (Image(url="https://example.com/a.png"),)),)),
        Prompt("x", (Message("user", (File(data="AAAA", media_type="application/pdf"),)),)),
        Prompt("x", (Message("assistant", (Image(url="https://example.com/a.png"),)),)),
        Prompt("x", (Message("assistant", (ToolCall("c", "a", "text", custom=True),)),)),
        Prompt("x", (Message("assistant", (ToolCall("c", "a", '{"cut'),)),)),
        Prompt("x", (Message("assistant", (ToolCall("c", "a", "[1]"),)),)),
    ],
)
def test_what_must_not_be_lost_is_refused(asked: Prompt) -> None:
    with pytest.raises(InputError) as caught:
        written(asked)
    assert "invalid_request" == caught.value.code
