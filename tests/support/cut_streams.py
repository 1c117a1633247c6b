"""Where recorded streams of every format may be cut, and which pieces of them are a whole answer."""

import asyncio
import base64
import json
import re
from collections.abc import Iterable
from typing import Any

import httpx2

from tests.support import event_stream
from tests.support.exchanges import Exchange
from tests.support.gateway import bearer
from tests.support.recordings import DONE, event_ends, events_of, is_object
from tests.support.translated import Stage, asking

AT_ONCE = 12
_INNER = re.compile(rb'"bytes":"([^"]*)"')
_LAST = {
    "message_stop",
    "message-end",
    "response.completed",
    "response.incomplete",
    "response.failed",
}


def ends(exchange: Exchange) -> list[int]:
    """Return where each event or frame of a stream ends, in bytes, the last one left out."""
    body = exchange.body
    if exchange.raw["response"]["encoding"] == "base64":
        return event_stream.ends(body)[:-1]
    if exchange.provider_kind == "ollama_native":
        return [match.end() for match in re.finditer(rb"\n", body) if match.end() < len(body)]
    return event_ends(body)


def is_whole(exchange: Exchange, size: int) -> bool:
    """Tell whether the provider's own terminator is in the first bytes of a stream."""
    body = exchange.body[:size]
    if exchange.raw["response"]["encoding"] == "base64":
        said = b"".join(map(base64.b64decode, _INNER.findall(body)))
        return b":event-type\x07\x00\x08metadata" in body or b'"message_stop"' in said
    if exchange.provider_kind == "ollama_native":
        return any(json.loads(line).get("done") for line in body.splitlines() if line.strip())
    return any(_is_last(event.data) for event in events_of(body))


def _is_last(data: str) -> bool:
    if data.strip() == DONE:
        return True
    try:
        said: Any = json.loads(data)
    except ValueError:
        return False
    return is_object(said) and said.get("type") in _LAST


async def ask_all(
    stage: Stage, exchange: Exchange, caller: str, options: Iterable[str]
) -> list[httpx2.Response]:
    """Ask under each of these options, several at once."""
    places = asyncio.Semaphore(AT_ONCE)
    async with httpx2.AsyncClient(
        trust_env=False, verify=False, timeout=30, headers=bearer()
    ) as client:

        async def ask(option: str) -> httpx2.Response:
            async with places:
                return await client.request(**asking(stage.gateway, exchange, caller, option))

        return list(await asyncio.gather(*(ask(option) for option in options)))
