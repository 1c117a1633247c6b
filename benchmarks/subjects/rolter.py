"""rolter, an LLM gateway in Rust, from its wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import payload
from benchmarks.subjects import packages
from benchmarks.subjects.base import Launch

_KEY: Final = "sk-bench"
# Its queue admits 8 requests at a time by default; without it the gateway shows what it can do.
_CONFIG: Final = """
[server]
host = "127.0.0.1"
port = {port}

[queue]
enabled = false

[[providers]]
name = "mock"
kind = "openai_compatible"
api_base = "http://127.0.0.1:{upstream}"

{routes}
[[virtual_keys]]
key = "{key}"
name = "load"
models = []
"""
_ROUTE: Final = """[[routes]]
model = "{name}"
strategy = "round_robin"
[[routes.targets]]
provider = "mock"
model = "{name}"
"""


class Rolter:
    name = "rolter"
    label = "rolter (Rust)"

    def launch(self, folder: Path, port: int, upstream_port: int) -> Launch | None:
        program = packages.python_program("rolter", "rolter")
        config = folder / "rolter.toml"
        routes = "".join(_ROUTE.format(name=name) for name in payload.MODELS)
        config.write_text(
            _CONFIG.format(port=port, upstream=upstream_port, routes=routes, key=_KEY)
        )
        return Launch(
            [str(program), "gateway", "--config", str(config)],
            environment={"ROLTER_UPDATE_CHECK": "false", "RUST_LOG": "error", "NO_COLOR": "1"},
            folder=folder,
            ready_path="/healthz",
            headers={"authorization": f"Bearer {_KEY}"},
        )

    def install(self) -> None:
        packages.install_python("rolter", ["rolter"])
