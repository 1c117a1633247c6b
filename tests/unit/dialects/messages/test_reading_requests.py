"""Any body is either a request that is understood, or refused with the place at fault."""

import json
from itertools import islice
from typing import Any, cast

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    CacheMark,
    File,
    Image,
    Message,
    Opaque,
    Prompt,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.messages.sides import MessagesCaller, MessagesTarget
from gateway.dialects.sides import Facts
from tests.support.messages_recordings import requests
from tests.support.messages_requests import EVERYTHING, broken
from tests.support.recordings import is_object

Json = dict[str, Any]
CALLER = MessagesCaller()
TARGET = MessagesTarget()
HELLO: Json = {"role": "user", "content": "Hello"}


def read(body: Json) -> Prompt:
    return CALLER.read_request(codec.split(json.dumps(body).encode()), Notes())


def written(prompt: Prompt, model: str) -> Json:
    facts = Facts("anthropic", model)
    notes = Notes()
    fields = TARGET.write_request(fit(prompt, TARGET.grammar(facts), notes), facts, notes)
    assert "stream" not in fields
    return json.loads(codec.join(fields))


@pytest.mark.bug("K33", "K34")
def test_whatever_is_broken_is_read_or_refused_with_its_place() -> None:
    refused: list[InputError] = []
    for body in islice(broken(EVERYTHING), 0, None, 13):
        try:
            written(read(body), "claude-opus-4-5")
        except InputError as error:
            refused.append(error)

    assert {error.code for error in refused} == {"invalid_request"}
    named = [error for error in refused if error.param and error.message.startswith(error.param)]
    assert len(named) > 100


def test_everything_is_read_and_written_again() -> None:
    facts = Facts("anthropic", "claude-opus-4-5")
    once = read(EVERYTHING)
    again = read(written(once, facts.model))
    fitted = fit(once, TARGET.grammar(facts), Notes())

    assert (again.messages, again.tools, again.choice) == (fitted.messages, once.tools, once.choice)
    assert (again.reasoning, again.format, again.extra) == (once.reasoning, once.format, once.extra)


@pytest.mark.bug("K34")
def test_recorded_requests_are_sent_as_they_were_recorded() -> None:
    for name, body in requests():
        model = str(body.get("model", "claude-sonnet-4-5"))
        again = written(read(body), model)
        wanted = {k: v for k, v in body.items() if k not in {"model", "stream"}}

        assert _plain(wanted) == _plain(again), name


def _plain(value: Any) -> Any:
    """Return a body with texts as lists of blocks, and without what says nothing."""
    if isinstance(value, list):
        return list(map(_plain, cast("list[Any]", value)))
    if not is_object(value):
        return value
    plain = {key: _plain(part) for key, part in value.items()}
    plain = {
        key: part for key, part in plain.items() if part not in _SAYS_NOTHING.get(key, (None,))
    }
    if plain.get("type") == "custom" and "input_schema" in plain:
        del plain["type"]
    for key in ("content", "system"):
        if isinstance(plain.get(key), str):
            plain[key] = [{"type": "text", "text": plain[key]}]
    return plain


_SAYS_NOTHING: dict[str, tuple[Any, ...]] = {"is_error": (None, False), "description": (None, "")}


@pytest.mark.bug("B115")
def test_system_prompts_keep_their_order_and_place() -> None:
    prompt = read(
        {
            "system": [{"type": "text", "text": "S1"}, {"type": "text", "text": "S2"}],
            "messages": [
                HELLO,
                {"role": "assistant", "content": "Hi"},
                {"role": "system", "content": "S3"},
                HELLO,
            ],
        }
    )

    assert [(m.role, m.parts) for m in prompt.messages] == [
        ("system", (Text("S1"), Text("S2"))),
        ("user", (Text("Hello"),)),
        ("assistant", (Text("Hi"),)),
        ("system", (Text("S3"),)),
        ("user", (Text("Hello"),)),
    ]


def test_results_of_tools_come_before_what_the_user_says() -> None:
    def result(name: str) -> Json:
        return {"type": "tool_result", "tool_use_id": name, "content": name}

    prompt = read(
        {
            "messages": [
                {"role": "user", "content": [result("a")]},
                {"role": "user", "content": [{"type": "text", "text": "T"}, result("b")]},
            ]
        }
    )

    assert prompt.messages == (
        Message("tool", (ToolResult("a", (Text("a"),)), ToolResult("b", (Text("b"),)))),
        Message("user", (Text("T"),)),
    )


def test_every_kind_of_block_is_read() -> None:
    prompt = read(EVERYTHING)
    _, user, model, results, said = prompt.messages

    assert user.parts[0] == Text("Look.", cache=CacheMark())
    assert user.parts[1:4] == (
        Image(media_type="image/png", data="iVBORw0KGgo="),
        Image(url="https://example.com/a.png"),
        Image(file_id="file_1"),
    )
    assert user.parts[4] == File(
        "application/pdf",
        data="JVBERi0xLjQ=",
        name="a.pdf",
        extra={"context": "c", "citations": {"enabled": True}},
    )
    assert [type(part) for part in user.parts[5:]] == [File, File, File, File, Opaque, Opaque]
    assert model.parts[:2] == (
        Thinking("Hm.", signature="sig==", maker="anthropic"),
        Thinking(redacted="opaque==", maker="anthropic"),
    )
    assert [type(part) for part in model.parts[2:]] == [Text, Opaque, Opaque, ToolCall, ToolCall]
    call = model.parts[5]
    assert isinstance(call, ToolCall)
    assert (call.arguments, call.extra) == ('{"at":[1,2.5,null]}', {"caller": {"type": "direct"}})
    assert results.role == "tool"
    assert said == Message("user", (Text("And now?"),))


def test_settings_are_read() -> None:
    prompt = read(EVERYTHING)

    assert [type(tool) for tool in prompt.tools] == [Tool, Tool, ServerTool]
    assert (prompt.choice, prompt.parallel) == (ToolChoice("auto"), False)
    assert prompt.reasoning is not None
    assert (prompt.reasoning.enabled, prompt.reasoning.budget, prompt.reasoning.effort) == (
        True, 2048, "high",
    )  # fmt: skip
    assert prompt.format is not None
    assert (prompt.format.kind, prompt.user, prompt.service_tier) == ("schema", "u1", "auto")
    assert prompt.extra == {
        key: EVERYTHING[key] for key in ("container", "context_management", "mcp_servers")
    } | {"output_config": {"task_budget": {"type": "tokens", "total": 10}}}


@pytest.mark.parametrize(
    ("choice", "read_as", "parallel"),
    [
        ({"type": "auto"}, ToolChoice("auto"), None),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("required"), False),
        ({"type": "none"}, ToolChoice("none"), None),
        (
            {"type": "tool", "name": "f", "disable_parallel_tool_use": False},
            ToolChoice("named", ("f",)),
            True,
        ),
    ],
)
def test_choices_of_tools_are_read(
    choice: Json, read_as: ToolChoice, parallel: bool | None
) -> None:
    prompt = read({"messages": [HELLO], "tool_choice": choice})

    assert (prompt.choice, prompt.parallel) == (read_as, parallel)


def test_the_older_name_of_the_answers_form_is_read() -> None:
    form = {"type": "json_schema", "schema": {"type": "object"}}
    prompt = read({"messages": [HELLO], "output_format": form})

    assert prompt.format is not None
    assert prompt.format.schema == {"type": "object"}


def test_a_kind_of_thinking_that_nobody_knows_is_refused() -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}], "model": "m", "max_tokens": 9000}
    with pytest.raises(InputError) as refused:
        read({**body, "thinking": {"type": "enabledQ", "budget_tokens": 2000}})
    assert (refused.value.code, refused.value.param) == ("invalid_request", "thinking.type")
