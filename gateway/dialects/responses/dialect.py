"""Responses between a caller and a provider that both speak it: relayed, watched, ended and refused."""

from collections.abc import Sequence
from typing import Any

from gateway.core import clock, codec
from gateway.core.answer import Began
from gateway.core.codec import as_object
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.message import Prompt
from gateway.core.reply import Headers, Whole
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError, Redactor, StreamRules, unredacted
from gateway.dialects.openai_errors import render_error, render_provider_error
from gateway.dialects.plain_errors import PlainErrors
from gateway.dialects.responses.answers import check_answer
from gateway.dialects.responses.failures import as_failed
from gateway.dialects.responses.ids import item_id, new_base
from gateway.dialects.responses.response import ending, head_of
from gateway.dialects.responses.script import Script, Unfinished
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.responses.synth import as_stream
from gateway.dialects.responses.watcher import StreamWatcher
from gateway.dialects.sides import Told
from gateway.dialects.sse import parse_event, split_events

_JSON: Headers = ((b"content-type", b"application/json"),)


class OpenAIResponses(PlainErrors):
    """The Responses format; its errors are OpenAI's."""

    name = ORIGIN
    ping = b": ping\n\n"

    def render_error(self, error: GatewayError, request_id: str) -> bytes:
        """Return the JSON body of a plain error answer."""
        return render_error(error, request_id)

    def render_stream_error(self, error: GatewayError, request_id: str) -> bytes:
        """Return the events that end a stream honestly."""
        return as_failed(render_error(error, request_id), error.open_choices)

    def render_provider_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return what the provider said in OpenAI's envelope."""
        return render_provider_error(said, error, self.name)

    def render_provider_stream_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return the events that end a stream with what the provider said."""
        return as_failed(render_provider_error(said, error, self.name), error.open_choices)

    def read_answer(
        self,
        endpoint: str,
        body: bytes,
        secrets: Redactor = unredacted,
        *,
        reasoning_outside: bool = False,
    ) -> Usage | None:
        """Check a whole success answer and return its usage."""
        return check_answer(body, secrets, outside=reasoning_outside)

    def watch(self, endpoint: str, rules: StreamRules) -> StreamWatcher:
        """Return a watcher for one stream."""
        return StreamWatcher(rules)

    def cut_short(self, endpoint: str, began: bytes, choices: Sequence[int], why: str) -> bytes:
        """Return the end of a stream that is ended before its time: all that is open is done, incomplete."""
        script = choices.script if isinstance(choices, Unfinished) else _followed(began)
        return script.cut(why)

    def synthesise(self, endpoint: str, body: bytes, include_usage: bool) -> bytes:  # noqa: FBT001
        """Return a whole answer as a valid stream."""
        response = as_object(codec.decode(body))
        if response is None or not isinstance(response.get("output"), list):
            raise UpstreamError(
                "upstream_invalid_response", phase="answer", detail="no output to stream"
            )
        return as_stream(response)

    def answer(self, endpoint: str, model: str, text: str, request_id: str) -> Whole:
        """Return a whole answer of this text that no provider was asked for; its usage is zero."""
        base = new_base()
        told = Told(request_id, model, int(clock.wall()), Prompt(ORIGIN, ()))
        part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": []}
        item: dict[str, Any] = {
            "id": item_id(base, "message", 0),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{**part, "text": text}],
        }
        head = head_of(base, Began(model=model), told)
        response = {**head, **ending("completed", "", Usage(0, 0)), "output": [item]}
        return Whole(200, _JSON, codec.encode({**response, "status": "completed"}))


def _followed(began: bytes) -> Script:
    """Return where a stream stands that began like this."""
    script = Script({})
    for event in split_events(began):
        try:
            said = as_object(codec.decode(parse_event(event)[1] or b""))
        except codec.JSONError:
            continue
        if said is not None:
            script.observe(said)
    return script
