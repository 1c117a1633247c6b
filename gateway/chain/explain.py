"""What a snapshot does, in words or as data: who may call what, and where it goes. Calls nothing."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.chain.endings import ending_notes, said_of
from gateway.chain.facts import ModelFacts
from gateway.chain.hooks import levels_of
from gateway.chain.layers import check_chains
from gateway.chain.onion import Layer
from gateway.chain.pending import setting_notes
from gateway.chain.prices import Tariff, tariffs_of
from gateway.config.chain import When
from gateway.config.models import Model
from gateway.config.schema import Tree
from gateway.core.money import dollars, worst


def describe(tree: Tree, tenant: str | None = None, model: str | None = None) -> dict[str, Any]:
    """Return the plan of a tree as plain data without secrets, in a stable order; raises ConfigError."""
    builder = check_chains(tree)
    tariffs = tariffs_of(tree)
    return {
        "sources": list(tree.sources),
        "notes": [*tree.notes, *setting_notes(tree), *ending_notes(tree)],
        "providers": {
            name: {
                "kind": entry.kind,
                "base_url": entry.base_url,
                "keys": len(entry.credentials),
                "transport": entry.transport,
            }
            for name, entry in sorted(tree.providers.items())
        },
        "models": {
            name: {
                "balance": entry.balance,
                "targets": [
                    {
                        "provider": t.provider,
                        "model": t.model,
                        "weight": t.weight,
                        "params": dict(t.params),
                        "usd_per_million": _price(tariffs[t.provider], t.model),
                        "facts": _facts(tariffs[t.provider], t.model, said_of(entry)),
                    }
                    for t in entry.targets
                ],
                "worst_case_usd": _worst_case(entry, tariffs),
                "limits": entry.limits.model_dump(exclude_none=True),
                "supports": None if entry.supports is None else list(entry.supports),
            }
            for name, entry in sorted(tree.models.items())
            if model in (None, name)
        },
        "tenants": {
            name: {
                "models": list(entry.models),
                "providers": list(entry.providers),
                "keys": [key.id for key in entry.keys],
                "chain": [layer.kind for layer in tree.chain_of(name)],
                "layers": [
                    _layer(layer, when)
                    for layer, when in zip(
                        builder.built[name].layers, builder.built[name].conditions, strict=True
                    )
                ],
                "findings": [
                    f"{finding.rule.result}: {finding}" for finding in builder.findings[name]
                ],
            }
            for name, entry in sorted(tree.tenants.items())
            if tenant in (None, name)
        },
    }


def _price(tariff: Tariff, served: str) -> dict[str, str] | None:
    """Return what the tokens of a target cost; None when nobody knows, or before a star is filled in."""
    price = tariff.price(served) if "*" not in served else None
    if price is None:
        return None
    return {"input": dollars(price.input), "output": dollars(price.output)}


def _facts(tariff: Tariff, served: str, said: ModelFacts) -> dict[str, Any]:
    """Return what is known of a target, and is not nothing; before a star is filled in what is configured alone."""
    facts = tariff.facts(served).under(said) if "*" not in served else said
    found: dict[str, Any] = {
        "context_tokens": facts.context,
        "max_output_tokens": facts.output,
        "input": list(facts.takes),
        "output": list(facts.gives),
        "retires": None if facts.ends is None else facts.ends.isoformat(),
    }
    return {name: value for name, value in found.items() if value}


def _worst_case(model: Model, tariffs: Mapping[str, Tariff]) -> str | None:
    """Return the most that one call of a model can cost, where its limits and all its prices are known."""
    context, answer = model.limits.context_tokens, model.limits.max_output_tokens
    prices = [tariffs[t.provider].price(t.model) for t in model.targets if "*" not in t.model]
    known = [price for price in prices if price is not None]
    if context is None or answer is None or len(known) < len(model.targets):
        return None
    return dollars(max(worst(price, context, answer) for price in known))


def _layer(layer: Layer, when: When | None) -> dict[str, Any]:
    """Return what a layer is and what it needs of answers."""
    middleware = layer.middleware
    return {
        "id": layer.id,
        "kind": layer.kind,
        "shadow": middleware.shadow,
        "levels": list(levels_of(middleware)),
        "needs": [name for name, needed in middleware.needs._asdict().items() if needed],
        "when": when.model_dump(exclude_none=True) if when is not None else {},
        "parts": [dict(part) for part in middleware.parts()],
    }


_NEEDS = {
    "whole": "makes streams wait until they are complete",
    "hold": "holds a stream back until its first content",
    "complete": "holds a stream back until it is complete",
    "text": "counts the text of streams",
}


def _fact_lines(facts: Mapping[str, Any]) -> list[str]:
    said = [
        f"{facts[name]} tokens {words}"
        for name, words in (("context_tokens", "in all"), ("max_output_tokens", "of the answer"))
        if name in facts
    ]
    said += [f"{words} {_join(facts[name])}" for name, words in _MEDIA if name in facts]
    return ["; ".join(said)] if said else []


_MEDIA = (("input", "takes"), ("output", "gives"))


def _layer_line(layer: Mapping[str, Any]) -> str:
    facts = [f"at the level{'s' * (len(layer['levels']) > 1)} {_join(layer['levels'])}"]
    facts += [_NEEDS[name] for name in layer["needs"]]
    facts += ["in shadow: changes nothing"] * layer["shadow"]
    facts += [f"only for {name} {_join(values)}" for name, values in layer["when"].items()]
    kind = "" if layer["kind"] == layer["id"] else f" ({layer['kind']})"
    return f"    {layer['id']}{kind}: {'; '.join(facts)}"


def _part_line(part: Mapping[str, str]) -> str:
    """Return a line of one part of a layer: `input: pii, action redact`."""
    kind = part.get("kind", "")
    facts = [part["name"] if kind in {"", part["name"]} else f"{part['name']} ({kind})"]
    facts += [f"{k} {v}" for k, v in part.items() if k not in {"name", "kind", "group"}]
    return f"      {part.get('group', 'part')}: {', '.join(facts)}"


def render(plan: Mapping[str, Any]) -> str:
    """Return a plan as text for people."""
    lines = [f"note: {note}" for note in plan["notes"]]
    for name, tenant in plan["tenants"].items():
        lines.append(f"tenant {name}")
        lines.append(f"  keys: {_join(tenant['keys'])}")
        lines.append(f"  may call: {_join(tenant['models'])}")
        if tenant["providers"]:
            lines.append(f"  own accounts: {_join(tenant['providers'])}")
        lines.append(f"  chain: {' > '.join(tenant['chain']) or 'none'}")
        for layer in tenant["layers"]:
            lines += [_layer_line(layer), *map(_part_line, layer["parts"])]
        lines += [f"    {finding}" for finding in tenant["findings"]]
    for name, model in plan["models"].items():
        worst_case = model["worst_case_usd"]
        at_most = f", at most ${worst_case} a call" if worst_case else ""
        lines.append(f"model {name} ({model['balance']}){at_most}")
        for target in model["targets"]:
            provider = plan["providers"][target["provider"]]
            where = provider["base_url"] or f"the usual address of {provider['kind']}"
            price = target["usd_per_million"]
            costs = f", ${price['input']} and ${price['output']} a million tokens" if price else ""
            lines.append(
                f"  {target['weight']} x {target['provider']}/{target['model']} at {where}, "
                f"{provider['keys']} key(s){costs}"
            )
            lines.extend(f"      {line}" for line in _fact_lines(target["facts"]))
            lines.extend(
                f"      {key} = {value!r} unless the caller says"
                for key, value in target["params"].items()
            )
    return "\n".join(lines) + "\n"


def _join(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
