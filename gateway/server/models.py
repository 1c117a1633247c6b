"""The models that a caller may use, in the shape that clients list them.

Of names behind patterns lists tell only what is found at once: there may be thousands. Each by itself tells all.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from gateway.chain.facts import ModelFacts, moment
from gateway.chain.plan import Model, Principal
from gateway.chain.snapshot import resolve
from gateway.core import codec
from gateway.core.money import dollars

_OWNER = "llm-gateway"
_MOST_ROWS = 1000


def list_models(principal: Principal, behind: Mapping[str, Model], loaded_at: int) -> bytes:
    """Render all models of a caller by name; `behind` are the names that its patterns stand for."""
    named = {**behind, **principal.models}
    rows = [
        _row(name, model, loaded_at, quick=name in behind) for name, model in sorted(named.items())
    ]
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
    rows = [
        _messages_row(name, model, loaded_at, quick=name in behind) for name, model in left[:most]
    ]
    ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    page = {"data": rows, "has_more": len(left) > most, "first_id": None, "last_id": None, **ends}
    return codec.encode(page)


def get_for_messages(principal: Principal, name: str, loaded_at: int) -> bytes:
    """Render one model in the shape of the Messages API; raises InputError `model_not_found`."""
    return codec.encode(_messages_row(name, resolve(principal, name), loaded_at))


def _messages_row(
    name: str, model: Model, loaded_at: int, *, quick: bool = False
) -> dict[str, Any]:
    created = datetime.fromtimestamp(loaded_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    known = model.facts(name, quick=quick)
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": created,
        "max_input_tokens": known.context,
        "max_tokens": known.output,
        "lifecycle": known.lifecycle,
        "deprecated_at": None,
        "retires_at": None if known.ends is None else moment(known.ends),
        **_extras(name, model, known, quick=quick),
    }


def _row(name: str, model: Model, loaded_at: int, *, quick: bool = False) -> dict[str, Any]:
    known = model.facts(name, quick=quick)
    return {
        "id": name,
        "object": "model",
        "created": loaded_at,
        "owned_by": _OWNER,
        "shutdown_date": None if known.ends is None else known.ends.isoformat(),
        **({} if known.lifecycle == "active" else {"lifecycle": known.lifecycle}),
        **_extras(name, model, known, quick=quick),
    }


def _extras(name: str, model: Model, known: ModelFacts, *, quick: bool) -> dict[str, Any]:
    """Return what both shapes tell besides, as far as it is known."""
    found: dict[str, Any] = {
        "context_length": known.context,
        "max_output_tokens": known.output,
        "input_modalities": list(known.takes),
        "output_modalities": list(known.gives),
        "pricing": None if quick else _pricing(name, model),
        "supports": sorted(model.supports or ()),
    }
    return {key: value for key, value in found.items() if value}


def _pricing(name: str, model: Model) -> dict[str, str] | None:
    """Return US dollars per million tokens at the first target, where its price is known."""
    if not model.targets:
        return None
    first = model.targets[0]
    price = first.account.tariff.price(first.served(model, name))
    if price is None:
        return None
    named = {
        "input": price.input,
        "output": price.output,
        "cache_read": price.cache_read,
        "cache_write": price.cache_write,
    }
    return {key: dollars(micro) for key, micro in named.items() if micro is not None}
