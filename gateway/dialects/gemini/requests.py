"""Writes a prompt as the body of generateContent; the grammar has put its history in order before."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.core.message import Message, Prompt, ToolCall, ToolResult
from gateway.dialects.gemini.answers import MADE_UP
from gateway.dialects.gemini.families import Family, family_of
from gateway.dialects.gemini.parts import write_call, write_part, write_result
from gateway.dialects.gemini.paths import VERTEX
from gateway.dialects.gemini.settings import generation_config
from gateway.dialects.gemini.tools import write_choice, write_tools
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts

_ORIGIN = "gemini"
_SYSTEM = frozenset({"system", "developer"})
_FOREIGN_IDS = (MADE_UP, "toolu_", "tooluse_", "fc_", "chatcmpl-tool-")
_MADE_ELSEWHERE = "skip_thought_signature_validator"
"""The provider's own word for a call in the history that none of its models made."""
_TIERS = {
    "default": "standard",
    "standard": "standard",
    "standard_only": "standard",
    "flex": "flex",
    "priority": "priority",
}
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}\Z")


def write_request(prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
    """Write the fields of the body; model and stream are said by the path."""
    family = family_of(facts.model)
    body = dict(prompt.extra) if prompt.origin == _ORIGIN else _of_others(prompt, notes)
    writer = _History(family, notes)
    body["contents"] = writer.contents(prompt.messages)
    if writer.system:
        body["systemInstruction"] = {"parts": writer.system}
    tools = write_tools(prompt, notes)
    if tools:
        body["tools"] = tools
        if prompt.parallel is False:
            notes.lost("field_unsupported", "parallel_tool_calls")
    if prompt.choice is not None and tools:
        body["toolConfig"] = {
            **(codec.as_object(body.get("toolConfig")) or {}),
            **write_choice(prompt.choice),
        }
    config = {
        **(codec.as_object(body.get("generationConfig")) or {}),
        **generation_config(prompt, family, notes),
    }
    if config:
        body["generationConfig"] = config
    body.update(_about(prompt, facts, notes))
    return {name: codec.raw(value) for name, value in body.items()}


class _History:
    """Writes messages in order; `system` holds the parts of the system prompt."""

    __slots__ = ("_family", "_known", "_names", "_notes", "system")

    def __init__(self, family: Family, notes: Notes) -> None:
        self.system: list[dict[str, Any]] = []
        self._family = family
        self._notes = notes
        self._names: dict[str, str] = {}
        self._known: set[str] = set()

    def contents(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for message in messages:
            parts = self._parts(message)
            if message.name:
                self._notes.lost("field_unsupported", "name")
            if message.role in _SYSTEM:
                self.system += parts
            elif parts:
                role = "model" if message.role == "assistant" else "user"
                found.append({"role": role, "parts": parts})
        return found

    def _parts(self, message: Message) -> list[dict[str, Any]]:
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if any(call.signature and call.maker == _ORIGIN for call in calls):
            self._known |= {call.id for call in calls if not call.id.startswith(_FOREIGN_IDS)}
        found: list[dict[str, Any]] = []
        for part in message.parts:
            match part:
                case ToolCall():
                    self._names[part.id] = part.name
                    written = write_call(part, with_id=part.id in self._known)
                    if part is calls[0] and self._family.is_third:
                        self._seal(written)
                case ToolResult():
                    name = part.name or self._names.get(part.call_id, part.call_id)
                    with_id = part.call_id in self._known
                    written = write_result(part, name, self._notes, with_id=with_id)
                case _:
                    written = write_part(part, self._notes)
            if written is not None:
                found.append(written)
        return found

    def _seal(self, call: dict[str, Any]) -> None:
        """Mark the first call of a turn where it has no seal: later models refuse it otherwise (B108)."""
        if "thoughtSignature" not in call:
            call["thoughtSignature"] = _MADE_ELSEWHERE
            self._notes.lost("seal_missing", "tool_calls")


def _of_others(prompt: Prompt, notes: Notes) -> dict[str, Any]:
    """Return what can be said of fields that another dialect knows."""
    body: dict[str, Any] = {}
    for name, value in prompt.extra.items():
        if name == "modalities" and isinstance(value, list):
            kinds = [str(kind).upper() for kind in cast("list[object]", value)]
            body["generationConfig"] = {"responseModalities": kinds}
        else:
            notes.lost("field_unknown", name)
    return body


def _about(prompt: Prompt, facts: Facts, notes: Notes) -> dict[str, Any]:
    """Return the fields beside the question: labels, tier, and whether it may be kept."""
    found: dict[str, Any] = {}
    if prompt.metadata:
        if facts.kind == VERTEX:
            found["labels"] = _labels(prompt.metadata, notes)
        else:
            notes.lost("field_unsupported", "metadata")
    if prompt.service_tier not in {"", "auto"}:
        tier = _TIERS.get(prompt.service_tier)
        if tier is None or facts.kind == VERTEX:
            notes.lost("field_unsupported", "service_tier")
        else:
            found["serviceTier"] = tier
    if prompt.store:
        notes.lost("field_unsupported", "store")
    elif prompt.store is False and facts.kind != VERTEX:
        found["store"] = False
    for name, value in (
        ("user", prompt.user),
        ("verbosity", prompt.verbosity),
        ("prompt_cache_key", prompt.cache_key),
    ):
        if value:
            notes.lost("field_unsupported", name)
    return found


def _labels(metadata: Mapping[str, Any], notes: Notes) -> dict[str, str]:
    labels: dict[str, str] = {}
    for name, value in metadata.items():
        if _LABEL.match(name) and isinstance(value, str) and _LABEL_VALUE.match(value):
            labels[name] = value
        else:
            notes.lost("field_unsupported", f"metadata.{name}"[:80])
    return labels
