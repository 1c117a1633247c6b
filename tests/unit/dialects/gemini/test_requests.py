"""Requests to Gemini and Vertex: what was accepted is written again, and what is written says what was asked."""

import importlib.util
import json
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Format,
    Message,
    Opaque,
    Prompt,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from gateway.dialects.fit.names import NameMap
from gateway.dialects.fit.prompt import fit
from gateway.dialects.gemini.side import GeminiTarget
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS
from gateway.dialects.sides import Facts
from tests.support import neutral
from tests.support.gemini_recordings import exchanges
from tests.support.gemini_requests import complaints, read
from tests.support.rounds import rounds
from tests.support.shared import require_shared

GEMINI = GeminiTarget()
# What the provider accepts and no prompt asks for in this way.
CANNOT = {
    "gemini-structured": "its schema stands in the older field, which loses the order of properties",
    "gemini-tool-choice-2": "it writes the mode of calling in lower case",
    "gemini-stream-error-404": "it says of each text that it is no thought",
}
MODELS = ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview")


@cache
def replay() -> ModuleType:
    """Return the replay upstream as a module: its lenient matching is what counts."""
    path = require_shared() / "tools" / "replay_upstream.py"
    spec = importlib.util.spec_from_file_location("replay_upstream", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fitted(prompt: Prompt, facts: Facts) -> Prompt:
    """Return a prompt as it comes to the writer."""
    grammar = GEMINI.grammar(facts)
    names = NameMap.of(prompt, grammar.names)
    prompt = fit(prompt, grammar, Notes())
    return names.apply(prompt) if names else prompt


@pytest.mark.bug("B110")
@pytest.mark.parametrize("part", ["image", "file", "file data"])
def test_addresses_of_googles_store_are_read_by_vertex_alone(part: str) -> None:
    content: dict[str, dict[str, Any]] = {
        "image": {"type": "image_url", "image_url": {"url": "gs://b/a.png"}},
        "file": {"type": "file", "file": {"file_data": "gs://b/a.pdf"}},
        "file data": {"type": "file", "file": {"file_data": "gs://b/a.pdf", "filename": "a.pdf"}},
    }
    said = [{"role": "user", "content": [content[part]]}]
    prompt = CALLERS["openai_chat"].read_request({"messages": codec.raw(said)}, Notes())
    vertex, gemini = (Facts(kind, "gemini-2.5-flash") for kind in ("vertex", "gemini"))
    at_vertex = written(fit(prompt, GEMINI.grammar(vertex), Notes()), vertex)

    (sent,) = at_vertex["contents"][0]["parts"]
    assert sent["fileData"]["fileUri"].startswith("gs://b/a.p")
    with pytest.raises(InputError, match="a store that this target does not read") as caught:
        fit(prompt, GEMINI.grammar(gemini), Notes())
    assert caught.value.param == "messages[0].content[0]"


def written(prompt: Prompt, facts: Facts, notes: Notes | None = None) -> dict[str, Any]:
    """Return the body that is sent, decoded."""
    fields = GEMINI.write_request(prompt, facts, notes or Notes())
    return json.loads(codec.join(fields))


def test_a_request_that_was_accepted_is_written_again() -> None:
    lenient = replay()
    for each in exchanges():
        if not each.has_request or each.id in CANNOT:
            continue
        facts = Facts(each.kind, each.model, stream=each.is_stream)
        notes = Notes()
        body = written(read(each.request), facts, notes)

        wanted = lenient.canonical(each.request, gemini=True)
        calling = wanted.get("toolConfig", {}).get("functionCallingConfig", {})
        calling.pop("streamFunctionCallArguments", None)  # no caller's format can ask for it
        assert (each.id, []) == (
            each.id,
            lenient.diff(wanted, lenient.canonical(body, gemini=True)),
        )
        assert notes.warnings == []
        path = GEMINI.path(facts).decode().partition("?")[0]
        assert each.path.endswith(path)


def test_what_cannot_be_written_again_differs_as_the_list_says() -> None:
    lenient = replay()
    for each in exchanges():
        if each.id not in CANNOT or not each.has_request:
            continue
        body = written(read(each.request), Facts(each.kind, each.model))
        wanted = lenient.canonical(each.request, gemini=True)
        assert lenient.diff(wanted, lenient.canonical(body, gemini=True)) != []


CAN = neutral.Can(
    "gemini",
    user=frozenset({"text", "image_url", "image_data", "audio", "file_url", "file_text"}),
    assistant=frozenset({"text", "sealed", "call", "sealed_call", "opaque"}),
    tool=frozenset({"text"}),
    inline=False,
    ordered=False,
    one_text=False,
    empty_text=False,
    errors=True,
    maker="gemini",
    opaque=lambda rng: Opaque("gemini", "executableCode", {"executableCode": {"code": "1"}}),
    settings=frozenset(
        {
            "allowed", "budget", "choice", "disabled", "json", "max_tokens", "schema", "store",
            "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty",
            "logprobs", "top_logprobs", "n", "stop", "tools",
        }
    ),
)  # fmt: skip


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("kind", ["gemini", "vertex"])
def test_a_written_request_reads_back_as_what_was_asked(kind: str) -> None:
    rng = Random(17)
    for _ in rounds(150):
        facts = Facts(kind, "gemini-2.5-flash")
        prompt = fitted(neutral.prompt(rng, CAN), facts)
        notes = Notes()
        body = written(prompt, facts, notes)

        assert plain(prompt) == plain(read(body))
        assert set(notes.warnings) <= {"store: is not supported by this target and was left out"}


@pytest.mark.bug("K33", "B102", "B104", "B105", "B112")
@pytest.mark.parametrize("model", MODELS)
def test_any_history_becomes_one_that_the_provider_takes(model: str) -> None:
    rng = Random(23)
    for _ in rounds(100):
        can = neutral.Can(
            rng.choice(("openai_chat", "anthropic_messages")),
            assistant=frozenset({"text", "thinking", "sealed", "redacted", "call", "refusal"}),
            tool=frozenset({"text", "image_data"}),
            user=frozenset({"text", "image_data", "file_data", "audio"}),
            roles=("system", "developer"),
            errors=True,
            settings=neutral.SETTINGS - {"custom_tools"},
        )
        facts = Facts("gemini", model)
        prompt = fitted(neutral.prompt(rng, can), facts)

        assert complaints(written(prompt, facts)) == []


def plain(prompt: Prompt) -> Prompt:
    """Return a prompt without what a request of this format says in no way, or says in its own words."""
    renamed: dict[str, str] = {}

    def part(each: Any) -> Any:
        match each:
            case ToolCall():
                name = renamed.setdefault(each.id, f"call {len(renamed)}")
                said = json.dumps(json.loads(each.arguments or "{}"), sort_keys=True)
                return codec.replace(each, id=name, arguments=said)
            case ToolResult():
                texts = "\n".join(inner.text for inner in each.parts if isinstance(inner, Text))
                return (renamed[each.call_id], texts, each.is_error)
            case Thinking():
                return codec.replace(each, id="", summary=())
            case _:
                return each

    messages = tuple(
        codec.replace(message, parts=tuple(part(each) for each in message.parts))
        for message in prompt.messages
    )
    form, sampling, choice = prompt.format, prompt.sampling, prompt.choice
    if form is not None:
        form = codec.replace(form, name="", strict=None, description="")
    if sampling.n == 1:
        sampling = codec.replace(sampling, n=None)
    if choice is not None and choice.mode == "required" and len(choice.names) == 1:
        choice = codec.replace(choice, mode="named")
    tools = tuple(
        codec.replace(tool, parameters=tool.parameters or None, strict=None)
        for tool in prompt.tools
        if isinstance(tool, Tool)
    )
    return codec.replace(
        prompt,
        messages=messages,
        tools=tools,
        choice=choice,
        format=form,
        sampling=sampling,
        stream=False,
        store=None,
    )


NODE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
    },
    "required": ["name"],
}


@pytest.mark.bug("B106", "K34")
@pytest.mark.parametrize("kind", ["gemini", "vertex"])
@pytest.mark.parametrize("model", ["gemini-2.0-flash", "gemini-2.5-flash", "gemini-3-pro-preview"])
def test_a_schema_that_holds_itself_is_sent_as_json_schema(kind: str, model: str) -> None:
    schema = {"type": "object", "properties": {"tree": NODE}, "$defs": {"Node": NODE}}
    told = Prompt("openai_chat", (Message("user", (Text("Hi"),)),))
    form = Format("schema", "tree", schema)
    facts, notes = Facts(kind, model), Notes()
    asked = codec.replace(told, tools=(Tool("f", "", schema),), format=form)
    body = written(fit(asked, GEMINI.grammar(facts), notes), facts)

    (declared,) = body["tools"][0]["functionDeclarations"]
    sent = (declared["parametersJsonSchema"], body["generationConfig"]["responseJsonSchema"])
    is_cut = model == "gemini-2.0-flash"
    assert all((each == schema) is not is_cut for each in sent)
    assert any("$ref" in text for text in notes.warnings) is is_cut
