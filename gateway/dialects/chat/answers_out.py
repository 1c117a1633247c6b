"""Writes a whole answer as a chat completion; what it has no place for is noted."""

from collections.abc import Sequence
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.message import (
    Audio,
    Image,
    Opaque,
    Part,
    Prompt,
    Refusal,
    Text,
    Thinking,
    Tool,
    ToolCall,
)
from gateway.core.usage import Usage
from gateway.dialects.chat.citations import annotations_of
from gateway.dialects.chat.data_url import join_data
from gateway.dialects.chat.finishes import WORDS
from gateway.dialects.chat.reasoning import details_of, is_sealed
from gateway.dialects.chat.seal import extra_content
from gateway.dialects.chat.tools_in import LEGACY
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Told

ORIGIN = "openai_chat"


def write_answer(answer: Answer, told: Told, notes: Notes) -> bytes:
    """Write a whole answer."""
    legacy = is_legacy(told.prompt)
    whole: dict[str, Any] = {
        "id": answer.id or f"chatcmpl-{told.request_id}",
        "object": "chat.completion",
        "created": answer.created or told.created,
        "model": answer.model or told.model,
        "choices": [_choice(choice, told, notes, legacy=legacy) for choice in answer.choices],
    }
    if answer.usage is not None:
        whole["usage"] = usage_of(answer.usage)
    if answer.origin == ORIGIN:
        whole.update(answer.extra)
    return codec.encode(whole)


def _choice(choice: Choice, told: Told, notes: Notes, *, legacy: bool) -> dict[str, Any]:
    message = _message(choice, told, notes)
    finish = finish_word(choice.finish, notes)
    if legacy and "tool_calls" in message:
        message["function_call"] = message.pop("tool_calls")[0]["function"]
        finish = "function_call" if finish == "tool_calls" else finish
    return {
        "index": choice.index,
        "message": message,
        "logprobs": logprobs_of(choice.logprobs) if choice.logprobs else None,
        "finish_reason": finish,
    }


def _message(choice: Choice, told: Told, notes: Notes) -> dict[str, Any]:
    texts: list[str] = []
    annotations: list[dict[str, Any]] = []
    thoughts: list[Thinking] = []
    refusals: list[str] = []
    calls: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    at = 0
    for part in choice.parts:
        match part:
            case Text():
                texts.append(part.text)
                annotations += cited(part, at, notes)
                at += len(part.text)
            case Thinking():
                thoughts.append(part)
            case ToolCall():
                known = part.id or made_id(told.request_id, choice.index, len(calls))
                calls.append(call_of(part, known))
            case Refusal():
                refusals.append(part.text)
            case _:
                add_other(more, part, notes)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(texts) if texts or not (calls or refusals or more) else None,
        "refusal": "".join(refusals) if refusals else None,
    }
    if annotations:
        message["annotations"] = annotations
    if thoughts:
        _add_thoughts(message, thoughts)
    message.update(more)
    if calls:
        message["tool_calls"] = calls
    return message


def _add_thoughts(message: dict[str, Any], thoughts: Sequence[Thinking]) -> None:
    said = "".join(part.text for part in thoughts)
    if said:
        message["reasoning_content"] = said
    details = [
        entry
        for index, part in enumerate(thoughts)
        if is_sealed(part)
        for entry in details_of(part, index)
    ]
    if details:
        message["reasoning_details"] = details


def cited(part: Text, at: int, notes: Notes) -> list[dict[str, Any]]:
    """Return the annotations of a text that begins at this place; citations without an address are noted."""
    if not part.citations:
        return []
    found = annotations_of(part.citations, at, at + len(part.text))
    if len(found) < len(part.citations):
        notes.lost("citation_dropped")
    return found


def call_of(call: ToolCall, known: str) -> dict[str, Any]:
    """Write one call; a call without arguments has an empty object."""
    written: dict[str, Any] = {"id": known}
    if call.custom:
        written["type"] = "custom"
        written["custom"] = {"name": call.name, "input": call.arguments}
    else:
        written["type"] = "function"
        words = call.arguments if call.arguments.strip() else "{}"
        written["function"] = {"name": call.name, "arguments": words}
    if call.signature:
        written["extra_content"] = extra_content(call.signature, call.maker)
    return written


def add_other(message: dict[str, Any], part: Part, notes: Notes) -> None:
    """Write a picture or a sound; items of a provider's own tools are noted."""
    match part:
        case Image():
            url = part.url or join_data(part.media_type, part.data)
            images = message.setdefault("images", [])
            images.append({"type": "image_url", "image_url": {"url": url}, "index": len(images)})
        case Audio():
            message["audio"] = {
                "id": part.id,
                "data": part.data,
                "transcript": part.transcript,
                "expires_at": 0,
            }
        case Opaque():
            notes.lost("answer_item_dropped", part.kind)
        case _:
            notes.lost("answer_part_dropped", type(part).__name__.lower())


def finish_word(finish: str, notes: Notes) -> str:
    """Return the reason in a chat caller's words."""
    if finish == "pause":
        notes.lost("finish_changed", "pause_turn")
    return WORDS[finish]  # pyright: ignore[reportArgumentType]


def logprobs_of(tokens: Sequence[Any]) -> dict[str, Any]:
    """Write log probabilities."""
    return {"content": list(tokens), "refusal": None}


def made_id(request_id: str, choice: int, place: int) -> str:
    """Return the id of a call whose provider gave none; the same whenever the same answer is written."""
    told = "".join(letter for letter in request_id if letter.isalnum())[-24:]
    return f"call_{told}_{choice}_{place}"


def is_legacy(prompt: Prompt) -> bool:
    """Tell whether the caller offered `functions`, and so reads `function_call`."""
    return any(
        isinstance(tool, Tool) and LEGACY.items() <= tool.extra.items() for tool in prompt.tools
    )


def usage_of(usage: Usage) -> dict[str, Any]:
    """Write token counts; parts that the provider did not tell are left out."""
    input_, output = usage.input or 0, usage.output or 0
    written: dict[str, Any] = {
        "prompt_tokens": input_,
        "completion_tokens": output,
        "total_tokens": input_ + output,
    }
    details = {
        "cached_tokens": usage.cached,
        "cache_write_tokens": usage.cache_write,
        "audio_tokens": usage.audio_input,
    }
    told = {name: count for name, count in details.items() if count is not None}
    if told:
        written["prompt_tokens_details"] = told
    details = {"reasoning_tokens": usage.reasoning, "audio_tokens": usage.audio_output}
    told = {name: count for name, count in details.items() if count is not None}
    if told:
        written["completion_tokens_details"] = told
    return written
