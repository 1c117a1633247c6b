"""From pieces of an answer to neutral events; a whole answer is one piece: both forms tell the same (K37)."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from gateway.core import codec
from gateway.core.answer import (
    Began,
    Cited,
    Counted,
    Delta,
    Ended,
    Event,
    Finish,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
    Weighed,
)
from gateway.core.errors import UpstreamError
from gateway.core.message import (
    Audio,
    Citation,
    File,
    Image,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
)
from gateway.core.usage import Usage
from gateway.dialects.gemini.grounding import Sources
from gateway.dialects.gemini.growing import Growing, grows, is_last
from gateway.dialects.gemini.parts import FORMATS
from gateway.dialects.gemini.wire import Candidate, Response
from gateway.dialects.unknown import first_unknown

ORIGIN = "gemini"
MADE_UP = "call_"
"""How ids begin that were made up for calls without one."""
_ENDS: dict[str, Finish] = {
    "": "stop",
    "STOP": "stop",
    "FINISH_REASON_UNSPECIFIED": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
}
"""Every other reason says that the provider stopped, blocked or could not use what the model wrote (K35)."""
_OWN_ITEMS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_BESIDE = frozenset({"thought", "thoughtSignature"})
_BLOCKED: Finish = "content_filter"


class Assembler:
    """Reads the pieces of one answer in order."""

    __slots__ = ("_began", "_blocked", "_choices", "_id", "_usage")

    def __init__(self) -> None:
        self._began = False
        self._id = ""
        self._choices: dict[int, _Choice] = {}
        self._blocked = ""
        self._usage: Usage | None = None

    @property
    def is_complete(self) -> bool:
        """Whether each candidate has said why it ended, or the prompt was blocked."""
        if self._choices:
            return all(choice.native is not None for choice in self._choices.values())
        return bool(self._blocked)

    @property
    def has_candidates(self) -> bool:
        """Whether anything was answered, or the prompt blocked."""
        return bool(self._choices or self._blocked)

    def add(self, response: Response) -> list[Event]:
        """Return the events of the next piece."""
        events: list[Event] = []
        if not self._began:
            self._began = True
            self._id = response.response_id or ""
            created = _seconds(response.create_time or "")
            events.append(Began(self._id, response.model_version or "", created))
        if response.prompt_feedback is not None and response.prompt_feedback.block_reason:
            self._blocked = response.prompt_feedback.block_reason
        for candidate in response.candidates or ():
            index = candidate.index or 0
            choice = self._choices.get(index)
            if choice is None:
                choice = self._choices[index] = _Choice(index, self._id)
            events += choice.add(candidate)
        if response.usage_metadata is not None:
            usage = response.usage_metadata.usage()
            if usage != self._usage:
                self._usage = usage
                events.append(Counted(usage))
        return events

    def finish(self) -> list[Event]:
        """Return what ends the answer: nothing in between told that a reason was the last."""
        events: list[Event] = []
        if not self._choices:
            events.append(Finished(0, _BLOCKED, self._blocked))
        for choice in self._choices.values():
            events += choice.finish()
        events.append(Ended())
        return events


class _Choice:
    """One candidate. `native` is its reason for the end, None before it was told."""

    __slots__ = (
        "_at",
        "_calls",
        "_from",
        "_growing",
        "_id",
        "_index",
        "_is_sealed",
        "_open",
        "_sources",
        "_text",
        "_told",
        "native",
    )

    def __init__(self, index: int, response_id: str) -> None:
        self.native: str | None = None
        self._index = index
        self._id = response_id
        self._at = -1
        self._calls = 0
        self._growing: Growing | None = None
        self._open: type[Part] | None = None
        self._is_sealed = False
        self._sources = Sources()
        self._told: list[Citation] = []
        self._text = ""
        self._from = 0

    def add(self, candidate: Candidate) -> list[Event]:
        events: list[Event] = []
        self._sources.add(candidate)
        for part in (candidate.content.parts if candidate.content is not None else None) or ():
            self._read(part, events)
        if candidate.logprobs_result is not None:
            weights = candidate.logprobs_result.written()
            if weights:
                events.append(Weighed(self._index, weights))
        if candidate.finish_reason:
            self.native = candidate.finish_reason
        return events

    def finish(self) -> list[Event]:
        events: list[Event] = []
        is_cut = self._growing is not None
        self._grown(events)
        self._cite(events)
        self._close(events)
        native = self.native or ""
        finish = _ENDS.get(native, _BLOCKED)
        if self._calls and not (is_cut and finish == "length"):
            finish = "tool_calls"
        events.append(Finished(self._index, finish, native))
        return events

    def _read(self, part: dict[str, Any], events: list[Event]) -> None:
        seal = _text_of(part.get("thoughtSignature"))
        text = part.get("text")
        if isinstance(text, str):
            self._say(text, seal, events, is_thought=part.get("thought") is True)
            return
        call = codec.as_object(part.get("functionCall"))
        if call is not None:
            self._take(call, seal, events)
            return
        for kind in _OWN_ITEMS:
            if kind in part:
                self._whole(Opaque(ORIGIN, kind, part), events)
                return
        data = codec.as_object(part.get("inlineData"))
        if data is not None:
            self._whole(_medium(part, data, seal), events)
        elif part.keys() - _BESIDE:
            self._whole(Opaque(ORIGIN, first_unknown(part, _BESIDE) or "part", part), events)
        elif seal:
            self._say("", seal, events, is_thought=True)

    def _say(self, text: str, seal: str, events: list[Event], *, is_thought: bool) -> None:
        """Tell a piece of text; a signature that stands alone keeps a part of its own, to come back at it (K32)."""
        if not text and not seal:
            return
        kind = Thinking if is_thought or not text else Text
        if self._open is not kind or self._is_sealed:
            self._begin(Text("") if kind is Text else Thinking(), events)
        if text:
            events.append(Delta(self._index, self._at, text))
            if kind is Text:
                self._text += text
        if seal:
            events.append(Sealed(self._index, self._at, seal, ORIGIN))
            self._is_sealed = True

    def _take(self, call: dict[str, Any], seal: str, events: list[Event]) -> None:
        """Tell a call, once all its pieces are there: they come only where a target's own setting asks for them."""
        growing = self._growing
        if call.get("name"):
            self._grown(events)
            if grows(call):
                self._growing = Growing(call, seal)
            else:
                self._whole(self._call(call, seal), events)
        elif growing is not None:
            growing.take(call)
            growing.seal = growing.seal or seal
            if is_last(call):
                self._grown(events)
        elif call:
            self._whole(self._call(call, seal), events)

    def _grown(self, events: list[Event]) -> None:
        growing, self._growing = self._growing, None
        if growing is not None:
            self._whole(self._call(growing.whole(), growing.seal), events)

    def _call(self, call: dict[str, Any], seal: str) -> ToolCall:
        name = _text_of(call.get("name"))
        if not name:
            detail = "a tool call has no name"
            raise UpstreamError("upstream_invalid_response", phase="body", detail=detail)
        args = codec.as_object(call.get("args"))
        arguments = codec.encode(args).decode() if args else ""
        made_up = _made_up(f"{self._id} {self._index} {self._calls} {name} {arguments}", self._id)
        self._calls += 1
        return ToolCall(
            id=_text_of(call.get("id")) or made_up,
            name=name,
            arguments=arguments,
            signature=seal,
            maker=ORIGIN if seal else "",
        )

    def _whole(self, part: Part, events: list[Event]) -> None:
        self._begin(part, events)
        self._close(events)

    def _begin(self, part: Part, events: list[Event]) -> None:
        self._close(events)
        self._at += 1
        self._open = type(part)
        self._is_sealed = False
        self._from = len(self._text)
        events.append(PartBegan(self._index, self._at, part))

    def _close(self, events: list[Event]) -> None:
        if self._open is Text and self._sources:
            begin, end = self._from, len(self._text)
            found = self._sources.citations(self._text)
            self._tell([each for each in found if _lies_in(each, begin, end)], events)
        if self._open is not None:
            events.append(PartEnded(self._index, self._at))
            self._open = None

    def _cite(self, events: list[Event]) -> None:
        """Tell where the text comes from; what was searched for stays an item of the provider's own."""
        left = [each for each in self._sources.citations(self._text) if each not in self._told]
        if left and self._open is not Text:
            self._begin(Text(""), events)
        self._tell(left, events)
        for kind, value in self._sources.items():
            self._whole(Opaque(ORIGIN, kind, value), events)

    def _tell(self, citations: Sequence[Citation], events: list[Event]) -> None:
        """Tell citations of the open text that were not told before."""
        new = [each for each in citations if each not in self._told]
        self._told += new
        events.extend(Cited(self._index, self._at, _within(each, self._from)) for each in new)


def _lies_in(citation: Citation, begin: int, end: int) -> bool:
    if citation.start is None or citation.end is None:
        return False
    return begin <= citation.start and citation.end <= end


def _within(citation: Citation, begin: int) -> Citation:
    """Return a citation whose offsets count from where its part begins; none when they lie before it."""
    if not begin or citation.start is None or citation.end is None:
        return citation
    if citation.start < begin:
        return codec.replace(citation, start=None, end=None)
    return codec.replace(citation, start=citation.start - begin, end=citation.end - begin)


def _medium(part: dict[str, Any], data: dict[str, Any], seal: str) -> Part:
    kind, encoded = _text_of(data.get("mimeType")), _text_of(data.get("data"))
    extra = {"thoughtSignature": seal} if seal else {}
    if part.get("thought") is True:
        return Opaque(ORIGIN, "thought", part)
    if kind.startswith("image/"):
        return Image(media_type=kind, data=encoded, extra=extra)
    if kind.startswith("audio/"):
        sound = kind.partition("/")[2]
        return Audio(data=encoded, format=FORMATS.get(sound, sound), extra=extra)
    return File(media_type=kind, data=encoded, extra=extra)


def _made_up(seed: str, response_id: str) -> str:
    """Return an id that is the same in every form of one answer, and no other's."""
    if not response_id:
        return MADE_UP + secrets.token_hex(12)
    return MADE_UP + hashlib.sha256(seed.encode()).hexdigest()[:24]


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(created: str) -> int:
    """Return a time of RFC 3339 in seconds since the epoch, 0 when there is none."""
    try:
        return int(datetime.fromisoformat(created).timestamp())
    except ValueError:
        return 0
