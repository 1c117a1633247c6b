"""Opaque state of providers that the gateway keeps for callers: what to keep, to ask for, and to put back (K32).

All functions are pure; `core.ports.OpaqueStore` keeps the items of each tenant. Names of tools are the caller's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.message import Message, Part, Prompt, Text, Thinking, ToolCall
from gateway.core.scope import digest
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes

_RANDOM_ID = 16
_MAX_EXACT = 2**53
_SealedPart = Thinking | Text | ToolCall


class _Sealed(codec.Struct, frozen=True, omit_defaults=True):
    """A sealed part that stood before a call, `behind` a text of the same turn or before it.

    Of a text only the digest is kept: the caller has the words.
    """

    behind: bool = False
    thinking: Thinking | None = None
    text: str = ""
    signature: str = ""
    maker: str = ""


class _Entry(codec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a call: `domain` is the account that made it, `call` a digest of the call itself.

    Behind the last call of a turn stand words alone: their key says all, and `name` and `call` are empty.
    """

    domain: str
    name: str
    call: str
    signature: str = ""
    maker: str = ""
    before: tuple[_Sealed, ...] = ()


_read_entry = codec.Decoder(_Entry).decode


def call_key(call_id: str) -> str:
    """Return the id under which the seals of a call are kept."""
    return f"call:{call_id}"


def seal_key(part: _SealedPart) -> str:
    """Return the id under which it is kept who made a seal."""
    redacted = part.redacted if isinstance(part, Thinking) else ""
    return f"seal:{digest(part.maker, part.signature + redacted)}"


def turn_key(said: str, text: str) -> str:
    """Return the id under which the seals of words are kept; `said` is a digest of what users said before them."""
    return f"turn:{digest(said, text.strip())}"


def sealed_of(answer: Answer, domain: str, prompt: Prompt | None = None) -> dict[str, bytes]:
    """Return what to keep of an answer: for each call what is sealed before and at it, for each seal its domain.

    What is sealed at words alone is kept for them, bound to what the users of this very conversation said in
    `prompt` before: equal words stand in many conversations. `domain` names the account, or all accounts that can
    read each other's seals. Empty when nothing is sealed.
    """
    items: dict[str, bytes] = {}
    for choice in answer.choices:
        before: list[_Sealed] = []
        behind = False
        for part in choice.parts:
            if _is_sealed(part):
                items[seal_key(part)] = domain.encode()
            if isinstance(part, ToolCall):
                if before or part.signature:
                    items[call_key(part.id)] = _entry(part, before, domain)
                before, behind = [], False
            elif isinstance(part, Thinking):
                if part.signature or part.redacted:
                    before.append(_Sealed(behind, part))
            elif isinstance(part, Text):
                if part.signature:
                    text = digest(part.text) if part.text else ""
                    before.append(_Sealed(behind, None, text, part.signature, part.maker))
                behind = behind or bool(part.text.strip())
        text = _words(_rest(choice.parts))
        if before and text and prompt is not None:
            said = _said(prompt.messages)
            items[turn_key(said, text)] = codec.encode(_Entry(domain, "", "", before=tuple(before)))
    return items


def wanted(prompt: Prompt, grammar: Grammar) -> tuple[str, ...]:
    """Return the ids to look up: of calls and words in the history without their seals, and of seals that came."""
    if not grammar.makers:
        return ()
    ids: dict[str, None] = {}
    users = _Users()
    for message in prompt.messages:
        users.add(message)
        if message.role != "assistant":
            continue
        has_thinking = False
        for part in message.parts:
            if _is_sealed(part) and part.maker in grammar.makers:
                ids[seal_key(part)] = None
                has_thinking = has_thinking or isinstance(part, Thinking)
            if isinstance(part, ToolCall):
                is_sent = part.signature or (has_thinking and "gemini" not in grammar.makers)
                if not is_sent:
                    ids[call_key(part.id)] = None
                has_thinking = False
        rest = _rest(message.parts)
        text = _words(rest)
        if text and not any(map(_is_sealed, rest)):
            ids[turn_key(users.said, text)] = None
    return tuple(ids)


def restore(prompt: Prompt, found: Mapping[str, bytes] | None, domain: str, notes: Notes) -> Prompt:
    """Put back what was kept, byte for byte at its place, and take out what another domain has made.

    What the caller sent itself wins. `found` None: the store did not answer, which is noted.
    """
    if found is None:
        notes.lost("state_unknown")
        return prompt
    if not found:
        return prompt
    restorer = _Restorer(found, domain, notes)
    messages = tuple(map(restorer.message, prompt.messages))
    if all(a is b for a, b in zip(messages, prompt.messages, strict=True)):
        return prompt
    return codec.replace(prompt, messages=messages)


@dataclass(slots=True)
class _Stretch:
    """What stands before one call of a message, and the call; None behind the last one."""

    call: ToolCall | None = None
    parts: list[Part] = field(default_factory=list[Part])


class _Restorer:
    def __init__(self, found: Mapping[str, bytes], domain: str, notes: Notes) -> None:
        self._found = found
        self._domain = domain
        self._notes = notes
        self._users = _Users()

    def message(self, message: Message) -> Message:
        """Return the next message: one of the model with its seals, any other as it is."""
        self._users.add(message)
        if message.role != "assistant":
            return message
        parts: list[Part] = []
        for stretch in _stretches(message.parts):
            own = [part for each in stretch.parts if (part := self._own(each)) is not None]
            call = stretch.call
            if call is None:
                parts += self._words(own)
                continue
            sent = self._own(call)
            entry = self._entry(call)
            if entry is not None and isinstance(sent, ToolCall):
                own = _put_back(own, entry)
                if entry.signature and not sent.signature:
                    sent = codec.replace(sent, signature=entry.signature, maker=entry.maker)
            parts += own
            if sent is not None:
                parts.append(sent)
        same = len(parts) == len(message.parts) and all(
            a is b for a, b in zip(parts, message.parts, strict=True)
        )
        return message if same else codec.replace(message, parts=tuple(parts))

    def _own(self, part: Part) -> Part | None:
        """Return a part that the caller sent, without a seal of another domain; None where nothing is left."""
        if not _is_sealed(part):
            return part
        maker = self._found.get(seal_key(part))
        if maker is None or maker == self._domain.encode():
            return part
        if isinstance(part, Thinking) and part.text:
            self._notes.lost("seal_removed", "reasoning of another account")
            return codec.replace(part, signature="", redacted="", maker="", id="")
        self._notes.lost("thinking_dropped", "reasoning that another account has sealed")
        return None if isinstance(part, Thinking) else codec.replace(part, signature="", maker="")

    def _words(self, parts: list[Part]) -> list[Part]:
        """Return what stands behind the last call, with its seals where none of them came."""
        text = _words(parts)
        if not text or any(map(_is_sealed, parts)):
            return parts
        entry = self._read(turn_key(self._users.said, text))
        if entry is None or not self._is_own(entry, "reasoning before an answer"):
            return parts
        return _put_back(parts, entry)

    def _entry(self, call: ToolCall) -> _Entry | None:
        """Return what was kept of this very call; ids that are used again for another call bring nothing."""
        entry = self._read(call_key(call.id))
        if entry is None or entry.name != call.name:
            return None
        if not _is_random(call.id) and entry.call != _digest(call):
            return None
        return entry if self._is_own(entry, f"reasoning before tool call {call.id}") else None

    def _read(self, key: str) -> _Entry | None:
        kept = self._found.get(key)
        if kept is None:
            return None
        try:
            return _read_entry(kept)
        except codec.JSONError:
            return None

    def _is_own(self, entry: _Entry, what: str) -> bool:
        """Return whether this account has made what is kept; it is noted where it has not."""
        if entry.domain == self._domain:
            return True
        self._notes.lost("thinking_dropped", f"{what}, sealed by another account")
        return False


class _Users:
    """What the users of a conversation have said so far, as a digest that grows with it, made when asked for."""

    __slots__ = ("_new", "_said")

    def __init__(self) -> None:
        self._said = ""
        self._new: list[Message] = []

    def add(self, message: Message) -> None:
        """Take the next message of the conversation."""
        if message.role == "user":
            self._new.append(message)

    @property
    def said(self) -> str:
        """The digest of all that was said up to here."""
        for message in self._new:
            texts = (part.text for part in message.parts if isinstance(part, Text))
            self._said = digest(self._said, *texts)
        self._new.clear()
        return self._said


def _said(messages: Sequence[Message]) -> str:
    users = _Users()
    for message in messages:
        users.add(message)
    return users.said


def _rest(parts: Sequence[Part]) -> Sequence[Part]:
    """Return what stands behind the last call."""
    last = max((at for at, part in enumerate(parts) if isinstance(part, ToolCall)), default=-1)
    return parts[last + 1 :]


def _words(parts: Sequence[Part]) -> str:
    """Return the text of these parts, "" where it is blank."""
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return text if text.strip() else ""


def _put_back(own: Sequence[Part], entry: _Entry) -> list[Part]:
    """Return the parts that a caller sent with those that were sealed, each at its place."""
    parts = list(own)
    if not any(isinstance(part, Thinking) and _is_sealed(part) for part in parts):
        sealed = [each for each in entry.before if each.thinking is not None]
        if sealed:
            parts = [part for part in parts if not isinstance(part, Thinking)]
            front = [each.thinking for each in sealed if not each.behind and each.thinking]
            back = [each.thinking for each in sealed if each.behind and each.thinking]
            parts = [*front, *parts, *back]
    for each in entry.before:
        if each.thinking is None:
            parts = _with_text_seal(parts, each)
    return parts


def _with_text_seal(parts: Sequence[Part], sealed: _Sealed) -> list[Part]:
    """Seal the text that a seal belongs to; one of an empty text gets it back, others stay without."""
    out = list(parts)
    for at, part in enumerate(out):
        if isinstance(part, Text) and sealed.signature == part.signature:
            return out
        if isinstance(part, Text) and not part.signature and sealed.text == digest(part.text):
            out[at] = codec.replace(part, signature=sealed.signature, maker=sealed.maker)
            return out
    if not sealed.text:
        text = Text("", signature=sealed.signature, maker=sealed.maker)
        front = sum(isinstance(part, Thinking) for part in out)
        out.insert(len(out) if sealed.behind else front, text)
    return out


def _stretches(parts: Sequence[Part]) -> Iterator[_Stretch]:
    stretch = _Stretch()
    for part in parts:
        if isinstance(part, ToolCall):
            stretch.call = part
            yield stretch
            stretch = _Stretch()
        else:
            stretch.parts.append(part)
    if stretch.parts:
        yield stretch


def _is_sealed(part: Part) -> TypeGuard[_SealedPart]:
    if isinstance(part, Thinking):
        return bool(part.signature or part.redacted)
    return isinstance(part, Text | ToolCall) and bool(part.signature)


def _entry(call: ToolCall, before: Sequence[_Sealed], domain: str) -> bytes:
    return codec.encode(
        _Entry(domain, call.name, _digest(call), call.signature, call.maker, tuple(before))
    )


def _is_random(call_id: str) -> bool:
    """Return whether an id is one that no other call can have: not `call_0`, not `functions.weather:0`."""
    return len(call_id) >= _RANDOM_ID and ":" not in call_id and "." not in call_id


def _digest(call: ToolCall) -> str:
    """Return a digest of a call's arguments that does not depend on how they are written."""
    text = call.arguments
    if call.custom:
        return digest("custom", text)
    try:
        value: object = codec.decode(text) if text.strip() else {}
        return digest("json", codec.encode(_sorted(value)).decode())
    except (codec.JSONError, RecursionError, UnicodeError):
        return digest("text", text)


def _sorted(value: object) -> object:
    """Return a JSON value with its keys in order, and whole numbers without a fraction."""
    if isinstance(value, dict):
        return {k: _sorted(each) for k, each in sorted(cast("dict[str, Any]", value).items())}
    if isinstance(value, list):
        return [_sorted(each) for each in cast("list[object]", value)]
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT:
        return int(value)
    return value
