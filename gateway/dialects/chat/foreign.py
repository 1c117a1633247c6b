"""Reasoning of other providers in the messages of a relayed request: taken out where it would be refused (K32)."""

from typing import Any, cast

from gateway.core import codec
from gateway.dialects.chat.reasoning import MAKERS
from gateway.dialects.chat.seal import seal_of
from gateway.dialects.losses import Notes

DETAILS, CALL_SEAL, PARTS = "reasoning_details", "thought_signature", "thinking"
_WORDS = (b'"reasoning', b'"thinking', b'"redacted_thinking', b'"thought_signature"')
_MEMBERS = ("reasoning", "reasoning_content", DETAILS, "thinking_blocks")
_THOUGHT = ("thinking", "redacted_thinking")
_Message = dict[str, Any]
_read = codec.Decoder(list[codec.Raw]).decode


def without_foreign(messages: codec.Raw, known: frozenset[str], notes: Notes) -> codec.Raw:
    """Return the messages with what a provider knows of reasoning alone; the very same where that is all.

    `known`: the members it takes, `thought_signature` where it reads those of Gemini, and `thinking` where parts of
    a content may be reasoning. What another maker has sealed is taken out of `reasoning_details`; entries as
    OpenRouter writes them stay.
    """
    told = bytes(messages)
    if not any(word in told for word in _WORDS):
        return messages
    try:
        return _without(messages, _read(told), known, notes)
    except (codec.JSONError, RecursionError):
        return messages  # it is no list, or holds what nobody reads: the provider says so


def _without(
    messages: codec.Raw, listed: list[codec.Raw], known: frozenset[str], notes: Notes
) -> codec.Raw:
    """Change what must be changed; every other message stays byte for byte."""
    changed = False
    for at, raw in enumerate(listed):
        held = bytes(raw)
        if not any(word in held for word in _WORDS):
            continue
        message = codec.as_object(codec.value_of(raw))
        if message is not None and _strip(message, known, f"messages[{at}]", notes):
            listed[at] = codec.raw(message)
            changed = True
    return codec.raw(listed) if changed else messages


def _strip(message: _Message, known: frozenset[str], at: str, notes: Notes) -> bool:
    """Take out of one message of the model what is not known; tell whether there was any."""
    if message.get("role") != "assistant":
        return False
    dropped = [name for name in _MEMBERS if name in message and name not in known]
    lost = [name for name in dropped if message.pop(name)]
    if DETAILS in message and _strip_details(message):
        dropped.append(DETAILS)
        lost.append(DETAILS)
    if PARTS not in known and _strip_parts(message):
        dropped.append(PARTS)
        lost.append("content (thinking)")
    for name in lost:
        notes.lost("thinking_dropped", f"{at}.{name}")
    if CALL_SEAL in known:
        return bool(dropped)
    calls = message.get("tool_calls")
    listed = cast("list[object]", calls) if isinstance(calls, list) else []
    sealed = [
        call for call in (message, *map(codec.as_object, listed)) if call and _is_sealed(call)
    ]
    for call in sealed:
        del call["extra_content"]
        notes.lost("thinking_dropped", f"the seal in {at}")
    return bool(dropped or sealed)


def _strip_details(message: _Message) -> bool:
    """Leave out the entries that name a maker as this gateway does: they were made at the maker's own address."""
    details = message[DETAILS]
    if not isinstance(details, list):
        return False
    listed = cast("list[object]", details)
    kept = [entry for entry in listed if (codec.as_object(entry) or {}).get("format") not in MAKERS]
    if len(kept) == len(listed):
        return False
    if kept:
        message[DETAILS] = kept
    else:
        del message[DETAILS]
    return True


def _strip_parts(message: _Message) -> bool:
    """Leave the parts of a content out that are reasoning; tell whether there were any."""
    content = message.get("content")
    if not isinstance(content, list):
        return False
    listed = cast("list[object]", content)
    kept = [part for part in listed if (codec.as_object(part) or {}).get("type") not in _THOUGHT]
    if len(kept) == len(listed):
        return False
    message["content"] = kept or ""
    return True


def _is_sealed(call: _Message) -> bool:
    return bool(seal_of(call.get("extra_content"))[0])
