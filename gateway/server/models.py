"""The models that a caller may use, in the shape that clients list them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from gateway.chain.plan import Model, Principal
from gateway.chain.snapshot import resolve
from gateway.core import codec
from gateway.core.money import dollars

_OWNER = "llm-gateway"
_MOST_ROWS = 1000


def list_models(principal: Principal, behind: Mapping[str, Model], loaded_at: int) -> bytes:
    """Render all models of a caller by name; `behind` are the names that its patterns stand for."""
    named = {**behind, **principal.models}
    rows = [_row(name, model, loaded_at) for name, model in sorted(named.items())]
    return codec.encode({"object": "list", "data": rows})


def get_model(principal: Principal, name: str, loaded_at: int) -> bytes:
    """Render one model; raises InputError `model_not_found`."""
    return codec.encode(_row(name, resolve(principal, name), loaded_at))


def list_for_messages(
    principal: Principal, behind: Mapping[str, Model], loaded_at: int, query: bytes = b""
) -> bytes:
    """Render models of a caller in the shape of the Messages API; `query` may hold `limit` and `after_id`."""
    asked = dict(parse_qsl(query.decode("ascii", "replace")))
    named = sorted({**behind, **principal.models}.items())
    after = asked.get("after_id")
    left = [(name, model) for name, model in named if after is None or name > after]
    limit = asked.get("limit", "")
    most = max(1, min(int(limit), _MOST_ROWS)) if limit.isdecimal() else _MOST_ROWS
    rows = [_messages_row(name, model, loaded_at) for name, model in left[:most]]
    ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    page = {"data": rows, "has_more": len(left) > most, "first_id": None, "last_id": None, **ends}
    return codec.encode(page)


def get_for_messages(principal: Principal, name: str, loaded_at: int) -> bytes:
    """Render one model in the shape of the Messages API; raises InputError `model_not_found`."""
    return codec.encode(_messages_row(name, resolve(principal, name), loaded_at))


def _messages_row(name: str, model: Model, loaded_at: int) -> dict[str, Any]:
    created = datetime.fromtimestamp(loaded_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    row: dict[str, Any] = {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": created,
    }
    facts = _facts(model)
    limits = {
        "max_input_tokens": facts.get("context_length"),
        "max_tokens": facts.get("max_output_tokens"),
    }
    return row | limits | facts


def _row(name: str, model: Model, loaded_at: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": name, "object": "model", "created": loaded_at, "owned_by": _OWNER}
    return row | _facts(model)


def _facts(model: Model) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    target = model.targets[0] if model.targets else None
    context = model.context_tokens
    if target is not None and "*" not in target.model:
        tariff = target.account.tariff
        context = tariff.context_tokens(target.model) if context is None else context
        price = tariff.price(target.model)
        if price is not None:
            named = {
                "input": price.input,
                "output": price.output,
                "cache_read": price.cache_read,
                "cache_write": price.cache_write,
            }
            facts["pricing"] = {
                name: dollars(micro) for name, micro in named.items() if micro is not None
            }
    if context is not None:
        facts["context_length"] = context
    if model.max_output_tokens is not None:
        facts["max_output_tokens"] = model.max_output_tokens
    if model.supports:
        facts["supports"] = sorted(model.supports)
    return facts
