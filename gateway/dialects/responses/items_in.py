"""The input of a request, item by item, read into messages (K32, K33).

What a model made in one go is one message, results of tools are one message, everything else one each.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Message, Opaque, Part, Role, Text, ToolCall, ToolResult
from gateway.dialects.chat.fields import (
    Json,
    a_list,
    a_name,
    a_text,
    an_object,
    maybe_text,
    wrong,
)
from gateway.dialects.losses import Notes
from gateway.dialects.responses.ids import is_made_here
from gateway.dialects.responses.parts_in import ASKED, RESULT, SAID, content_of
from gateway.dialects.responses.sealed import Seal, read_seal, read_thinking
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.within import Shape, rest_of

_ROLES: Mapping[str, Role] = {"user": "user", "system": "system", "developer": "developer"}
_MESSAGE = Shape("type", "role", "content", "id", "status")
_CALL = Shape("type", "id", "status", "call_id", "name", "arguments", "input")
_RESULT = Shape("type", "id", "status", "call_id", "output")
_SHELL_CALL = Shape("type", "id", "status", "call_id", "action")
_PIECE = Shape("type", "text")
_REASONING = Shape("type", "id", "status", "encrypted_content", summary=_PIECE, content=_PIECE)
_CALLERS_OWN = ("_output", "mcp_approval_response", "additional_tools")
"""Ends of the types of items that the caller makes; all others came out of an answer."""


class ItemReader:
    """Reads the items of one request in order."""

    __slots__ = ("_item", "_notes", "_parts", "_rest", "_role", "messages")

    def __init__(self, notes: Notes) -> None:
        self.messages: list[Message] = []
        self._notes = notes
        self._role: Role = "user"
        self._parts: list[Part] = []
        self._rest: Json = {}
        self._item = ""

    def read(self, value: object, at: str) -> None:
        """Read the next item; raises InputError with the path of what is not valid."""
        item = an_object(value, at)
        self._item = at
        kind = item.get("type")
        if kind is None and "role" in item:
            kind = "message"
        if not isinstance(kind, str) or not kind:
            raise wrong(f"{at}.type", "a kind of item")
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, item, at)
        else:
            own = kind.endswith(_CALLERS_OWN)
            self._add("user" if own else "assistant", Opaque(ORIGIN, kind, item))

    def flush(self) -> None:
        """End the message that is being put together."""
        if self._parts:
            self.messages.append(
                Message(self._role, tuple(self._parts), extra=self._rest or NO_EXTRA)
            )
            self._parts, self._rest = [], {}

    def _add(self, role: Role, *parts: Part) -> None:
        if role != self._role:
            self.flush()
            self._role = role
        for part in parts:
            self._stands(part, "")
        self._parts.extend(parts)
        if role == "user":
            self.flush()

    def _stands(self, part: Part, inside: str) -> None:
        """Remember where a part stands that may be lost; texts are not."""
        if isinstance(part, ToolResult):
            for place, each in enumerate(part.parts):
                self._stands(each, f".output[{place}]")
        elif not isinstance(part, Text | ToolCall):
            self._notes.stands_in(part, f"{self._item}{inside}")

    def message(self, item: Json, at: str) -> None:
        """Read a message of anyone."""
        role = item.get("role")
        if role == "assistant":
            parts = content_of(item.get("content"), f"{at}.content", SAID)
            rest = rest_of(item, _MESSAGE)
            if rest and self._rest and rest != self._rest:
                self.flush()
            self._add("assistant", *parts)
            self._rest = rest or self._rest
            return
        if not isinstance(role, str) or role not in _ROLES:
            raise wrong(f"{at}.role", f"one of assistant, {', '.join(_ROLES)}")
        self.flush()
        parts = content_of(item.get("content"), f"{at}.content", ASKED)
        extra = rest_of(item, _MESSAGE)
        for place, part in enumerate(parts):
            self._stands(part, f".content[{place}]")
        self.messages.append(Message(_ROLES[role], parts, extra=extra))

    def call(self, item: Json, at: str) -> None:
        """Read a call of a function or of a custom tool."""
        custom = item["type"] == "custom_tool_call"
        field = "input" if custom else "arguments"
        id_ = maybe_text(item.get("id"), f"{at}.id")
        call = ToolCall(
            a_name(item.get("call_id"), f"{at}.call_id"),
            a_name(item.get("name"), f"{at}.name"),
            a_text(item.get(field), f"{at}.{field}"),
            custom=custom,
            item_id="" if is_made_here(id_) else id_,
            extra=rest_of(item, _CALL),
        )
        self._add("assistant", call)

    def shell_call(self, item: Json, at: str) -> None:
        """Read a call of the shell that runs at the caller: to other targets it is a call of a function."""
        action = an_object(item.get("action"), f"{at}.action")
        id_ = maybe_text(item.get("call_id"), f"{at}.call_id")
        id_ = id_ or a_name(item.get("id"), f"{at}.id")
        arguments = codec.encode(action).decode()
        extra = {"item": item, **rest_of(item, _SHELL_CALL)}
        call = ToolCall(id_, "local_shell", arguments, extra=extra)
        self._add("assistant", call)

    def result(self, item: Json, at: str) -> None:
        """Read what a tool returned."""
        output = item.get("output")
        parts: tuple[Part, ...] = ()
        if output != "":
            parts = content_of(output, f"{at}.output", RESULT)
        result = ToolResult(
            a_name(item.get("call_id"), f"{at}.call_id"),
            parts,
            custom=item["type"] == "custom_tool_call_output",
            extra=rest_of(item, _RESULT),
        )
        self._add("tool", result)

    def shell_result(self, item: Json, at: str) -> None:
        """Read what the shell that runs at the caller returned."""
        field = "call_id" if item.get("call_id") is not None else "id"
        known = a_name(item.get(field), f"{at}.{field}")
        said = a_text(item.get("output"), f"{at}.output")
        parts = (Text(said),) if said else ()
        extra = {"item": item, **rest_of(item, _RESULT)}
        self._add("tool", ToolResult(known, parts, extra=extra))

    def reasoning(self, item: Json, at: str) -> None:
        """Read what a model thought, or the seal of the part before it."""
        for name in ("summary", "content"):
            pieces = [] if item.get(name) is None else a_list(item[name], f"{at}.{name}")
            for place, piece in enumerate(pieces):
                where = f"{at}.{name}[{place}]"
                a_text(an_object(piece, where).get("text"), f"{where}.text")
        field = maybe_text(item.get("encrypted_content"), f"{at}.encrypted_content")
        maker, seal = read_seal(field)
        if field and not maker:
            self._notes.lost("thinking_dropped", at)
        if seal.part:
            self._seal(maker, seal)
            return
        thinking = read_thinking(item, maker, seal)
        rest = rest_of(item, _REASONING)
        if rest:
            thinking = codec.replace(thinking, extra=rest)
        if thinking.text or maker or thinking.summary:
            self._add("assistant", thinking)

    def _seal(self, maker: str, seal: Seal) -> None:
        """Put a seal back on the part that it came with."""
        parts = self._parts if self._role == "assistant" else []
        for place in range(len(parts) - 1, -1, -1):
            part = parts[place]
            if seal.part == "call" and isinstance(part, ToolCall) and part.id == seal.call_id:
                parts[place] = codec.replace(part, signature=seal.signature, maker=maker)
                return
            if seal.part == "text" and isinstance(part, Text):
                parts[place] = codec.replace(part, signature=seal.signature, maker=maker)
                return
        if seal.part == "text":
            self._add("assistant", Text("", signature=seal.signature, maker=maker))

    def reference(self, item: Json, at: str) -> None:
        """Refuse an item that is only named: nothing is stored here."""
        raise InputError(
            "invalid_request",
            f"{at}: items are not stored here, so they cannot be referred to by id; send the item itself",
            param=at,
        )


NO_EXTRA: Mapping[str, Any] = {}
_READERS: dict[str, Callable[[ItemReader, Json, str], None]] = {
    "message": ItemReader.message,
    "function_call": ItemReader.call,
    "custom_tool_call": ItemReader.call,
    "local_shell_call": ItemReader.shell_call,
    "function_call_output": ItemReader.result,
    "custom_tool_call_output": ItemReader.result,
    "local_shell_call_output": ItemReader.shell_result,
    "reasoning": ItemReader.reasoning,
    "item_reference": ItemReader.reference,
}


def messages_of(value: object, notes: Notes, at: str = "input") -> list[Message]:
    """Read the field `input`: a text of the user, or items."""
    if isinstance(value, str):
        return [Message("user", (Text(value),))]
    if not isinstance(value, list):
        raise wrong(at, "a text or a list of items")
    reader = ItemReader(notes)
    for place, item in enumerate(cast("list[object]", value)):
        reader.read(item, f"{at}[{place}]")
    reader.flush()
    return reader.messages
