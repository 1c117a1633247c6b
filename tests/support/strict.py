"""A strict target: says where a request breaks the grammar that it asks for, as its provider's 400 would (K33)."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from gateway.core.message import (
    Audio,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from gateway.dialects.grammar import Grammar, NameRules
from tests.support.strict_schema import schema_breaches

SYSTEM = {"system", "developer"}


def breaches(prompt: Prompt, grammar: Grammar) -> list[str]:
    """Return everything that a target of this grammar would refuse."""
    return [
        *_order(prompt.messages, grammar),
        *_results(prompt.messages, grammar),
        *_content(prompt, grammar),
        *_settings(prompt, grammar),
    ]


def all_parts(prompt: Prompt) -> Iterator[tuple[Message, Part]]:
    """Yield every part with its message; what results hold comes behind them."""
    for message in prompt.messages:
        for part in message.parts:
            yield message, part
            if isinstance(part, ToolResult):
                yield from ((message, inner) for inner in part.parts)


def _order(messages: tuple[Message, ...], grammar: Grammar) -> Iterator[str]:
    if not messages:
        yield "no messages"
        return
    body = list(messages)
    while body and body[0].role in SYSTEM:
        body.pop(0)
    if grammar.system != "inline":
        yield from _system(messages[: len(messages) - len(body)], body, grammar)
    if grammar.alternates:
        for one, other in pairwise(message.role for message in messages):
            if one == other and one not in SYSTEM:
                yield f"two messages of {one} in a row"
    if grammar.first_user and body and body[0].role != "user":
        yield f"begins with {body[0].role}"
    if not grammar.prefill and body and body[-1].role == "assistant":
        yield "ends with the assistant"


def _system(head: Sequence[Message], body: Sequence[Message], grammar: Grammar) -> Iterator[str]:
    if any(message.role in SYSTEM for message in body):
        yield "a system message between others"
    if not body:
        yield "nothing but system messages"
    if grammar.system == "single":
        if len(head) > 1:
            yield "more than one system message"
        if head and [type(part) for part in head[0].parts] != [Text]:
            yield "a system message that is not one text"


def _results(messages: tuple[Message, ...], grammar: Grammar) -> Iterator[str]:
    if not (grammar.results_together or grammar.results_complete):
        return
    seen: set[str] = set()
    for at, message in enumerate(messages):
        if message.role == "tool":
            if at == 0 or messages[at - 1].role != "assistant":
                yield "results that follow no call"
            continue
        calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
        if len(set(calls)) < len(calls):
            yield "two calls of one id"
        if grammar.call_ids is not None and seen & set(calls):
            yield "an id of an earlier call"
        seen.update(calls)
        if not calls:
            continue
        following = messages[at + 1] if at + 1 < len(messages) else None
        answered: list[str] = []
        if following is not None and following.role == "tool":
            answered = [p.call_id for p in following.parts if isinstance(p, ToolResult)]
        if grammar.results_complete and answered != calls:
            yield f"calls {calls} are answered by {answered}"
        elif [call for call in calls if call in answered] != answered:
            yield f"calls {calls} are answered in the order {answered}"


def _content(prompt: Prompt, grammar: Grammar) -> Iterator[str]:
    marks = sum(isinstance(tool, Tool) and tool.cache is not None for tool in prompt.tools)
    for message, part in all_parts(prompt):
        marks += getattr(part, "cache", None) is not None
        yield from _part(part, grammar, prompt.origin)
        if message.role == "tool" and grammar.results_text_only:
            inner = part.parts if isinstance(part, ToolResult) else ()
            if not all(isinstance(each, Text) for each in inner):
                yield "a result with more than text"
    for message in prompt.messages:
        if not message.parts and (not grammar.empty_text or message.role == "tool"):
            yield f"an empty message of {message.role}"
    if marks > grammar.cache_marks:
        yield f"{marks} cache marks"


def _part(part: Part, grammar: Grammar, origin: str) -> Iterator[str]:
    match part:
        case Text():
            if not grammar.empty_text and not part.text.strip() and not part.signature:
                yield "a blank text"
            yield from _seal(part.signature, part.maker, grammar)
        case Thinking():
            sealed = part.signature or part.redacted
            if not sealed and not (grammar.open_thinking and part.text):
                yield "open reasoning"
            yield from _seal(sealed, part.maker, grammar)
        case ToolCall():
            yield from _seal(part.signature, part.maker, grammar)
            if grammar.object_arguments and not part.custom and not _is_object(part.arguments):
                yield f"arguments that are no object: {part.arguments[:40]}"
            yield from _name(part.id, grammar.call_ids, "id of a call")
        case ToolResult():
            yield from _name(part.call_id, grammar.call_ids, "id of a result")
            if not grammar.empty_text and not part.parts:
                yield "a result without content"
        case Image() | Audio() | File():
            yield from _media(part, grammar, origin)
        case Opaque():
            if grammar.items is not None and part.origin not in grammar.items:
                yield "an item of another provider"
        case _:
            pass


def _media(part: Image | Audio | File, grammar: Grammar, origin: str) -> Iterator[str]:
    if isinstance(part, Audio):
        if not grammar.audio:
            yield "a sound"
        return
    if part.file_id and grammar.file_ids is not None and origin not in grammar.file_ids:
        yield "a file of another provider"
    if isinstance(part, File) and not grammar.files:
        yield "a file"
    is_taken = grammar.image_urls if isinstance(part, Image) else grammar.file_urls
    if part.url and not is_taken and not part.url.startswith(grammar.own_urls or ("\0",)):
        yield "an address"
    if part.url.startswith("data:") or part.data.startswith("data:"):
        yield "a data URL"
    if isinstance(part, Image) and part.data:
        if not grammar.image_data:
            yield "a picture's data"
        if part.media_type in {"", "image/jpg"} or not part.media_type.startswith("image/"):
            yield f"a picture of type {part.media_type}"


def _seal(sealed: str, maker: str, grammar: Grammar) -> Iterator[str]:
    if sealed and maker not in grammar.makers:
        yield f"a seal of {maker}"


def _settings(prompt: Prompt, grammar: Grammar) -> Iterator[str]:
    stops = prompt.sampling.stop
    if len(stops) > grammar.most_stops or "" in stops:
        yield f"stop sequences {stops}"
    if not grammar.blank_stops and any(not stop.strip() for stop in stops):
        yield "a blank stop sequence"
    names = [tool.name for tool in prompt.tools if isinstance(tool, Tool)]
    names += prompt.choice.names if prompt.choice else ()
    names += [part.name for _, part in all_parts(prompt) if isinstance(part, ToolCall)]
    for name in names:
        yield from _name(name, grammar.names, "name of a tool")
    for tool in prompt.tools:
        if isinstance(tool, ServerTool):
            if grammar.items is not None and tool.origin not in grammar.items:
                yield "a tool of another provider"
        elif tool.parameters is not None:
            yield from schema_breaches(tool.parameters, grammar.schema)
    if prompt.format is not None and prompt.format.schema is not None:
        yield from schema_breaches(prompt.format.schema, grammar.schema)


def _name(name: str, rules: NameRules | None, what: str) -> Iterator[str]:
    if rules is None:
        return
    if len(name) > rules.longest or not re.fullmatch(rules.pattern, name):
        yield f"{what}: {name!r}"


def _is_object(text: str) -> bool:
    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return isinstance(json.loads(text, parse_constant=refuse), dict)
    except (ValueError, RecursionError):
        return False
