"""A guardrail alone around answers that tests write, and streams of every format cut as tests like."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from gateway.core import clock, codec
from gateway.core.call import Call, Run
from gateway.core.errors import GatewayError
from gateway.core.reply import BeforeEnd, Headers, Reply, Whole
from gateway.core.usage import Usage
from gateway.dialects.registry import DIALECTS
from gateway.middleware.base import Build
from gateway.middleware.guardrail.layer import Guardrail, GuardrailOptions
from gateway.middleware.ports import Ports
from gateway.telemetry.cells import Registry
from gateway.telemetry.metrics import Metrics
from tests.support.layer import Body, NamedModel

Json = dict[str, Any]
ENDPOINTS = {
    "openai_chat": "chat",
    "anthropic_messages": "messages",
    "openai_responses": "responses",
}
EVENTS: Headers = ((b"content-type", b"text/event-stream; charset=utf-8"),)
JSON: Headers = ((b"content-type", b"application/json"),)


class Written:
    """A stream of pieces in memory."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.status = 200
        self.headers = EVENTS
        self.length: int | None = None
        self.finished = False
        self.usage: Usage | None = None
        self._pieces = iter(pieces)
        self._next = next(self._pieces, b"")

    def before_end(self, hook: BeforeEnd) -> None:
        """Take no hooks."""

    async def next(self) -> bytes:
        """Return the next piece."""
        piece = self._next
        following = next(self._pieces, None)
        self.finished = following is None
        self._next = following or b""
        return piece

    async def close(self) -> None:
        """End."""


@contextmanager
def guardrail(folder: Path | None = None, **options: Any) -> Generator[Guardrail]:
    """Build a guardrail that reaches nobody."""
    with closing(Registry.create(None)) as registry:
        ports = Ports(Metrics(registry, "0"), *(None,) * 3)  # type: ignore[arg-type]

        async def nowhere(call: Call) -> Reply:
            raise AssertionError(call)

        build = Build("acme", "", "g", False, ports, {}, nowhere, folder or Path())
        yield Guardrail(GuardrailOptions.model_validate(options), build)


def call_of(dialect: str, body: Mapping[str, Any] | None = None, endpoint: str = "") -> Call:
    """Return a call of a caller who speaks a format."""
    now = clock.monotonic()
    run = Run("req", endpoint or ENDPOINTS[dialect], now, now + 60)
    run.dialect, run.tenant, run.asked = DIALECTS[dialect], "acme", "m"
    fields = {name: codec.raw(value) for name, value in (body or {}).items()}
    return Call(run, NamedModel("m"), Body(fields))


async def through(guard: Guardrail, call: Call, reply: Reply) -> tuple[list[bytes], str]:
    """Return what a caller gets of an answer, read by read, and the code of the error that ended it."""

    async def proceed(inner: Call) -> Reply:
        return reply

    out: list[bytes] = []
    try:
        found = await guard.wrap_model(call, proceed)
        if isinstance(found, Whole):
            return [found.body], ""
        try:
            while not found.finished:
                out.append(await found.next())
        finally:
            await found.close()
    except GatewayError as error:
        return out, error.code
    return out, ""


def event(data: object, name: str = "") -> bytes:
    """Write one event, its text as compact JSON."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def chat(deltas: Sequence[str], *, tool: bool = False) -> list[bytes]:
    """Write a chat stream that says this."""
    head: Json = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def one(delta: Json, finish: str | None = None) -> bytes:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    out = [one({"role": "assistant", "content": None if tool else ""})]
    if tool:
        function = {"name": "f", "arguments": ""}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        out.append(one({"tool_calls": [call]}))
        out += [
            one({"tool_calls": [{"index": 0, "function": {"arguments": each}}]}) for each in deltas
        ]
    else:
        out += [one({"content": each}) for each in deltas]
    return [*out, one({}, "tool_calls" if tool else "stop"), b"data: [DONE]\n\n"]


def messages(deltas: Sequence[str], *, tool: bool = False) -> list[bytes]:
    """Write a stream of Messages that says this."""

    def one(kind: str, **fields: object) -> bytes:
        return event({"type": kind, **fields}, kind)

    message: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    block: Json = {"type": "text", "text": ""}
    if tool:
        block = {"type": "tool_use", "id": "t_1", "name": "f", "input": {}}
    kind, field = ("input_json_delta", "partial_json") if tool else ("text_delta", "text")
    return [
        one("message_start", message={**message, "usage": {"input_tokens": 1, "output_tokens": 1}}),
        one("content_block_start", index=0, content_block=block),
        *(
            one("content_block_delta", index=0, delta={"type": kind, field: each})
            for each in deltas
        ),
        one("content_block_stop", index=0),
        one("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}),
        one("message_stop"),
    ]


def responses(deltas: Sequence[str], *, tool: bool = False) -> list[bytes]:
    """Write a stream of Responses that says this, with all that it repeats."""
    numbers = iter(range(1000))

    def one(kind: str, **fields: object) -> bytes:
        return event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    said = "".join(deltas)
    at: Json = {"item_id": "i_1", "output_index": 0}
    begun: Json = {"id": "r", "object": "response", "status": "in_progress", "output": []}
    if tool:
        item: Json = {"id": "i_1", "type": "function_call", "call_id": "c", "name": "f"}
        full = {**item, "arguments": said, "status": "completed"}
        inside = [
            one("response.output_item.added", output_index=0, item={**item, "arguments": ""}),
            *(one("response.function_call_arguments.delta", **at, delta=each) for each in deltas),
            one("response.function_call_arguments.done", **at, arguments=said),
        ]
    else:
        at["content_index"] = 0
        part: Json = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
        item = {"id": "i_1", "type": "message", "role": "assistant", "content": []}
        full = {**item, "content": [part], "status": "completed"}
        inside = [
            one("response.output_item.added", output_index=0, item=item),
            one("response.content_part.added", **at, part={**part, "text": ""}),
            *(one("response.output_text.delta", **at, delta=each, logprobs=[]) for each in deltas),
            one("response.output_text.done", **at, text=said, logprobs=[]),
            one("response.content_part.done", **at, part=part),
        ]
    end = {**begun, "status": "completed", "output": [full], "usage": {"input_tokens": 1}}
    return [
        one("response.created", response=begun),
        *inside,
        one("response.output_item.done", output_index=0, item=full),
        one("response.completed", response=end),
    ]


WRITERS = {"openai_chat": chat, "anthropic_messages": messages, "openai_responses": responses}


def heard(dialect: str, stream: bytes) -> tuple[str, list[str]]:
    """Return what the deltas of a stream say, and every text in which it is repeated as a whole."""
    deltas: list[str] = []
    whole: list[str] = []
    for block in stream.decode().split("\n\n"):
        data = next((line[6:] for line in block.splitlines() if line.startswith("data: ")), "")
        if not data.startswith("{"):
            continue
        value: Json = json.loads(data)
        kind = value.get("type", "")
        if dialect == "openai_chat":
            for choice in value["choices"]:
                delta = choice["delta"]
                deltas.append(delta.get("content") or "")
                deltas += [call["function"]["arguments"] for call in delta.get("tool_calls", ())]
        elif kind == "content_block_delta":
            delta = value["delta"]
            deltas.append(delta.get("text", delta.get("partial_json", "")))
        elif kind.endswith(".delta"):
            deltas.append(value["delta"])
        elif kind.endswith(".done") or kind == "response.completed":
            whole += _repeated(value)
    return "".join(deltas), whole


def _repeated(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for item in cast("list[object]", value) for text in _repeated(item)]
    if not isinstance(value, dict):
        return []
    fields = cast("dict[str, object]", value)
    found = [
        item
        for name, item in fields.items()
        if name in {"text", "arguments"} and isinstance(item, str)
    ]
    return found + [text for item in fields.values() for text in _repeated(item)]
