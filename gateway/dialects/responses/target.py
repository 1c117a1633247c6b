"""Responses as providers speak it: requests are written, answers read. Nothing is left with the provider."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer, Collector
from gateway.core.codec import as_object
from gateway.core.message import Message, Prompt, ServerTool, Text
from gateway.core.scope import digest
from gateway.dialects.base import Redactor, StreamRules, unredacted
from gateway.dialects.chat.efforts import effort_for
from gateway.dialects.chat.families import (
    continues,
    is_shared,
    reasoning_for,
    refused_settings,
    tier_of,
)
from gateway.dialects.grammar import Grammar, NameRules
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.makers import maker_of
from gateway.dialects.plain_errors import PlainErrors
from gateway.dialects.responses.answers import require_answer, unusable
from gateway.dialects.responses.reading import EventReader
from gateway.dialects.responses.settings import (
    write_choice,
    write_reasoning,
    write_text,
    write_tools,
)
from gateway.dialects.responses.states import MAKER, ORIGIN
from gateway.dialects.responses.stream_reader import ResponsesReader
from gateway.dialects.responses.write_items import ItemWriter
from gateway.dialects.sides import Facts
from gateway.dialects.within import put_back

_GRAMMAR = Grammar(
    results_complete=True,
    makers=frozenset({MAKER}),
    audio=False,
    most_stops=0,
    blank_stops=False,
    call_ids=NameRules(r"\S+", 64),
    items=frozenset({ORIGIN}),
    file_ids=frozenset({ORIGIN, "openai_chat"}),
    bags=frozenset({ORIGIN}),
    titles="data",
    custom_tools=True,
)
_LEAST_TOKENS = 16
"""What OpenAI takes at least as `max_output_tokens`."""
_LONGEST_ID = 64
"""What it takes at most as an id of who asks, or of what is cached."""
_STRICT = frozenset({"openai", "azure"})
_LOGPROBS = "message.output_text.logprobs"
_SEALED = "reasoning.encrypted_content"
_UNKNOWN_HERE = (
    "top_k",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
)
_FIXED_HERE = ("temperature", "top_p", "top_logprobs")
"""Settings that a model refuses while it reasons, but for the value that holds anyway."""
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


@lru_cache(16)
def _grammar(maker: str, continues: bool) -> Grammar:  # noqa: FBT001  one fact about the model
    """Return the grammar of one maker; models that reason do not go on with an answer that the history begins."""
    return replace(_GRAMMAR, makers=frozenset({maker}), prefill=continues)


class ResponsesTarget(PlainErrors):
    """The target's side of a translation into Responses."""

    name = ORIGIN

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be; Responses takes nearly any."""
        return _grammar(maker_of(facts.kind), continues(facts))

    def path(self, facts: Facts) -> bytes:
        """Return the address of the call."""
        return b"/responses"

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write a prompt as a request that leaves nothing stored."""
        own = prompt.origin == ORIGIN
        fields: dict[str, Any] = {}
        messages = prompt.messages
        instructions = leading_instructions(prompt)
        if instructions is not None:
            fields["instructions"] = instructions
            messages = messages[1:]
        first = len(prompt.messages) - len(messages)
        fields["input"] = ItemWriter(notes, own=own).write(messages, first)
        fields["store"] = False
        fields["include"] = [_SEALED, *([_LOGPROBS] if prompt.sampling.logprobs else [])]
        _write_tools(prompt, fields, notes)
        _write_settings(prompt, facts, fields, notes)
        if own:
            _write_own(prompt, fields)
            put_back(fields, prompt.strays, notes)
        else:
            for name, value in prompt.extra.items():
                if is_shared(name, facts):
                    fields[name] = value
                else:
                    notes.lost("field_unknown", name)
        return {name: codec.raw(value) for name, value in fields.items()}

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a whole success answer."""
        try:
            response = as_object(codec.decode(body))
        except _BAD as bad:
            raise unusable(str(bad)) from None
        if response is None:
            raise unusable("no object")
        require_answer(response, body, secrets)
        reader = EventReader(outside=reasoning_outside)
        reader.end(response)
        collector = Collector(ORIGIN)
        collector.add(reader.take())
        return collector.answer()

    def reader(self, rules: StreamRules) -> ResponsesReader:
        """Return a reader for one stream."""
        return ResponsesReader(rules)


def leading_instructions(prompt: Prompt) -> str | None:
    """Return the system prompt that `instructions` can say: the first message, where it is one plain text."""
    match prompt.messages:
        case (Message(role="system", parts=(Text(text=text),)), *_) if text:
            return text
        case _:
            return None


def _write_tools(prompt: Prompt, fields: dict[str, Any], notes: Notes) -> None:
    for tool in prompt.tools:
        if isinstance(tool, ServerTool) and tool.origin != ORIGIN:
            raise refuse("tool_unsupported", f"tools: {tool.kind}", param="tools")
    tools = write_tools(prompt, notes)
    if not tools:
        return
    fields["tools"] = tools
    if prompt.choice is not None:
        fields["tool_choice"] = write_choice(prompt.choice, prompt)
    if prompt.parallel is not None:
        fields["parallel_tool_calls"] = prompt.parallel


def _write_settings(prompt: Prompt, facts: Facts, fields: dict[str, Any], notes: Notes) -> None:
    sampling = prompt.sampling
    if prompt.store:
        notes.lost("store_off", "store")
    if (sampling.n or 1) > 1:
        raise refuse("choices_unsupported", "n", param="n")
    for name in _UNKNOWN_HERE:
        if getattr(sampling, name) is not None:
            notes.lost("field_unsupported", name)
    most = prompt.max_tokens
    if most is not None and most < _LEAST_TOKENS and facts.kind in _STRICT:
        most = _LEAST_TOKENS
        notes.lost("value_changed", "max_tokens")
    asked = reasoning_for(prompt, facts, notes)
    if asked is not None and asked.budget is not None:
        notes.lost("value_changed", "the budget of thinking")
    reasoning = write_reasoning(asked, own=prompt.origin == ORIGIN)
    effort = effort_for(asked, facts, notes) if asked is not None else ""
    if effort:
        reasoning["effort"] = effort
    settings: dict[str, Any] = {
        "max_output_tokens": most,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_logprobs": sampling.top_logprobs,
        "text": write_text(prompt.format, prompt.verbosity) or None,
        "reasoning": reasoning or None,
        "user": _short(prompt.user, "user", facts, notes) or None,
        "metadata": prompt.metadata,
        "service_tier": tier_of(prompt, facts, notes),
        "prompt_cache_key": _short(prompt.cache_key, "prompt_cache_key", facts, notes) or None,
    }
    refused = refused_settings(facts, prompt.reasoning)
    for name in _FIXED_HERE:
        if name in refused and settings[name] is not None and settings[name] != 1:
            settings[name] = None
            notes.lost("field_unsupported", name)
    fields.update({name: value for name, value in settings.items() if value is not None})


def _write_own(prompt: Prompt, fields: dict[str, Any]) -> None:
    """Write what only this format knows; what `include` asks for goes to what stands there."""
    for name, value in prompt.extra.items():
        if name == "include" and isinstance(value, list):
            fields["include"] += value
        else:
            fields[name] = value


def _short(word: str, name: str, facts: Facts, notes: Notes) -> str:
    """Return an id as OpenAI takes it: a longer one is told by its digest, which is as good."""
    if len(word) <= _LONGEST_ID or facts.kind not in _STRICT:
        return word
    notes.lost("value_changed", name)
    return digest(word)[:_LONGEST_ID]
