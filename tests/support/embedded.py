"""Recorded embeddings of every provider, asked for in OpenAI's form."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.providers.registry import PROVIDERS
from tests.support.exchanges import Exchange
from tests.support.folder import address_of, folder, name_of, raws
from tests.support.gateway import KEY, bearer, http, run_gateway, run_replay

Json = dict[str, Any]
_KINDS = {"ollama": "ollama_native"}
_MARKS = ("/embeddings", "/models/", "/model/", "/v2/embed", "/api/embed")


def _load() -> tuple[Exchange, ...]:
    return tuple(
        Exchange(name_of(raw), raw["provider"], raw["kind"], raw)
        for raw in raws()
        if raw["kind"] == "embeddings" and raw["provider"] in PROVIDERS
    )


EMBEDDED = _load()


def _entry(exchange: Exchange, replay: str) -> Json:
    path = exchange.path
    places = (path.find(mark) for mark in _MARKS)
    base = path[: min((place for place in places if place >= 0), default=0)]
    if path.startswith("/api/"):
        base = ""
    entry: Json = {
        "kind": _KINDS.get(exchange.provider, exchange.provider),
        "base_url": f"{replay}{address_of(exchange.raw)}{base}",
        "api_key": "key-0123456789abcdefghij",
    }
    return entry | ({"region": "us-east-1"} if exchange.provider == "bedrock" else {})


def embedded(place: Path) -> Iterator[tuple[Exchange, bool]]:
    """Ask for each; yield whether as many vectors came, of the same size and values."""
    with run_replay(place, recordings=folder()) as replay:
        providers = {e.id: _entry(e, replay.url) for e in EMBEDDED}
        models = {e.id: {"targets": [{"provider": e.id, "model": e.model}]} for e in EMBEDDED}
        tenant = {"keys": [{"id": "test", "secret": KEY}], "models": list(models)}
        config = {"providers": providers, "models": models, "tenants": {"embedding": tenant}}
        with run_gateway(config, place) as gateway, http(headers=bearer()) as client:
            for exchange in EMBEDDED:
                asked = {"model": exchange.id, "input": "Hello"}
                answer = client.post(f"{gateway.url}/v1/embeddings", json=asked)
                vectors: list[Json] = answer.json().get("data") or []
                sizes = {len(each["embedding"]) for each in vectors}
                expect = exchange.expect
                wanted = (expect["count"], {expect["dimensions"]})
                yield exchange, (len(vectors), sizes) == wanted
