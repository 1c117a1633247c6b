"""The scene of the translations: every recorded exchange behind a gateway, for callers of every format."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.support.exchanges import Exchange, load
from tests.support.folder import address_of, folder
from tests.support.gateway import KEY, Gateway, Replay, bearer, http, run_gateway, run_replay
from tests.support.heard import PATHS, question

Json = dict[str, Any]
EXCHANGES = load()
CALLERS = tuple(PATHS)


@dataclass(frozen=True, slots=True)
class Stage:
    """A gateway in front of the replay upstream, and a client."""

    gateway: Gateway
    replay: Replay
    client: httpx2.Client

    def ask(self, exchange: Exchange, caller: str, options: str = "") -> httpx2.Response:
        """Ask something in a caller's format; the recorded answer comes, cut as the options say."""
        return self.client.request(**asking(self.gateway, exchange, caller, options))


def asking(gateway: Gateway, exchange: Exchange, caller: str, options: str) -> dict[str, Any]:
    """Return the arguments of a request that the recorded answer is given to."""
    tools = bool(exchange.expect.get("tool_calls"))
    body = question(caller, stream=exchange.stream, tools=tools)
    body["model"] = f"{exchange.id}@{options or 'chunk=whole'}"
    return {"method": "POST", "url": gateway.url + PATHS[caller], "json": body}


def configuration(replay: str) -> Json:
    """Make one model of each exchange: `<id>@<options of the replay>`."""
    providers: dict[str, Json] = {}
    models: dict[str, Json] = {}
    for exchange in EXCHANGES:
        providers[exchange.id] = exchange.entry(replay + address_of(exchange.raw))
        target = {"provider": exchange.id, "model": f"{exchange.model}~opt:*"}
        models[f"{exchange.id}@*"] = {"targets": [target]}
    tenant = {"keys": [{"id": "test", "secret": KEY}], "models": list(models)}
    return {"providers": providers, "models": models, "tenants": {"replayed": tenant}}


@contextmanager
def translated(place: Path) -> Generator[Stage]:
    """Serve all exchanges through a gateway until the block ends."""
    with (
        run_replay(place, recordings=folder()) as replay,
        run_gateway(configuration(replay.url), place) as gateway,
        http(headers=bearer()) as client,
    ):
        yield Stage(gateway, replay, client)
