"""Portkey's open gateway, on Node."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.subjects import packages
from benchmarks.subjects.base import Launch

_START: Final = "node_modules/@portkey-ai/gateway/build/start-server.js"
# Later releases of its server library break its streams: answers come with headers it cannot set.
_HELD_BACK: Final = {"@hono/node-server": "1.13.8"}


class Portkey:
    name = "portkey"
    label = "Portkey (Node)"

    def launch(self, folder: Path, port: int, upstream_port: int) -> Launch | None:
        node, script = packages.node_program("portkey", _START)
        return Launch(
            [node, str(script), f"--port={port}", "--headless"],
            environment={"NODE_ENV": "production"},
            folder=folder,
            ready_path="/",
            headers={
                "authorization": "Bearer sk-upstream",
                "x-portkey-provider": "openai",
                "x-portkey-custom-host": f"http://127.0.0.1:{upstream_port}/v1",
            },
        )

    def install(self) -> None:
        packages.install_node("portkey", ["@portkey-ai/gateway"], _HELD_BACK)
