"""Writes the events of an answer as a Responses stream: a state machine, one item after another (K37).

Parts that overlap wait for the one before them; what is known only at the end (was the last item cut?) too.
"""

from collections.abc import Sequence

from gateway.core import codec
from gateway.core.answer import (
    Answer,
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
    events_of,
)
from gateway.core.message import (
    NO_BAG,
    Citation,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from gateway.core.usage import Usage
from gateway.dialects.losses import Notes
from gateway.dialects.responses.citations import write_citation
from gateway.dialects.responses.ids import item_id, new_base
from gateway.dialects.responses.response import TIERS, ending, head_of
from gateway.dialects.responses.script import Script, Unfinished
from gateway.dialects.responses.sealed import BREAKS, encrypted_content, sealed_part
from gateway.dialects.responses.settings import SEALED
from gateway.dialects.responses.shapes import Json, OwnMembers
from gateway.dialects.responses.states import MAKER, ORIGIN, ending_of
from gateway.dialects.responses.weights import weights_of
from gateway.dialects.sides import Told

_CALL_EXTRA = ("namespace", "caller", "async")


class ResponsesWriter:
    """One answer for one caller. `quiet`: no events are wanted, only `final`, the response as it is at the end."""

    __slots__ = (
        "_at",
        "_base",
        "_closing",
        "_ended",
        "_finish",
        "_notes",
        "_open",
        "_refused",
        "_script",
        "_seals",
        "_summary",
        "_thought",
        "_told",
        "_usage",
        "_waiting",
        "_weights",
    )

    def __init__(self, told: Told, notes: Notes, *, quiet: bool = False) -> None:
        reasoning = told.prompt.reasoning
        self._told = told
        self._notes = notes
        self._base = new_base()
        self._script = Script({}, quiet=quiet)
        self._open: Part | None = None
        self._closing = False
        self._at = -1
        self._waiting: dict[int, list[Event]] = {}
        self._thought: list[str] = []
        self._weights: list[Json] = []
        self._usage: Usage | None = None
        self._finish = Finished(0, "stop")
        self._refused = False
        self._ended = False
        self._summary = reasoning is not None and bool(reasoning.summary)
        self._seals = reasoning is not None and SEALED in reasoning.extra

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the one choice while it is open, with what is needed to end it."""
        return Unfinished(self._script, ended=self._ended)

    @property
    def final(self) -> Json:
        """Return the whole response, once it has ended."""
        return self._script.final

    def write(self, events: Sequence[Event]) -> bytes:
        """Return the bytes for these events."""
        for event in events:
            self._take(event)
        return self._script.take()

    def _take(self, event: Event) -> None:
        match event:
            case Delta(0, at) | PartBegan(0, at) | PartEnded(0, at) | Sealed(0, at) | Cited(0, at):
                self._route(at, event)
            case Weighed(0, tokens):
                self._weights += weights_of(tokens)
            case Finished(0):
                self._finish = event
            case Counted(usage):
                self._usage = usage
            case Began():
                self._script.head = head_of(self._base, event, self._told)
                self._script.begin()
            case Ended():
                self._end(event)
            case _:
                pass  # Another choice: a request that asks for more than one is refused.

    # One part at a time

    def _route(self, at: int, event: Event) -> None:
        if self._at < 0 and isinstance(event, PartBegan):
            self._at = at
        if at != self._at:
            self._waiting.setdefault(at, []).append(event)
            return
        self._handle(event)
        while self._at < 0 and self._waiting:
            self._at = at = next(iter(self._waiting))
            for waited in self._waiting.pop(at):
                self._handle(waited)

    def _handle(self, event: Event) -> None:
        match event:
            case Delta(text=text):
                if text:
                    self._say(text)
            case PartBegan(part=part):
                self._finish_part()
                self._open = part
                self._begin(part)
            case Sealed(signature=signature, maker=maker):
                if isinstance(self._open, Text | Thinking | ToolCall):
                    self._open = codec.replace(self._open, signature=signature, maker=maker)
            case Cited(citation=citation):
                self._cite(citation)
            case _:
                # It is ended with the next one: what is said of its tokens may still come.
                self._closing, self._at = True, -1

    def _begin(self, part: Part) -> None:
        match part:
            case Text():
                if part.text:
                    self._say(part.text)
                for citation in part.citations:
                    self._cite(citation)
            case Refusal():
                self._refused = True
                if part.text:
                    self._say(part.text)
            case Thinking():
                self._think(part)
            case ToolCall():
                self._call(part)
            case Opaque() if part.origin == ORIGIN:
                self._script.tell(dict(part.value))
            case Opaque():
                self._notes.lost("answer_item_dropped", part.kind)
            case Image() if part.data:
                self._image(part)
            case _:
                self._notes.lost("answer_part_dropped", type(part).__name__.lower())

    def _say(self, text: str) -> None:
        script, part = self._script, self._open
        match part:
            case Text():
                self._open_part({"type": "output_text", "annotations": [], "logprobs": []})
                weights, self._weights = self._weights, []
                if weights and script.part is not None:
                    script.part["logprobs"] += weights
                script.add(text, weights)
                return
            case Refusal():
                self._open_part({"type": "refusal"}, "refusal")
            case Thinking():
                self._thought.append(text)
                kind = "summary_text" if self._summary or part.summary else "reasoning_text"
                self._open_thought(kind)
            case _:
                pass
        script.add(text)

    def _open_part(self, part: Json, field: str = "text") -> None:
        """Open a part of a message, if none is open, and the message where need be."""
        script = self._script
        if script.part is not None:
            return
        if script.item is None or script.item["type"] != "message":
            script.open({**self._named("message"), "role": "assistant", "content": []})
        script.open_part({**part, field: ""})

    def _named(self, kind: str) -> Json:
        place = len(self._script.output) + (self._script.item is not None)
        return {"id": item_id(self._base, kind, place), "type": kind}

    def _cite(self, citation: Citation) -> None:
        self._open_part({"type": "output_text", "annotations": [], "logprobs": []})
        script = self._script
        note = write_citation(citation, sum(map(len, script.texts)))
        if note is None or script.part is None:
            self._notes.lost("citation_dropped")
            return
        notes: list[Json] = script.part["annotations"]
        where = {**script.where(), "annotation_index": len(notes), "annotation": note}
        script.emit("response.output_text.annotation.added", where)
        notes.append(note)

    # Thinking

    def _think(self, part: Thinking) -> None:
        self._thought.clear()
        pieces = [piece for piece in part.summary if piece]
        whole = BREAKS["summary_text"].join(pieces)
        if part.text and part.text != whole:
            self._thought.append(part.text)
            self._open_thought("summary_text" if self._summary and not pieces else "reasoning_text")
            self._script.add(part.text)
            self._script.end_part()
        elif pieces:
            self._thought.append(whole)
        for piece in pieces:
            self._open_thought("summary_text")
            self._script.add(piece)
            self._script.end_part()

    def _open_thought(self, kind: str) -> None:
        script = self._script
        if script.part is None:
            self._open_reasoning(self._open)
            script.open_part({"type": kind, "text": ""})

    def _open_reasoning(self, part: Part | None) -> None:
        """Open the item of a thinking, once."""
        script = self._script
        if script.item is not None and script.item["type"] == "reasoning":
            return
        item = self._named("reasoning")
        if isinstance(part, Thinking) and part.id.startswith("rs_"):
            item["id"] = part.id
        script.open({**item, "summary": []})

    # Calls and pictures

    def _call(self, part: ToolCall) -> None:
        kind, field = (
            ("custom_tool_call", "input") if part.custom else ("function_call", "arguments")
        )
        is_own = part.item_id or isinstance(part.extra, OwnMembers)
        own = part.extra if is_own else NO_BAG  # another format's words mean something else here
        extra = {name: own[name] for name in _CALL_EXTRA if name in own}
        item = self._named(kind)
        call_id = part.id or f"call_{item['id'].partition('_')[2]}"
        self._script.open({**item, field: "", "call_id": call_id, "name": part.name, **extra})
        if part.arguments:
            self._say(part.arguments)

    def _image(self, part: Image) -> None:
        item: Json = {
            **self._named("image_generation_call"),
            "status": "completed",
            "result": part.data,
        }
        form = part.media_type.partition("/")[2]
        self._script.tell({**item, "output_format": form} if form else item)

    # Ends

    def _finish_part(self) -> None:
        """End the part that was open."""
        part, self._open = self._open, None
        if part is None or not self._closing:
            return
        self._closing = False
        script = self._script
        match part:
            case ToolCall():
                if not part.custom and not script.texts:
                    script.add("{}")
                script.end_part()
                self._seal(part)
            case Thinking():
                self._end_thinking(part)
            case Text():
                if script.part is not None:
                    script.part["logprobs"] += self._weights
                    self._weights = []
                script.end_part()
                self._seal(part)
            case _:
                script.end_part()

    def _end_thinking(self, part: Thinking) -> None:
        """End an item of reasoning, with its seal where the caller asked for it."""
        script = self._script
        script.end_part()
        seal = ""
        if self._seals:
            seal = encrypted_content(codec.replace(part, text="".join(self._thought)))
        if seal:
            self._open_reasoning(part)
        if script.item is not None and script.item["type"] == "reasoning":
            if seal:
                script.item["encrypted_content"] = seal
            script.close()

    def _seal(self, part: Text | ToolCall) -> None:
        """Write the seal of a part as an item behind it: it has no place of its own (Gemini)."""
        if self._seals and part.signature and part.maker != MAKER:
            seal: Json = {"summary": [], "encrypted_content": sealed_part(part)}
            self._script.tell({**self._named("reasoning"), **seal})

    def _end(self, event: Ended) -> None:
        self._closing = self._open is not None
        self._finish_part()
        if self._weights:
            self._notes.lost("logprobs_dropped")
        finish = self._finish.finish
        if finish == "pause":
            self._notes.lost("finish_changed", "pause")
        tier = event.extra.get("service_tier")
        if isinstance(tier, str) and tier in TIERS:
            self._script.head["service_tier"] = tier
        status, reason = ending_of(finish, refused=self._refused)
        self._script.end(status, ending(status, reason, self._usage))
        self._ended = True


def write_answer(answer: Answer, told: Told, notes: Notes) -> bytes:
    """Return a whole answer; what is said of tokens goes to its first text."""
    writer = ResponsesWriter(told, notes, quiet=True)
    events = events_of(answer)
    events.sort(key=_rank)
    writer.write(events)
    return codec.encode(writer.final)


def _rank(event: Event) -> int:
    return 0 if isinstance(event, Began) else 1 if isinstance(event, Weighed) else 2
