"""Writes the events of an answer as a chat stream: role first, one reason for the end, usage when asked (K02)."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core import codec
from gateway.core.answer import (
    Began,
    Cited,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
    Weighed,
)
from gateway.core.message import Citation, Part, Refusal, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.chat.answers_out import (
    add_other,
    cited,
    finish_word,
    is_legacy,
    logprobs_of,
    made_id,
    usage_of,
)
from gateway.dialects.chat.reasoning import details_of, is_sealed
from gateway.dialects.chat.seal import extra_content
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Told

_DONE = b"data: [DONE]\n\n"
_PLAIN = b'},"logprobs":null,"finish_reason":null}]'
_FIELD: Mapping[type[Part], bytes] = {
    Text: b'"content":',
    Thinking: b'"reasoning_content":',
    Refusal: b'"refusal":',
}


class _Open:
    """A part that has begun; `field` is what its deltas are called, `call` the index of a tool call, else -1."""

    __slots__ = ("call", "cited", "field", "part", "said", "seal", "start", "texts")

    def __init__(self, part: Part, start: int) -> None:
        self.part = part
        self.field = _FIELD.get(type(part), b"")
        self.call = -1
        self.start = start
        self.said = False
        self.seal: Sealed | None = None
        self.cited: list[Citation] = []
        self.texts: list[str] = []


class _Choice:
    """What was written of one choice."""

    __slots__ = ("calls", "finished", "head", "length", "parts", "thoughts")

    def __init__(self, index: int) -> None:
        self.head = b'"choices":[{"index":%d,"delta":{' % index
        self.parts: dict[int, _Open] = {}
        self.length = 0
        self.calls = 0
        self.thoughts = 0
        self.finished = False


class ChatWriter:
    """One stream; `gateway.dialects.sides.StreamWriter` says the rest."""

    __slots__ = (
        "_asked",
        "_choices",
        "_head",
        "_legacy",
        "_notes",
        "_out",
        "_plain",
        "_tail",
        "_told",
        "_usage",
    )

    def __init__(self, told: Told, notes: Notes) -> None:
        self._told = told
        self._notes = notes
        self._asked = told.prompt.include_usage
        self._legacy = is_legacy(told.prompt)
        self._tail = b',"usage":null}\n\n' if self._asked else b"}\n\n"
        self._plain = _PLAIN + self._tail
        self._head = b""
        self._choices: dict[int, _Choice] = {}
        self._usage: Usage | None = None
        self._out: list[bytes] = []
        self._begin(Began())

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the choices that have begun and not finished."""
        return [index for index, choice in sorted(self._choices.items()) if not choice.finished]

    def write(self, events: Sequence[Event]) -> bytes:
        """Return the bytes for these events, b"" for none."""
        for event in events:
            match event:
                case Delta(choice, at, text):
                    self._delta(self._choices[choice], at, text)
                case PartBegan(choice, at, part):
                    self._part_began(choice, at, part)
                case PartEnded(choice, at):
                    self._part_ended(self._choices[choice], at)
                case Finished():
                    self._finished(event)
                case Counted(usage):
                    self._usage = usage
                case Began():
                    self._begin(event)
                case Sealed(choice, at):
                    self._sealed(self._choices[choice], at, event)
                case Cited(choice, at, citation):
                    self._choices[choice].parts[at].cited.append(citation)
                case Weighed(choice, tokens):
                    weights = codec.encode(logprobs_of(tokens))
                    self._put(
                        self._choice(choice, ""),
                        b'},"logprobs":' + weights + b',"finish_reason":null}]' + self._tail,
                    )
                case Ended():
                    self._end()
        out = b"".join(self._out)
        self._out.clear()
        return out

    def _begin(self, began: Began) -> None:
        """Write what stands in every chunk, once."""
        told = self._told
        head = {
            "id": began.id or f"chatcmpl-{told.request_id}",
            "object": "chat.completion.chunk",
            "created": began.created or told.created,
            "model": began.model or told.model,
        }
        self._head = b"data: " + codec.encode(head)[:-1] + b","

    def _put(self, choice: _Choice, rest: bytes) -> None:
        self._out.append(self._head + choice.head + rest)

    def _say(self, choice: _Choice, delta: Mapping[str, Any]) -> None:
        self._put(choice, codec.encode(delta)[1:-1] + self._plain)

    def _choice(self, index: int, content: str | None) -> _Choice:
        """Return a choice; its role is told first. `content` is what begins it: null before anything but text."""
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice(index)
            self._say(choice, {"role": "assistant", "content": content, "refusal": None})
        return choice

    def _part_began(self, index: int, at: int, part: Part) -> None:
        choice = self._choice(index, "" if isinstance(part, Text) else None)
        opened = choice.parts[at] = _Open(part, choice.length)
        match part:
            case Text(text=text) | Thinking(text=text) | Refusal(text=text):
                if text:
                    self._delta(choice, at, text)
            case ToolCall():
                opened.call = choice.calls
                choice.calls += 1
                self._call_began(choice, opened, index, part)
            case _:
                more: dict[str, Any] = {}
                add_other(more, part, self._notes)
                if more:
                    self._say(choice, more)

    def _delta(self, choice: _Choice, at: int, text: str) -> None:
        opened = choice.parts[at]
        if opened.call >= 0:
            opened.said = opened.said or bool(text.strip())
            self._words(choice, opened, text)
            return
        if not text:
            return
        if opened.field == b'"content":':
            choice.length += len(text)
        elif opened.field == b'"reasoning_content":':
            opened.texts.append(text)
        self._put(choice, opened.field + codec.encode(text) + self._plain)

    def _call_began(self, choice: _Choice, opened: _Open, index: int, part: ToolCall) -> None:
        opened.said = bool(part.arguments.strip())
        if self._legacy:
            if opened.call == 0:
                said = {"name": part.name, "arguments": part.arguments}
                self._say(choice, {"function_call": said})
            return
        call: dict[str, Any] = {
            "index": opened.call,
            "id": part.id or made_id(self._told.request_id, index, opened.call),
        }
        if part.custom:
            call |= {"type": "custom", "custom": {"name": part.name, "input": part.arguments}}
        else:
            inner = {"name": part.name, "arguments": part.arguments}
            call |= {"type": "function", "function": inner}
        if part.signature:
            call["extra_content"] = extra_content(part.signature, part.maker)
        self._say(choice, {"tool_calls": [call]})

    def _words(self, choice: _Choice, opened: _Open, text: str) -> None:
        if self._legacy:
            if opened.call == 0:
                self._say(choice, {"function_call": {"arguments": text}})
            return
        custom = isinstance(opened.part, ToolCall) and opened.part.custom
        start = b'"custom":{"input":' if custom else b'"function":{"arguments":'
        self._put(
            choice,
            b'"tool_calls":[{"index":%d,%s%s}}]%s'
            % (opened.call, start, codec.encode(text), self._plain),
        )

    def _sealed(self, choice: _Choice, at: int, event: Sealed) -> None:
        opened = choice.parts[at]
        if opened.call < 0:
            opened.seal = event
        elif not self._legacy:
            seal = extra_content(event.signature, event.maker)
            self._say(choice, {"tool_calls": [{"index": opened.call, "extra_content": seal}]})

    def _part_ended(self, choice: _Choice, at: int) -> None:
        opened = choice.parts.pop(at)
        match opened.part:
            case ToolCall(custom=custom):
                if not opened.said and not custom:
                    self._words(choice, opened, "{}")
            case Text():
                if opened.cited or opened.part.citations:
                    self._annotate(choice, opened, opened.part)
            case Thinking():
                self._thought(choice, opened, opened.part)
            case _:
                pass

    def _annotate(self, choice: _Choice, opened: _Open, part: Text) -> None:
        """Tell what a text cites, when its end and so its place is known."""
        found = (*part.citations, *opened.cited)
        text = "x" * (choice.length - opened.start)
        annotations = cited(Text(text, citations=found), opened.start, self._notes)
        if annotations:
            self._say(choice, {"annotations": annotations})

    def _thought(self, choice: _Choice, opened: _Open, part: Thinking) -> None:
        """Tell what seals a part: all of it at once, for clients that send it back (K32)."""
        if opened.seal is not None:
            part = codec.replace(part, signature=opened.seal.signature, maker=opened.seal.maker)
        if is_sealed(part):
            part = codec.replace(part, text="".join(opened.texts))
            self._say(choice, {"reasoning_details": details_of(part, choice.thoughts)})
        choice.thoughts += 1

    def _finished(self, event: Finished) -> None:
        choice = self._choice(event.choice, "")
        word = finish_word(event.finish, self._notes)
        if self._legacy and word == "tool_calls":
            word = "function_call"
        choice.finished = True
        self._put(
            choice, b'},"logprobs":null,"finish_reason":"%s"}]%s' % (word.encode(), self._tail)
        )

    def _end(self) -> None:
        if self._asked and self._usage is not None:
            usage = codec.encode(usage_of(self._usage))
            self._out.append(self._head + b'"choices":[],"usage":' + usage + b"}\n\n")
        self._out.append(_DONE)
