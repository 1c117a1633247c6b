"""The configuration of a small team, for tests of the commands, and a question to its gateway."""

import json
from pathlib import Path
from typing import Any

import httpx2

from tests.support.gateway import KEY, Gateway, bearer, http, ports

USER = [{"role": "user", "content": "Hello"}]
CANARY = "sk-canary-0123456789abcdef"


def configuration(database: str = "memory") -> dict[str, Any]:
    return {
        "stores": {"database": database},
        "providers": {
            "echo": {"kind": "echo"},
            "far": {"kind": "openai", "api_key": CANARY},
        },
        "models": {
            "echo": {"targets": [{"provider": "echo", "model": "echo"}]},
            "far": {"targets": [{"provider": "far", "model": "gpt-6-luna", "weight": 3}]},
        },
        "tenants": {
            "team": {"keys": [{"id": "own", "secret": KEY}], "models": ["echo", "far"]},
            "other": {"models": ["echo"]},
        },
    }


def written(folder: Path, config: dict[str, Any] | str, name: str = "config.yaml") -> str:
    path = folder / name
    text = config if isinstance(config, str) else json.dumps(ports(config))
    path.write_text(text, encoding="utf-8")
    return str(path)


def ask(gateway: Gateway, key: str, model: str = "echo") -> httpx2.Response:
    with http() as client:
        return client.post(
            f"{gateway.url}/v1/chat/completions",
            headers=bearer(key),
            json={"model": model, "messages": USER},
        )
