"""The Messages dialect between a caller and a provider who both speak it."""

from collections.abc import Sequence
from typing import Any

from gateway.core import codec
from gateway.core.errors import GatewayError
from gateway.core.reply import Headers, Whole
from gateway.core.usage import Usage
from gateway.dialects.base import (
    ProviderError,
    Redactor,
    StreamRules,
    unredacted,
)
from gateway.dialects.messages import errors
from gateway.dialects.messages.counting import read_count
from gateway.dialects.messages.endings import compose, cut_short, synthesise
from gateway.dialects.messages.events import PING
from gateway.dialects.messages.usage import read_usage
from gateway.dialects.messages.watcher import MessagesWatcher

_JSON: Headers = ((b"content-type", b"application/json"),)
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


class _Object(codec.Struct):
    """Any object; what is in it is not looked at."""


class _Answer(codec.Struct):
    """A whole answer, as far as a relay looks at it; `content` must be a list of objects."""

    content: list[_Object] | None = None
    usage: Any = None
    error: Any = None
    type: Any = None


_decode = codec.Decoder(_Answer).decode


class AnthropicMessages:
    """Messages and the counting of their tokens."""

    name = "anthropic_messages"
    ping = PING

    def render_error(self, error: GatewayError, request_id: str) -> bytes:
        """Return the JSON body of a plain error answer."""
        return errors.render_error(error, request_id)

    def render_stream_error(self, error: GatewayError, request_id: str) -> bytes:
        """Return the event that ends a stream honestly: no `message_stop` after it."""
        return errors.as_stream(errors.render_error(error, request_id))

    def render_provider_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return what the provider said in this format's envelope."""
        return errors.render_provider_error(said, error, request_id)

    def render_provider_stream_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return the event that ends a stream with what the provider said."""
        return errors.as_stream(self.render_provider_error(said, error, request_id))

    def read_error(self, http: int, body: bytes, secrets: Redactor) -> ProviderError:
        """Read a provider's error answer of any shape."""
        return errors.read_error(body, secrets)

    def error_class(self, error: ProviderError, http: int) -> str:
        """Classify what a provider said: context, policy, quota, auth or other."""
        return errors.error_class(error, http)

    def read_answer(
        self,
        endpoint: str,
        body: bytes,
        secrets: Redactor = unredacted,
        *,
        reasoning_outside: bool = False,
    ) -> Usage | None:
        """Check a whole success answer and return its usage."""
        if endpoint == "count_tokens":
            read_count(body, secrets)
            return None
        try:
            if not body.isascii():
                body.decode()
            answer = _decode(body)
        except _BAD as bad:
            raise errors.not_an_answer(body, secrets, str(bad)) from None
        if answer.content is None or answer.type == "error":
            raise errors.not_an_answer(body, secrets, "no content")
        return read_usage(answer.usage)

    def watch(self, endpoint: str, rules: StreamRules) -> MessagesWatcher:
        """Return a watcher for one stream."""
        return MessagesWatcher(rules)

    def cut_short(self, endpoint: str, began: bytes, choices: Sequence[int], why: str) -> bytes:
        """Return the end of a stream that is ended before its time; `choices` are the open blocks."""
        return cut_short(began, choices, why)

    def synthesise(self, endpoint: str, body: bytes, include_usage: bool) -> bytes:  # noqa: FBT001
        """Return a whole answer as a valid stream; its usage is always told."""
        return synthesise(body)

    def answer(self, endpoint: str, model: str, text: str, request_id: str) -> Whole:
        """Return a whole answer of this text that no provider was asked for."""
        return Whole(200, _JSON, compose(endpoint, model, text, request_id))
