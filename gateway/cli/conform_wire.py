"""`gateway conform`: sends requests to the gateway that is looked at, and keeps whole answers."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gateway.core import clock, codec
from gateway.dialects.sse import BOM, parse_event, split_events
from gateway.upstream.client import Client, Endpoint, EndpointSpec, Headers, Timeouts

Json = dict[str, Any]
_WAIT_S = 120.0
_MAX_BYTES = 16 << 20
_JSON = (b"content-type", b"application/json")
_VERSION = (b"anthropic-version", b"2023-06-01")


@dataclass(frozen=True, slots=True)
class Heard:
    """One whole answer. `complete`: its body ended by its own framing."""

    status: int
    content_type: str
    body: bytes
    complete: bool

    @property
    def object(self) -> Json:
        """Return the body as a JSON object, an empty one where it is none."""
        try:
            return codec.as_object(codec.decode(self.body)) or {}
        except (codec.JSONError, RecursionError, UnicodeDecodeError):
            return {}

    @property
    def events(self) -> list[tuple[str, str]]:
        """Return name and data of each event."""
        parsed = (parse_event(each) for each in split_events(self.body.removeprefix(BOM)))
        return [
            (name.decode(errors="replace"), data.decode(errors="replace"))
            for name, data in parsed
            if data is not None and data.strip()
        ]


class Wire:
    """The gateway that is looked at, with a key."""

    def __init__(self, client: Client, url: str, key: str) -> None:
        self._prefix = urlsplit(url).path.rstrip("/").removesuffix("/v1")
        timeouts = Timeouts(first_byte_s=_WAIT_S, idle_s=_WAIT_S)
        self._endpoint: Endpoint = client.endpoint(EndpointSpec(base_url=url, timeouts=timeouts))
        self._key = key.encode()

    async def post(
        self, path: str, body: Json | bytes, *, messages: bool = False, key: str | None = None
    ) -> Heard:
        """Send a JSON body; raises UpstreamError where no answer comes."""
        sent = body if isinstance(body, bytes) else codec.encode(body)
        secret = self._key if key is None else key.encode()
        return await self._send(b"POST", path, (_JSON, *_credentials(secret, messages)), sent)

    async def get(self, path: str, *, messages: bool = False) -> Heard:
        """Ask for an address; raises UpstreamError where no answer comes."""
        return await self._send(b"GET", path, _credentials(self._key, messages), None)

    async def _send(self, method: bytes, path: str, headers: Headers, body: bytes | None) -> Heard:
        target = f"{self._prefix}/v1{path}".encode()
        deadline = clock.monotonic() + _WAIT_S
        answer = await self._endpoint.send(method, target, headers, body, deadline)
        said = await answer.read_all(_MAX_BYTES)
        return Heard(answer.status, answer.content_type.decode(), said, answer.complete)


def _credentials(key: bytes, messages: bool) -> Headers:  # noqa: FBT001  which of two kinds
    if messages:
        return ((b"x-api-key", key), _VERSION)
    return ((b"authorization", b"Bearer " + key),)
