"""`gateway conform`: what a gateway has to show, one check each, for callers of each format."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from gateway.cli.conform_formats import (
    FIELDS,
    FINISHES,
    LIMIT,
    PATHS,
    TOOLS,
    Json,
    Said,
    ask,
    objects,
    read,
    with_results,
)
from gateway.cli.conform_streams import StreamRead
from gateway.cli.conform_wire import Heard, Wire
from gateway.core import codec

_HELLO = "Say hello in one short sentence."
_ONE = f"What is the weather in Paris? Please call {TOOLS[0]}."
_BOTH = f"For Paris, please call {TOOLS[0]} and also call {TOOLS[1]}, both at once."
_FORM = "Which city is the capital of France? Answer as JSON with city and country."
_UNKNOWN = "no-such-model-4b1d"
_WRONG_KEY = "sk-wrong-0123456789abcdefghij"
_UNOFFERED = {404, 405, 501}


class Wrong(Exception):
    """The gateway does not keep a promise of the format; the text says which."""


class NotOffered(Exception):
    """The gateway or the model cannot do this, and says so or does not try."""


@dataclass(frozen=True, slots=True)
class Case:
    """One format and model of a gateway."""

    wire: Wire
    kind: str
    model: str

    async def send(self, body: Json | bytes, *, key: str | None = None) -> Heard:
        """Send a request in this format."""
        return await self.wire.post(
            PATHS[self.kind], body, messages=self.kind == "messages", key=key
        )

    async def whole(self, body: Json) -> Said:
        """Send a request; raises Wrong for anything but a whole answer."""
        return self.read(await self.send(body))

    def read(self, heard: Heard) -> Said:
        """Read a whole answer; raises Wrong for anything else."""
        _need(heard.status == 200, f"status {heard.status}: {_words(heard)}")
        _need(heard.content_type == "application/json", f"content type {heard.content_type}")
        said = read(self.kind, heard.object)
        _need(said.finish in FINISHES[self.kind], f"ends with {said.finish or 'nothing'}")
        return said

    async def stream(self, body: Json) -> Said:
        """Send a request for a stream; raises Wrong where it breaks the grammar."""
        heard = await self.send(body)
        _need(heard.status == 200, f"status {heard.status}: {_words(heard)}")
        _need(heard.content_type == "text/event-stream", f"content type {heard.content_type}")
        _need(heard.complete, "the body does not end by its own framing")
        found = StreamRead(self.kind, heard.events)
        _need(not found.breaches, "; ".join(found.breaches))
        _need(found.said.finish in FINISHES[self.kind], f"ends with {found.said.finish}")
        return found.said


def _need(is_so: bool, otherwise: str) -> None:  # noqa: FBT001  the promise itself
    if not is_so:
        raise Wrong(otherwise)


def _words(heard: Heard) -> str:
    error = codec.as_object(heard.object.get("error")) or {}
    return str(error.get("message") or heard.body[:120].decode(errors="replace"))


async def text(case: Case) -> None:
    """Check that a plain answer has text and an end."""
    said = await case.whole(ask(case.kind, case.model, _HELLO))
    _need(bool(said.text), "the answer has no text")


async def stream(case: Case) -> None:
    """Check that a stream keeps the grammar, and has text."""
    said = await case.stream(ask(case.kind, case.model, _HELLO, stream=True))
    _need(bool(said.text), "the answer has no text")


async def usage(case: Case) -> None:
    """Check that counts are there, plain and in streams, and add up."""
    _counts(case, await case.whole(ask(case.kind, case.model, _HELLO)), "the plain answer")
    _counts(case, await case.stream(ask(case.kind, case.model, _HELLO, stream=True)), "the stream")


def _counts(case: Case, said: Said, where: str) -> None:
    asked, answered, total = said.counts
    _need(asked is not None and answered is not None, f"{where} has no counts")
    _need((asked or 0) > 0, f"{where} counts no input")
    if case.kind != "messages":
        summed = (asked or 0) + (answered or 0)
        _need(total is not None and total >= summed, f"{where}: {asked} + {answered} is {total}")


async def tools(case: Case) -> None:
    """Check that a tool which must be called is called, and that its result is taken."""
    body = ask(case.kind, case.model, _ONE, tools=True, must=True)
    said = await _called(case, body)
    _are_good(case, said, TOOLS[:1])
    again = ask(
        case.kind, case.model, _ONE, tools=True, history=with_results(case.kind, _ONE, said)
    )
    last = await case.whole(again)
    _need(bool(last.text or last.calls), "nothing is said to the result of the tool")


async def tool_stream(case: Case) -> None:
    """Check that a call of a tool comes whole through a stream."""
    await _called(case, ask(case.kind, case.model, _ONE, tools=True, must=True))
    body = ask(case.kind, case.model, _ONE, tools=True, must=True, stream=True)
    _are_good(case, await case.stream(body), TOOLS[:1])


async def parallel(case: Case) -> None:
    """Check that two calls at once are told apart, and that both results are taken."""
    said = await _called(case, ask(case.kind, case.model, _BOTH, tools=True))
    if len(said.calls) < len(TOOLS):
        raise NotOffered("the model calls one tool at a time")
    _are_good(case, said, TOOLS)
    _need(len({call.id for call in said.calls}) == len(said.calls), "two calls have one id")
    history = with_results(case.kind, _BOTH, said)
    last = await case.whole(ask(case.kind, case.model, _BOTH, tools=True, history=history))
    _need(bool(last.text or last.calls), "nothing is said to the results of the tools")


async def _called(case: Case, body: Json) -> Said:
    heard = await case.send(body)
    if heard.status == 400:
        raise NotOffered(_words(heard))
    said = case.read(heard)
    if not said.calls:
        raise NotOffered("the model calls no tool")
    return said


def _are_good(case: Case, said: Said, names: tuple[str, ...]) -> None:
    _need(bool(said.calls), "there is no call")
    for call in said.calls:
        _need(call.name in names, f"the call is named {call.name}")
        _need(bool(call.id), "the call has no id")
        _need(_object(call.arguments) is not None, "the arguments are no JSON object")
    word = {"chat": "tool_calls", "messages": "tool_use", "responses": "completed"}[case.kind]
    _need(said.finish == word, f"an answer with calls ends with {said.finish}")


def _object(text: str) -> Json | None:
    try:
        return codec.as_object(codec.decode(text))
    except (codec.JSONError, RecursionError):
        return None


async def structured(case: Case) -> None:
    """Check that an answer of a given form is JSON of that form."""
    body = ask(case.kind, case.model, _FORM, schema=True)
    heard = await case.send(body)
    if heard.status == 400:
        raise NotOffered(_words(heard))
    said = case.read(heard)
    found = _object(said.text)
    if found is None:
        raise NotOffered("the model answers with free text")
    _need(set(found) == set(FIELDS), f"the answer has the fields {', '.join(found) or 'none'}")


async def unknown_model(case: Case) -> None:
    """Check that an unknown model is the caller's error, in the caller's format."""
    heard = await case.send(ask(case.kind, _UNKNOWN, _HELLO))
    _need(heard.status in {400, 403, 404}, f"status {heard.status}")
    _is_error(case, heard)


async def bad_request(case: Case) -> None:
    """Check that what is no JSON, or asks nothing, is the caller's error, in the caller's format."""
    model = codec.encode(case.model)
    for body in (
        b"{",
        b'{"model":' + model + b"}",
        b'{"model":' + model + b',"messages":7,"input":7}',
    ):
        heard = await case.send(body)
        _need(heard.status in {400, 413, 422}, f"status {heard.status} for {body.decode()}")
        _is_error(case, heard)


async def bad_key(case: Case) -> None:
    """Check that a wrong key is refused, in the caller's format."""
    heard = await case.send(ask(case.kind, case.model, _HELLO), key=_WRONG_KEY)
    if heard.status == 200:
        raise NotOffered("any key is taken")
    _need(heard.status in {401, 403}, f"status {heard.status}")
    _is_error(case, heard)


def _is_error(case: Case, heard: Heard) -> None:
    said = heard.object
    error = codec.as_object(said.get("error"))
    _need(error is not None, f"no `error` object: {heard.body[:80].decode(errors='replace')}")
    told = error or {}
    _need(bool(told.get("message")), "an error without a message")
    if case.kind == "messages":
        _need(said.get("type") == "error", "`type` is not `error`")
        _need(str(told.get("type")).endswith("_error"), f"error.type is {told.get('type')}")
    else:
        _need(
            {"message", "type", "param", "code"} <= told.keys(),
            "an error without type, param or code",
        )


async def models(case: Case) -> None:
    """Check that models are listed in the caller's format."""
    heard = await case.wire.get("/models", messages=case.kind == "messages")
    if heard.status in _UNOFFERED:
        raise NotOffered(f"status {heard.status}")
    _need(heard.status == 200, f"status {heard.status}: {_words(heard)}")
    listed = list(objects(heard.object.get("data")))
    _need(bool(listed), "`data` lists no models")
    _need(all(isinstance(each.get("id"), str) for each in listed), "a model without an id")
    if case.kind == "messages":
        _need(all(each.get("type") == "model" for each in listed), "a model without its type")
        _need("has_more" in heard.object, "no `has_more`")
    else:
        _need(heard.object.get("object") == "list", "`object` is not `list`")


async def counting(case: Case) -> None:
    """Check that tokens are counted before a call."""
    body = ask(case.kind, case.model, _HELLO)
    heard = await case.wire.post(
        "/messages/count_tokens",
        {k: v for k, v in body.items() if k != "max_tokens"},
        messages=True,
    )
    if heard.status in _UNOFFERED or heard.status == 400:
        raise NotOffered(_words(heard))
    _need(heard.status == 200, f"status {heard.status}: {_words(heard)}")
    count = heard.object.get("input_tokens")
    _need(isinstance(count, int) and 0 < count < LIMIT, f"input_tokens is {count}")


Check = Callable[[Case], Awaitable[None]]
CHECKS: Mapping[str, Check] = {
    "text": text,
    "stream": stream,
    "usage": usage,
    "tool call and result": tools,
    "tool call in a stream": tool_stream,
    "parallel tool calls": parallel,
    "structured output": structured,
    "unknown model": unknown_model,
    "bad request": bad_request,
    "wrong key": bad_key,
    "list of models": models,
    "count_tokens": counting,
}
"""Every check by its name."""
ONLY = {"count_tokens": "messages"}
"""Checks of one format alone."""
