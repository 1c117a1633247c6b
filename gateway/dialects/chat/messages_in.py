"""A history, as callers write it, read into messages (K32, K33)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
    Bag,
    Message,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects.chat.citations import citations_of
from gateway.dialects.chat.fields import (
    MARK,
    Json,
    a_list,
    a_name,
    an_object,
    mark_of,
    maybe_text,
    wrong,
)
from gateway.dialects.chat.parts_in import content_of, marked
from gateway.dialects.chat.reasoning import (
    BLOCK,
    ENTRY,
    block_of,
    entry_of,
    thinking_blocks,
    thinking_of,
    told_together,
    with_plain,
)
from gateway.dialects.chat.seal import SEALS, seal_of
from gateway.dialects.within import Shape, rest_of

_TEXTS = frozenset({"text"})
_USER = frozenset({"text", "image_url", "input_audio", "file", "video_url", "document_url"})
_ASSISTANT = frozenset({"text", "refusal", "thinking"})
_RESULT = frozenset({"text", "image_url", "file", "document_url"})
_COMMON = ("role", "content", "name")
_SPOKEN = Shape(*_COMMON, cache_control=MARK)
_RETURNED = Shape(*_COMMON, "tool_call_id", cache_control=MARK)
_MODEL = Shape(
    *_COMMON,
    "annotations",
    "prefix",
    "reasoning",
    "reasoning_content",
    "refusal",
    "tool_calls",
    audio=Shape("id", "data", "expires_at", "transcript"),
    cache_control=MARK,
    function_call=Shape("name", "arguments"),
    reasoning_details=ENTRY,
    thinking_blocks=BLOCK,
)
_CALL = Shape(
    "id",
    "type",
    "index",
    cache_control=MARK,
    custom=Shape("name", "input"),
    extra_content=SEALS,
    function=Shape("name", "arguments"),
)


class _Reader:
    """Reads the messages of one request in order; knows the calls that were made before."""

    __slots__ = ("_custom", "_legacy", "found", "results")

    def __init__(self) -> None:
        self.found: list[Message] = []
        self.results: list[Part] = []
        self._custom: set[str] = set()
        self._legacy: dict[str, str] = {}

    def read(self, value: object, at: str) -> None:
        message = an_object(value, at)
        role = message.get("role")
        reader = _ROLES.get(role) if isinstance(role, str) else None
        if reader is None:
            raise InputError(
                "invalid_request",
                f"{at}.role: expected one of {', '.join(_ROLES)}",
                param=f"{at}.role",
            )
        if role not in {"tool", "function"}:
            self.flush()
        reader(self, message, at)

    def flush(self) -> None:
        """End the message that holds the results read last."""
        if self.results:
            self.found.append(Message("tool", tuple(self.results)))
            self.results = []

    def spoken(self, message: Json, at: str) -> None:
        """Read a message of the system, the developer or the user."""
        role: Role = message["role"]
        kinds = _USER if role == "user" else _TEXTS
        parts = content_of(message.get("content"), f"{at}.content", kinds)
        self.found.append(
            Message(role, _marked_last(parts, message, at), _name(message, at), _rest(message))
        )

    def assistant(self, message: Json, at: str) -> None:
        """Read what a model said."""
        parts: list[Part] = [*_thinking(message, at)]
        content = message.get("content")
        if content is not None and content != "":
            found = content_of(content, f"{at}.content", _ASSISTANT)
            if message.get("annotations"):
                found = _cited(found, message["annotations"])
            parts += _marked_last(found, message, at)
        audio = message.get("audio")
        if audio is not None:
            where = f"{at}.audio"
            parts.append(Audio(id=a_name(an_object(audio, where).get("id"), f"{where}.id")))
        refusal = maybe_text(message.get("refusal"), f"{at}.refusal")
        if refusal:
            parts.append(Refusal(refusal))
        calls = message.get("tool_calls")
        if calls is not None:
            where = f"{at}.tool_calls"
            for place, call in enumerate(a_list(calls, where)):
                parts.append(self._call(an_object(call, f"{where}[{place}]"), f"{where}[{place}]"))
        legacy = message.get("function_call")
        if legacy is not None:
            parts.append(
                self._legacy_call(an_object(legacy, f"{at}.function_call"), f"{at}.function_call")
            )
        extra = _rest_of_model(message)
        self.found.append(Message("assistant", tuple(parts), _name(message, at), extra))

    def _call(self, call: Json, at: str) -> ToolCall:
        known = a_name(call.get("id"), f"{at}.id")
        custom = call.get("type") == "custom"
        field, words = ("custom", "input") if custom else ("function", "arguments")
        if call.get("type", field) != field:
            raise wrong(f"{at}.type", "function or custom")
        inner = an_object(call.get(field), f"{at}.{field}")
        signature, maker = seal_of(call.get("extra_content"))
        if custom:
            self._custom.add(known)
        return ToolCall(
            known,
            a_name(inner.get("name"), f"{at}.{field}.name"),
            maybe_text(inner.get(words), f"{at}.{field}.{words}"),
            custom=custom,
            signature=signature,
            maker=maker,
            cache=mark_of(call, at),
            extra=rest_of(call, _CALL),
        )

    def _legacy_call(self, call: Json, at: str) -> ToolCall:
        """Read a call from before calls had ids; one is made of its place in the history."""
        name = a_name(call.get("name"), f"{at}.name")
        known = f"call_legacy_{len(self.found)}"
        self._legacy[name] = known
        return ToolCall(known, name, maybe_text(call.get("arguments"), f"{at}.arguments"))

    def result(self, message: Json, at: str) -> None:
        """Read what a tool returned; neighbours are one message."""
        known = a_name(message.get("tool_call_id"), f"{at}.tool_call_id")
        self._add_result(message, at, known, _name(message, at))

    def legacy_result(self, message: Json, at: str) -> None:
        """Read what a function returned, from before calls had ids."""
        name = a_name(message.get("name"), f"{at}.name")
        self._add_result(message, at, self._legacy.get(name, f"call_legacy_{name}"), name)

    def _add_result(self, message: Json, at: str, known: str, name: str) -> None:
        content = message.get("content")
        parts: tuple[Part, ...] = ()
        if content is not None and content != "":
            parts = content_of(content, f"{at}.content", _RESULT)
        self.results.append(
            ToolResult(
                known,
                parts,
                name=name,
                custom=known in self._custom,
                cache=mark_of(message, at),
                extra=rest_of(message, _RETURNED),
            )
        )


_ROLES: dict[str, Callable[[_Reader, Json, str], None]] = {
    "system": _Reader.spoken,
    "developer": _Reader.spoken,
    "user": _Reader.spoken,
    "assistant": _Reader.assistant,
    "tool": _Reader.result,
    "function": _Reader.legacy_result,
}


def messages_of(value: object, at: str = "messages") -> tuple[Message, ...]:
    """Read a history; raises InputError with the path of what is not valid."""
    listed = a_list(value, at)
    if not listed:
        raise wrong(at, "at least one message")
    reader = _Reader()
    for place, message in enumerate(listed):
        reader.read(message, f"{at}[{place}]")
    reader.flush()
    return tuple(reader.found)


def _name(message: Json, at: str) -> str:
    return maybe_text(message.get("name"), f"{at}.name")


def _rest(message: Json) -> Json:
    return rest_of(message, _SPOKEN)


def _rest_of_model(message: Json) -> Bag:
    """Return what nobody knows of a message of the model: members, and what stands in lists of known members."""
    rest = rest_of(message, _MODEL)
    unread = dict(_unread(message))
    return {**rest, **unread} if unread else rest


def _unread(message: Json) -> Iterator[tuple[str, object]]:
    noted = message.get("annotations")
    cited = citations_of(noted) if message.get("content") else ()
    if noted and not (isinstance(noted, list) and len(cited) == len(cast("list[object]", noted))):
        yield "annotations", noted
    for name, read in (("reasoning_details", entry_of), ("thinking_blocks", block_of)):
        for at, item in enumerate(message.get(name) or ()):
            members = codec.as_object(item)
            if members is None or read(members) is None:
                yield f"{name}[{at}]", item


def _marked_last(parts: tuple[Part, ...], message: Json, at: str) -> tuple[Part, ...]:
    """Return parts of which the last one has the marker that stands beside the content."""
    mark = mark_of(message, at)
    if mark is None or not parts:
        return parts
    return (*parts[:-1], marked(parts[-1], mark))


def _cited(parts: tuple[Part, ...], annotations: object) -> tuple[Part, ...]:
    """Return the parts with what the first text cites."""
    place = next((at for at, part in enumerate(parts) if isinstance(part, Text)), None)
    cited = citations_of(annotations)
    if place is None or not cited:
        return parts
    return (*parts[:place], codec.replace(parts[place], citations=cited), *parts[place + 1 :])


def _thinking(message: Json, at: str) -> Sequence[Thinking]:
    """Read reasoning, which may be told in more than one way: what is sealed goes first, nothing counts twice."""
    plain = ""
    for name in ("reasoning", "reasoning_content"):
        plain = maybe_text(message.get(name), f"{at}.{name}") or plain
    sealed: list[Thinking] = []
    for name, read in _SEALED:
        value: Any = message.get(name)
        if value is not None:
            found = read(a_list(value, f"{at}.{name}"))
            sealed = told_together(sealed, found) if sealed else found
    if sealed:
        return with_plain(sealed, plain)
    return [Thinking(plain)] if plain else []


_SEALED = (("reasoning_details", thinking_of), ("thinking_blocks", thinking_blocks))
