"""Turns the deltas of one choice into events; parts begin in the order in which they are first heard of."""

from typing import Any, cast

from gateway.core import codec
from gateway.core.answer import (
    Cited,
    Delta,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
    Weighed,
)
from gateway.core.message import Citation, Opaque, Part, Refusal, Text, Thinking, ToolCall
from gateway.dialects.chat.answers_in import audio_in, images_in, text_in, unusable, weights_in
from gateway.dialects.chat.citations import citations_of
from gateway.dialects.chat.finishes import finish_of
from gateway.dialects.chat.reasoning import is_sealed, pieces_of, thinking_of
from gateway.dialects.chat.stream_calls import Calls, Fragment

_Spoken = type[Text] | type[Thinking] | type[Refusal]


class StreamChoice:
    """One choice of a stream; `out` takes its events. `native` is the provider's reason, "" until it is told."""

    __slots__ = (
        "_at",
        "_audio",
        "_calls",
        "_detail",
        "_heard",
        "_index",
        "_kind",
        "_next",
        "_out",
        "_refused",
        "native",
        "stop",
    )

    def __init__(self, index: int, out: list[Event]) -> None:
        self.native = ""
        self.stop = ""
        self._index = index
        self._out = out
        self._next = 0
        self._at = 0
        self._kind: _Spoken | None = None
        self._heard: list[str] = []
        self._detail: object = None
        self._refused = False
        self._calls = Calls()
        self._audio: dict[str, Any] = {}

    def read(self, item: dict[str, Any]) -> None:
        """Read what a chunk says of this choice."""
        delta = codec.as_object(item.get("delta"))
        if delta is None:
            delta = codec.as_object(item.get("message"))
        if delta:
            content = delta.get("content")
            if len(delta) > 1 or not isinstance(content, str):
                self._read_all(delta, content)
            else:
                self.say(content)
        if item.get("logprobs"):
            weights = weights_in(item)
            if weights:
                self._out.append(Weighed(self._index, tuple(weights)))
        native = item.get("finish_reason")
        if isinstance(native, str) and native:
            self.native = native
            self.stop = text_in(item, "stop_reason")

    def say(self, text: str) -> None:
        """Read more of the text."""
        if text and self._kind is Text:
            self._out.append(Delta(self._index, self._at, text))
        else:
            self._say(Text, text)

    def _read_all(self, delta: dict[str, Any], content: object) -> None:
        get = delta.get
        details = get("reasoning_details")
        if isinstance(details, list) and details:
            plain = bool(get("reasoning") or get("reasoning_content"))
            self._think(cast("list[object]", details), fresh=plain)
        else:
            self._say(Thinking, text_in(delta, "reasoning_content") or text_in(delta, "reasoning"))
        if isinstance(content, str):
            self._say(Text, content)
        elif content is not None:
            self._say_pieces(content)
        if get("annotations"):
            self._cite(citations_of(get("annotations")))
        if get("images"):
            for image in images_in(get("images")):
                self._whole(image)
        self._add_audio(codec.as_object(get("audio")))
        self._say(Refusal, text_in(delta, "refusal"))
        calls = get("tool_calls")
        if isinstance(calls, list):
            for call in map(codec.as_object, cast("list[object]", calls)):
                if call is not None:
                    self._call(Fragment(call))
        legacy = codec.as_object(get("function_call"))
        if legacy is not None and not calls:
            self._call(Fragment({"index": -1, "function": legacy}))

    def _say_pieces(self, content: object) -> None:
        for part in pieces_of(content):
            if isinstance(part, Opaque):
                self._hush()
                self._whole(part)
            else:
                self._say(type(part), part.text)

    def _begin(self, part: Part) -> int:
        at = self._next
        self._next += 1
        self._out.append(PartBegan(self._index, at, part))
        return at

    def _whole(self, part: Part) -> None:
        """Tell a part that is complete as it stands."""
        self._out.append(PartEnded(self._index, self._begin(part)))

    def _say(self, kind: _Spoken, text: str) -> None:
        if not text:
            return
        if kind is not self._kind:
            self._open(kind)
        if kind is Thinking:
            self._heard.append(text)
        self._out.append(Delta(self._index, self._at, text))

    def _open(self, kind: _Spoken) -> None:
        self._hush()
        self._kind = kind
        self._at = self._begin(kind(""))
        self._refused = self._refused or kind is Refusal

    def _hush(self) -> None:
        """End the part that is being spoken."""
        if self._kind is not None:
            self._out.append(PartEnded(self._index, self._at))
            self._kind = None
            self._heard = []
            self._detail = None

    def _think(self, details: list[object], *, fresh: bool) -> None:
        """Read sealed reasoning; `fresh`: its text was not told before (it stands in the same chunk twice).

        What repeats the text of the open part seals it; a piece of the same index goes on with it.
        """
        index = next((e.get("index") for e in map(codec.as_object, details) if e is not None), None)
        for part in thinking_of(details):
            if part.redacted or part.summary:
                self._hush()
                self._whole(part)
                continue
            known = self._kind is Thinking and not fresh and "".join(self._heard) == part.text
            if part.text and not known:
                if self._detail is not None and index != self._detail:
                    self._hush()
                self._say(Thinking, part.text)
                self._detail = index
            if is_sealed(part):
                if self._kind is not Thinking:
                    self._open(Thinking)
                self._out.append(Sealed(self._index, self._at, part.signature, part.maker))
                self._hush()

    def _cite(self, cited: tuple[Citation, ...]) -> None:
        if cited and self._kind is not Text:
            self._open(Text)
        for citation in cited:
            self._out.append(Cited(self._index, self._at, citation))

    def _add_audio(self, audio: dict[str, Any] | None) -> None:
        for name, value in (audio or {}).items():
            if isinstance(value, str):
                joined = name in {"data", "transcript"}
                self._audio[name] = self._audio.get(name, "") + value if joined else value

    def _call(self, said: Fragment) -> None:
        call = self._calls.place(said)
        if call is None:
            return
        if call.ended:
            if said.words.strip():
                raise unusable("a piece of a tool call came after its end", "body")
            return
        call.seal = said.seal if said.seal[0] else call.seal
        if said.words:
            call.pieces.append(said.words)
        if not call.name:
            if not said.name:
                return
            call.name, call.custom = said.name, said.custom
            self._end_whole_calls()
            self._hush()
            part = ToolCall(call.id or said.id, call.name, custom=call.custom)
            if call.seal[0]:
                part = codec.replace(part, signature=call.seal[0], maker=call.seal[1])
            call.at = self._begin(part)
            if call.pieces:
                self._out.append(Delta(self._index, call.at, "".join(call.pieces)))
            return
        if said.seal[0]:
            self._out.append(Sealed(self._index, call.at, *said.seal))
        if said.words:
            self._out.append(Delta(self._index, call.at, said.words))

    def _end_whole_calls(self) -> None:
        """End the calls that nothing can follow, so that a writer need not wait for them."""
        for call in self._calls.opened:
            if call.at >= 0 and not call.ended and call.is_whole():
                call.ended = True
                self._out.append(PartEnded(self._index, call.at))

    def end(self, sources: tuple[Citation, ...]) -> None:
        """Tell the end; `sources` are those of the whole answer, for its text.

        Raises UpstreamError `upstream_invalid_response` for a call without a name.
        """
        if self._calls.unnamed():
            raise unusable("a tool call has no name", "body")
        if sources and self._kind is Text:
            self._cite(sources)
        self._hush()
        for audio in audio_in(self._audio):
            self._whole(audio)
        for call in self._calls.opened:
            if not call.ended:
                self._out.append(PartEnded(self._index, call.at))
        finish = finish_of(
            self.native, calls=bool(self._calls.opened), refused=self._refused, stop=self.stop
        )
        stop = self.stop if finish == "stop_sequence" else ""
        self._out.append(Finished(self._index, finish, self.native, stop))
