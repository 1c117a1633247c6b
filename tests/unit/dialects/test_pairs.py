"""Any request of any caller's format, translated for any target: what the target reads is what was asked.

Every difference is named to the caller, or the request is refused (K33, K34).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Part, Prompt, Tool, ToolCall, ToolResult
from gateway.dialects.fit.forced_form import NAME as FORM
from gateway.dialects.fit.names import NameMap
from gateway.dialects.loss_table import LOSSES
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write
from tests.support import (
    bedrock_requests,
    cohere_requests,
    gemini_requests,
    messages_requests,
    ollama_requests,
)
from tests.support.neutral import SETTINGS, Can, prompt
from tests.support.weighed import differences, pieces

Json = dict[str, Any]
SEEDS = 10
_SHOWN = frozenset({"text", "image_url", "image_data", "image_detail", "file_data"})
CHAT = Can(
    "openai_chat",
    user=_SHOWN | {"audio", "file_url"},
    roles=("system", "developer"),
    alternates=False,
    empty_text=False,
    names=True,
    cached=frozenset({"text", "image", "file", "call", "result", "tool"}),
    settings=SETTINGS - {"custom_tools", "allowed", "summary"},
    no_arguments="{}",
    huge=0,
)
RESPONSES = Can(
    "openai_responses",
    user=_SHOWN,
    assistant=frozenset({"text", "sealed", "refusal", "call"}),
    tool=frozenset({"text", "image_data"}),
    roles=("system", "developer"),
    ordered=False,
    one_text=False,
    no_arguments="{}",
    maker="openai",
    settings=SETTINGS
    - {"budget", "custom_tools", "frequency_penalty", "include_usage", "logit_bias", "n"}
    - {"presence_penalty", "seed", "stop", "store", "stream", "top_k"},
    huge=0,
)
CALLING: Mapping[str, tuple[Can, Facts]] = {
    "openai_chat": (CHAT, Facts("openrouter", "m")),
    "anthropic_messages": (
        replace(messages_requests.CAN, huge=0),
        Facts("anthropic", "claude-opus-4-5"),
    ),
    "openai_responses": (RESPONSES, Facts("openai", "m")),
}
"""What each caller's format can say, and for whom it is written to say all of it."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A target: its format and facts, and who reads its requests."""

    wire: str
    facts: Facts
    read: Callable[[Json], Prompt]


def by_caller(name: str) -> Callable[[Json], Prompt]:
    def read(body: Json) -> Prompt:
        fields = {key: codec.raw(value) for key, value in body.items()}
        return CALLERS[name].read_request(fields, Notes())

    return read


_CHAT = by_caller("openai_chat")
AIMS: Mapping[str, Aim] = {
    "openai": Aim("openai_chat", Facts("openai", "gpt-5"), _CHAT),
    "openrouter": Aim("openai_chat", Facts("openrouter", "a/b"), _CHAT),
    "mistral": Aim("openai_chat", Facts("mistral", "m"), _CHAT),
    "deepseek": Aim("openai_chat", Facts("deepseek", "deepseek-chat"), _CHAT),
    "anthropic": Aim(
        "anthropic_messages",
        Facts("anthropic", "claude-opus-4-5"),
        by_caller("anthropic_messages"),
    ),
    "responses": Aim("openai_responses", Facts("openai", "gpt-5"), by_caller("openai_responses")),
    "gemini": Aim("gemini", Facts("gemini", "gemini-2.5-flash"), gemini_requests.read),
    "claude on bedrock": Aim(
        "bedrock_converse",
        Facts("bedrock", "anthropic.claude-sonnet-4-5-v1:0"),
        bedrock_requests.read_prompt,
    ),
    "nova": Aim(
        "bedrock_converse",
        Facts("bedrock", "amazon.nova-pro-v1:0"),
        bedrock_requests.read_prompt,
    ),
    "cohere": Aim("cohere_v2", Facts("cohere", "command-a"), cohere_requests.read_prompt),
    "ollama": Aim("ollama", Facts("ollama", "llama3"), ollama_requests.read_prompt),
}
ROWS: Mapping[str, tuple[str, ...]] = {
    "system": ("system_moved", "text_filled"),
    "user": ("system_moved", "user_added", "prefill_ended", "text_filled"),
    "assistant": ("text_filled", "item_dropped", "reply_added"),
    "results": ("result_missing", "field_unsupported"),
    "errors": ("field_unsupported",),
    "calls": (),
    "media": (),
    "thinking": ("thinking_dropped", "thinking_off"),
    "seals": ("thinking_dropped", "thinking_off"),
    "call seals": ("thinking_dropped", "seal_missing"),
    "items": ("item_dropped",),
    "cache": ("cache_dropped",),
    "cached tools": ("cache_dropped", "value_changed"),
    "names": ("field_unsupported",),
    "tools": ("field_unsupported", "value_changed"),
    "schemas": ("schema_changed", "value_changed"),
    "format": ("schema_changed", "field_unsupported", "value_changed"),
    "reasoning": ("value_changed", "field_unsupported", "thinking_off"),
}
"""Which losses may explain a difference of this kind."""
SETTING = ("field_unsupported", "value_changed", "stop_dropped")
"""The same for all other kinds."""
AT = {
    ("user", "bedrock_converse"): "documents need words beside them, which are their names",
    ("tools", "bedrock_converse"): "calls of the history need their tools, be none offered",
    ("schemas", "bedrock_converse"): "such tools have a schema that says nothing",
}
"""Differences that are none to a model, by the target's format."""


def asked_by(caller: str, seed: int) -> Prompt:
    """Return a request as it is read from a caller; two of three hold nothing but text and calls."""
    can, facts = CALLING[caller]
    if seed % 3:
        can = replace(
            can,
            user=frozenset({"text"}),
            tool=frozenset({"text"}),
            settings=can.settings - {"n"},
        )
    said = prompt(Random(f"{caller} {seed}"), can)
    body = TARGETS[caller].write_request(said, facts, Notes())
    return CALLERS[caller].read_request(body, Notes())


def with_own_names(read: Prompt, names: NameMap) -> Prompt:
    """Return what a target read with the caller's names of tools."""

    def named(part: Part | Tool) -> Any:
        if isinstance(part, Tool | ToolCall | ToolResult):
            return codec.replace(part, name=names.original(part.name))
        return part

    messages = [codec.replace(m, parts=tuple(map(named, m.parts))) for m in read.messages]
    choice = read.choice
    if choice is not None:
        choice = codec.replace(choice, names=tuple(map(names.original, choice.names)))
    tools = tuple(named(tool) for tool in read.tools if isinstance(tool, Tool))
    return codec.replace(read, messages=tuple(messages), tools=tools, choice=choice)


def with_own_form(read: Prompt, asked: Prompt) -> Prompt:
    """Return what a target read with a tool that must be called for the form of answer that it stands for."""
    made = next((tool for tool in read.tools if isinstance(tool, Tool) and tool.name == FORM), None)
    if made is None:
        return read
    assert read.choice is not None
    assert read.choice.mode in {"required", "named"}
    form = asked.format
    assert form is not None
    assert form.kind == "json" or made.parameters == form.schema
    tools = tuple(tool for tool in read.tools if tool is not made)
    off = read.reasoning is not None and read.reasoning.enabled is False
    return codec.replace(
        read,
        format=form,
        tools=tools,
        choice=asked.choice,
        parallel=asked.parallel,
        reasoning=asked.reasoning if off else read.reasoning,
    )


def unexplained(asked: Prompt, caller: str, aim: Aim) -> Iterator[str]:
    """Yield what is different at the target and named by no warning; raises InputError for what is refused."""
    side, notes = TARGETS[aim.wire], Notes()
    told = Told("req_1", "m", 0, asked)
    written = write(asked, CALLERS[caller], side, aim.facts, side.grammar(aim.facts), told, notes)
    body = {name: codec.value_of(field) for name, field in written.fields.items()}
    read = with_own_names(aim.read({"model": "m", **body}), written.names)
    read = with_own_form(read, asked)
    first, second = pieces(asked), pieces(read)
    if first["max_tokens"] is None:
        second["max_tokens"] = None  # some formats must say one
    for kind in differences(first, second):
        words = [LOSSES[row].words for row in ROWS.get(kind, SETTING)]
        explained = any(each in warning for each in words for warning in notes.warnings)
        if not explained and (kind, aim.wire) not in AT and not _is_same(kind, first, second):
            yield f"{kind}: {first[kind]!r} became {second[kind]!r}, warned of {notes.warnings}"


def _is_same(kind: str, first: Json, second: Json) -> bool:
    """Tell whether a difference is none.

    Seals that only their maker can read may go where their words stay; an effort may be said as a budget; what does
    not think at all needs not be told so.
    """
    if kind == "seals":
        return bool(first["thinking"] == second["thinking"])
    if kind != "reasoning":
        return False
    (enabled, effort, budget), (_, _, given) = first[kind], second[kind]
    by_budget = bool(effort) and budget is None and given is not None
    return by_budget or (enabled is False and second[kind] == (None, "", None))


def is_refused(caller: str, target: str, seed: int) -> bool:
    """Check one request, and tell whether it was refused, which says what is at fault."""
    asked = asked_by(caller, seed)
    try:
        found = list(unexplained(asked, caller, AIMS[target]))
    except InputError as error:
        found = [] if error.http == 400 and error.message else [repr(error)]
        assert found == [], seed
        return True
    assert found == [], seed
    return False


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("target", AIMS)
@pytest.mark.parametrize("caller", CALLING)
def test_what_a_target_reads_is_what_was_asked_or_it_is_told(caller: str, target: str) -> None:
    assert sum(is_refused(caller, target, seed) for seed in range(SEEDS)) < SEEDS


@pytest.mark.bug("K11", "K33")
def test_what_only_the_callers_format_knows_of_reasoning_stays_behind() -> None:
    body = {"model": "m", "input": "Hello", "include": ["reasoning.encrypted_content"]}
    asked = by_caller("openai_responses")(body)
    for target in ("openrouter", "deepseek", "openai"):
        facts = AIMS[target].facts
        fields = TARGETS["openai_chat"].write_request(asked, facts, Notes())
        assert fields.keys() == {"messages"}, target


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", AIMS)
@pytest.mark.parametrize("caller", CALLING)
def test_it_is_so_for_many_requests(caller: str, target: str) -> None:
    assert sum(is_refused(caller, target, seed) for seed in range(SEEDS, 400)) < 390
