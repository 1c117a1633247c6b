"""The models that a caller may use, in the shape that clients list them."""

from collections.abc import Mapping
from typing import Any

from gateway.chain.plan import Model, Principal
from gateway.chain.snapshot import resolve
from gateway.core import codec

_OWNER = "llm-gateway"


def list_models(principal: Principal, behind: Mapping[str, Model], loaded_at: int) -> bytes:
    """Render all models of a caller by name; `behind` are the names that its patterns stand for."""
    named = {**behind, **principal.models}
    rows = [_row(name, model, loaded_at) for name, model in sorted(named.items())]
    return codec.encode({"object": "list", "data": rows})


def get_model(principal: Principal, name: str, loaded_at: int) -> bytes:
    """Render one model; raises InputError `model_not_found`."""
    return codec.encode(_row(name, resolve(principal, name), loaded_at))


def _row(name: str, model: Model, loaded_at: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": name, "object": "model", "created": loaded_at, "owned_by": _OWNER}
    if model.context_tokens is not None:
        row["context_length"] = model.context_tokens
    if model.max_output_tokens is not None:
        row["max_output_tokens"] = model.max_output_tokens
    if model.supports:
        row["supports"] = sorted(model.supports)
    return row
