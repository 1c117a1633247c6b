"""Lists of models tell what each takes and gives and when it ends, in the shape of the caller's own SDK."""

import json
from pathlib import Path
from typing import Any

from anthropic.types import ModelInfo
from openai.types import Model

from tests.contract.test_formats import behind
from tests.support.scripted_upstream import Request, ok
from tests.support.serving import KEY

Json = dict[str, Any]
VERSION = {"anthropic-version": "2023-06-01"}


def target(model: str) -> Json:
    return {"provider": "up", "model": model}


MODELS: Json = {
    "many": {"targets": [target("gpt-4o"), target("claude-opus-4-1")]},
    "own": {
        "targets": [target("claude-opus-4-1")],
        "limits": {"context_tokens": 5000, "max_output_tokens": 700},
        "modalities": {"input": ["text"], "output": ["text", "audio"]},
        "retires": "2999-01-02",
    },
    "gone": {"targets": [target("gpt-4o")], "retires": "2020-01-02"},
    "unknown": {"targets": [target("llama-own")]},
    "up/*": {"targets": [target("*")]},
}


TENANTS: Json = {"acme": {"keys": [{"id": "k", "secret": KEY}], "models": list(MODELS)}}


def listing(_: Request) -> bytes:
    """Answer as a provider that lists its models."""
    return ok(json.dumps({"object": "list", "data": [{"id": "gpt-4o"}]}).encode())


async def test_models_tell_their_facts_to_openais_client(tmp_path: Path) -> None:
    more = {"models": MODELS, "tenants": TENANTS}
    async with behind(tmp_path, "openai", listing, **more) as (gateway, _):
        listed = (await gateway.client.get("/v1/models")).json()["data"]
        one = (await gateway.client.get("/v1/models/up/gpt-4o")).json()
        each = {
            row["id"]: (await gateway.client.get(f"/v1/models/{row['id']}")).json()
            for row in listed
        }

    rows = {row["id"]: row for row in listed}
    assert {name: Model.model_validate(row).shutdown_date for name, row in rows.items()} == {
        "many": None,
        "own": "2999-01-02",
        "gone": "2020-01-02",
        "unknown": None,
        "up/gpt-4o": None,
    }
    assert [rows[name].get("lifecycle") for name in ("own", "gone", "many")] == [
        "deprecated",
        "retired",
        None,
    ]
    assert rows["own"]["context_length"] == 5000
    assert rows["own"]["max_output_tokens"] == 700
    assert rows["own"]["input_modalities"] == ["text"]
    assert rows["own"]["output_modalities"] == ["text", "audio"]
    assert (rows["many"]["context_length"], rows["many"]["max_output_tokens"]) == (128_000, 16_384)
    assert rows["many"]["input_modalities"] == ["text", "image", "file"]
    assert not {"context_length", "input_modalities"} & rows["unknown"].keys()
    assert one["max_output_tokens"] == rows["up/gpt-4o"]["max_output_tokens"] == 16_384
    assert one["pricing"]["input"] == "2.5"
    assert all(rows[name] == row for name, row in each.items() if not name.startswith("up/"))


async def test_models_tell_their_facts_to_anthropics_client(tmp_path: Path) -> None:
    more = {"models": MODELS, "tenants": TENANTS}
    async with behind(tmp_path, "openai", listing, **more) as (gateway, _):
        listed = (await gateway.client.get("/v1/models", headers=VERSION)).json()["data"]
        one = (await gateway.client.get("/v1/models/own", headers=VERSION)).json()

    rows = {row["id"]: ModelInfo.model_validate(row) for row in listed}
    assert rows["own"].max_tokens == 700
    assert rows["own"].max_input_tokens == 5000
    assert rows["own"].lifecycle == "deprecated"
    assert rows["own"].retires_at is not None
    assert rows["own"].retires_at.isoformat() == "2999-01-02T00:00:00+00:00"
    assert rows["many"].max_tokens == 16_384
    assert rows["gone"].lifecycle == "retired"
    assert (rows["unknown"].lifecycle, rows["unknown"].max_tokens) == ("active", None)
    assert one == next(row for row in listed if row["id"] == "own")
