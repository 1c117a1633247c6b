"""Messages of a relayed request, made what their provider insists on; all others stay as they came (K33)."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.message import Message, Part, Text, ToolCall, ToolResult
from gateway.dialects.chat.history_rules import HistoryRules, may_break
from gateway.dialects.chat.messages_out import BETWEEN
from gateway.dialects.fit.call_ids import fit_call_ids
from gateway.dialects.fit.history import CONTINUE, EMPTY_USER
from gateway.dialects.fit.parts import NO_OUTPUT, is_blank
from gateway.dialects.fit.system import SYSTEM_ROLES, marked
from gateway.dialects.grammar import NameRules
from gateway.dialects.losses import Notes

Json = dict[str, Any]
_read = codec.Decoder(list[codec.Raw]).decode
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_MARK = "cache_control"
_OFF = b'"disabled"'
_SAYS_MORE = ("tool_calls", "function_call", "audio")


def repaired(fields: codec.Fields, rules: HistoryRules) -> tuple[codec.Raw, Sequence[str]] | None:
    """Return the messages of a request as a provider of these rules takes them, and what was lost or added.

    None where they keep the rules; what nobody reads is left for the provider to refuse.
    """
    told = bytes(fields["messages"])
    if not may_break(told, rules):
        return None
    try:
        entries = [_Entry(at, raw) for at, raw in enumerate(_read(told))]
    except (codec.JSONError, RecursionError):
        return None
    if not all(entry.role in _ROLES for entry in entries):
        return None
    thinks = (
        rules.thoughts
        and _OFF not in bytes(fields.get("thinking") or b"")
        and bytes(fields.get("model") or b"") not in rules.quiet
    )
    notes = Notes()
    found = _Repair(rules, notes).done(entries, thinks=thinks)
    if not found or (len(found) == len(entries) and not any(entry.changed for entry in found)):
        return None
    written = [entry.value if entry.changed else entry.raw for entry in found]
    return codec.raw(written), notes.warnings


class _Entry:
    """One message: `value` is changed in place, and written only where it was. `at` is its place, if it had one."""

    __slots__ = ("at", "changed", "raw", "role", "value")

    def __init__(self, at: int, raw: codec.Raw | None, value: Json | None = None) -> None:
        self.at = at
        self.raw = raw
        self.changed = raw is None
        self.value: Json = value or (codec.as_object(codec.value_of(raw)) if raw else None) or {}
        self.role = self.value.get("role")

    @property
    def place(self) -> str:
        """Its name in what is told."""
        return f"messages[{self.at}]"

    @property
    def calls(self) -> list[Json]:
        """The calls that it holds."""
        calls = map(codec.as_object, _listed(self.value.get("tool_calls")))
        return [call for call in calls if call]

    def put(self, name: str, value: object) -> None:
        """Set a member."""
        self.value[name] = value
        self.changed = True

    def take(self, name: str) -> object:
        """Take a member out and return it."""
        self.changed = True
        return self.value.pop(name)

    def become(self, role: str) -> None:
        """Change who speaks."""
        self.role = role
        self.put("role", role)


class _Repair:
    __slots__ = ("_notes", "_rules")

    def __init__(self, rules: HistoryRules, notes: Notes) -> None:
        self._rules = rules
        self._notes = notes

    def done(self, entries: Sequence[_Entry], *, thinks: bool) -> list[_Entry]:
        """Return the messages that are sent, in order."""
        rules = self._rules
        found = list(entries)
        for entry in found:
            if entry.role == "developer" and not rules.developer:
                entry.become("system")
            self._drop_refused(entry)
            if thinks and entry.calls and entry.value.get("reasoning_content") is None:
                entry.put("reasoning_content", "")
        if not rules.blank:
            found = [entry for entry in found if self._says_something(entry)]
        if rules.call_ids is not None:
            _fit_ids(found, rules.call_ids)
        if rules.leading:
            self._move_system(found)
        if rules.turns:
            found = self._in_turns(found)
        if rules.replies:
            found = list(self._with_replies(found))
        self._end(found)
        return found

    def _drop_refused(self, entry: _Entry) -> None:
        refused = self._rules.refused
        for name in sorted(refused & entry.value.keys()):
            if name == "name" and entry.role == "tool":
                continue  # which tool it was may be said
            value = entry.take(name)
            if name == "refusal" and isinstance(value, str) and not entry.value.get("content"):
                entry.put("content", value)
            elif name == _MARK and value:
                self._notes.lost("cache_dropped", entry.place)
            elif value:
                self._notes.lost("field_unsupported", f"{entry.place}.{name}")
        if _MARK not in refused:
            return
        for place, part in enumerate(_listed(entry.value.get("content"))):
            held = codec.as_object(part)
            if held is not None and _MARK in held:
                del held[_MARK]
                entry.changed = True
                self._notes.lost("cache_dropped", f"{entry.place}.content[{place}]")

    def _says_something(self, entry: _Entry) -> bool:
        """Fill or thin out a message that is empty or partly so; tell whether it is sent at all."""
        if _thinned(entry):
            return True
        match entry.role:
            case "user":
                self._notes.lost("text_filled", entry.place)
                entry.put("content", EMPTY_USER)
            case "tool":
                entry.put("content", NO_OUTPUT)
            case "assistant":
                return any(entry.value.get(name) for name in _SAYS_MORE)
            case _:
                return entry.role == "function"
        return True

    def _move_system(self, found: Sequence[_Entry]) -> None:
        """Say what the system says between others as the user, marked."""
        is_leading = True
        for entry in found:
            is_system = entry.role in SYSTEM_ROLES
            is_leading = is_leading and is_system
            if not is_system or is_leading:
                continue
            self._notes.lost("system_moved", entry.place)
            _mark(entry)
            entry.become("user")

    def _in_turns(self, entries: Iterable[_Entry]) -> list[_Entry]:
        """Join neighbours of one role, and have the user begin."""
        found: list[_Entry] = []
        for entry in entries:
            last = found[-1] if found else None
            begins = last is None or last.role in SYSTEM_ROLES
            if begins and entry.role == "assistant":
                self._notes.lost("user_added", "messages")
                found.append(_said("user", CONTINUE))
            elif last is not None and last.role == entry.role in {"user", "assistant"}:
                _join(last, entry)
                continue
            found.append(entry)
        return found

    def _with_replies(self, entries: Iterable[_Entry]) -> Iterable[_Entry]:
        last: object = None
        for entry in entries:
            if last == "tool" and entry.role not in {"tool", "assistant"}:
                self._notes.lost("reply_added", "messages")
                yield _said("assistant", BETWEEN)
            yield entry
            last = entry.role

    def _end(self, found: list[_Entry]) -> None:
        last = found[-1].role if found else "system"
        if self._rules.leading and last in SYSTEM_ROLES:
            self._notes.lost("user_added", "messages")
            found.append(_said("user", CONTINUE))
        elif last != "assistant":
            return
        elif not self._rules.prefill:
            self._notes.lost("prefill_ended", "messages")
            found.append(_said("user", CONTINUE))
        elif self._rules.prefix and found[-1].value.get("prefix") is not True:
            found[-1].put("prefix", True)


def _thinned(entry: _Entry) -> bool:
    """Take blank texts out of a message; tell whether it still says something."""
    content = entry.value.get("content")
    if not isinstance(content, list):
        return content is not None and not (isinstance(content, str) and is_blank(content))
    listed = _listed(entry.value["content"])
    parts = [part for part in listed if not _is_blank_part(part)]
    if len(parts) < len(listed):
        entry.put("content", parts or "")
    return bool(parts)


def _mark(entry: _Entry) -> None:
    """Say of a text that it is the system's."""
    parts = _parts(entry.value.get("content"))
    texts = tuple(Text(str(part.get("text", ""))) for part in parts)
    said = [part.text for part in marked(Message("system", texts)).parts if isinstance(part, Text)]
    written = [{**part, "text": text} for part, text in zip(parts, said, strict=True)]
    entry.put("content", said[0] if len(said) == 1 else written)


def _fit_ids(entries: Sequence[_Entry], rules: NameRules) -> None:
    """Give calls and results ids that fit: those that a translation of the same history would give them."""
    bare = [_bare(entry) for entry in entries]
    for entry, was, now in zip(entries, bare, fit_call_ids(bare, rules), strict=True):
        if was is now:
            continue
        calls = iter(entry.calls)
        for part in now.parts:
            if isinstance(part, ToolCall):
                next(calls)["id"] = part.id
                entry.changed = True
            elif isinstance(part, ToolResult):
                entry.put("tool_call_id", part.call_id)


def _bare(entry: _Entry) -> Message:
    """Return a message with nothing but the ids that it names."""
    parts: list[Part] = [ToolCall(str(call.get("id", "")), "") for call in entry.calls]
    if entry.role == "tool":
        return Message("tool", (ToolResult(str(entry.value.get("tool_call_id", ""))),))
    return Message("assistant", tuple(parts))


def _join(first: _Entry, second: _Entry) -> None:
    """Put a message behind another of the same role."""
    said = (part for each in (first, second) for part in _parts(each.value.get("content")))
    content = [part for part in said if not _is_blank_part(part)]
    calls = [*_listed(first.value.get("tool_calls")), *_listed(second.value.get("tool_calls"))]
    first.value = {**second.value, **first.value}
    first.put("content", content if content or not calls else None)
    if calls:
        first.put("tool_calls", calls)


def _said(role: str, text: str) -> _Entry:
    return _Entry(-1, None, {"role": role, "content": text})


def _parts(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [part for part in map(codec.as_object, _listed(content)) if part]


def _is_blank_part(part: object) -> bool:
    held = codec.as_object(part)
    if held is None or held.get("type") != "text":
        return False
    text = held.get("text")
    return isinstance(text, str) and is_blank(text)


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
