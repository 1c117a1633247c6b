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
  state: memory
  database: sqlite:{folder}/bench.db
providers:
  mock:
    kind: openai_compatible
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
"""


class Gateway:
    name = "gateway"
    label = "this gateway"

    def launch(self, folder: Path, port: int, upstream_port: int) -> Launch | None:
        if importlib.util.find_spec("gateway.__main__") is None:
            raise AbsentError("gateway has no command yet")
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
            )
        )
        command = [sys.executable, "-m", "gateway", "serve"]
        return Launch(
            [*command, "--config", str(config), "--port", str(port)],
            environment={
                "BENCH_CLIENT_KEY": _KEY,
                "BENCH_UPSTREAM_KEY": "sk-upstream",
                "PYTHONPATH": str(REPOSITORY),
                "PYTHONUNBUFFERED": "1",
            },
            headers={"authorization": f"Bearer {_KEY}"},
        )

    def install(self) -> None:
        return
