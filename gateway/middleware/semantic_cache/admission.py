"""What is kept and what is not: the checks stand where answers are stored, whatever led there (K22)."""

import re
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.call import Call
from gateway.core.message import Opaque, Refusal, Text, ToolCall
from gateway.middleware.semantic_cache import bodies, forms, stored
from gateway.middleware.semantic_cache.fingerprint import Ask
from gateway.middleware.semantic_cache.options import SemanticCacheOptions

_DEFAULT_TEMPERATURE = 1.0
_BRIEF_S = 60.0
"""Answers that live no longer may be those to questions of the hour."""


class Admission:
    """The rules of one cache of a chain."""

    def __init__(self, options: SemanticCacheOptions) -> None:
        self._max_temperature = options.max_temperature
        self._after_tools = options.cache_after_tools
        self._max_bytes = options.max_entry_bytes
        is_brief = options.ttl_s + options.stale_ttl_s <= _BRIEF_S
        own = () if is_brief and "volatile" not in options.model_fields_set else options.volatile
        words = "|".join(re.escape(word) for word in own)
        self._volatile = re.compile(rf"\b(?:{words})\b", re.IGNORECASE) if words else None

    def bars(self, call: Call, ask: Ask) -> str:
        """Say why a request has nothing to do with the cache, "" where it has."""
        if ask.unpinned:
            return ask.unpinned
        if ask.after_tools and not self._after_tools:
            return "after_tools"
        if call.run.endpoint == "embeddings":
            return ""  # vectors have no temperature, and stay what they are
        if self._max_temperature is not None and _temperature(call) > self._max_temperature:
            return "temperature"
        asked = bodies.said(call) if forms.is_body(call) else ask.asked
        if self._volatile is not None and asked and self._volatile.search(asked):
            return "volatile"
        return ""

    def refuses(self, answer: Answer, endpoint: str = "chat") -> str:
        """Say why an answer is not kept, "" where it is."""
        if endpoint in bodies.ENDPOINTS:
            return bodies.refuses(endpoint, answer)
        if not answer.choices:
            return "empty"
        for choice in answer.choices:
            if any(isinstance(part, ToolCall) for part in choice.parts):
                return "tool_calls"
            if choice.finish != "stop":
                return choice.finish
            if not choice.native:
                return "unfinished"
            if any(isinstance(part, (Refusal, Opaque)) for part in choice.parts):
                return "not_text"
            if not any(isinstance(part, Text) and part.text for part in choice.parts):
                return "empty"
        return "" if stored.keepable(answer) else "not_text"

    def too_large(self, encoded: bytes) -> bool:
        """Tell whether an answer takes more room than one may."""
        return len(encoded) > self._max_bytes


def _temperature(call: Call) -> float:
    given: Any = call.get("temperature")
    if given is None:
        options = codec.as_object(call.get("options")) or {}
        given = options.get("temperature")
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return float(given) if is_number else _DEFAULT_TEMPERATURE
