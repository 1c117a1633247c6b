"""What a snapshot does, in words or as data: who may call what, and where it goes. Calls nothing."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.chain.pending import PENDING, setting_notes
from gateway.config.schema import Tree


def describe(tree: Tree, tenant: str | None = None, model: str | None = None) -> dict[str, Any]:
    """Return the plan of a tree as plain data without secrets, in a stable order."""
    return {
        "sources": list(tree.sources),
        "notes": [*tree.notes, *setting_notes(tree)],
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
                    }
                    for t in entry.targets
                ],
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
                "not_active": [
                    layer.kind for layer in tree.chain_of(name) if layer.kind in PENDING
                ],
            }
            for name, entry in sorted(tree.tenants.items())
            if tenant in (None, name)
        },
    }


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
        if tenant["not_active"]:
            lines.append(f"  not active in this version: {_join(tenant['not_active'])}")
    for name, model in plan["models"].items():
        lines.append(f"model {name} ({model['balance']})")
        for target in model["targets"]:
            provider = plan["providers"][target["provider"]]
            where = provider["base_url"] or f"the usual address of {provider['kind']}"
            lines.append(
                f"  {target['weight']} x {target['provider']}/{target['model']} at {where}, "
                f"{provider['keys']} key(s)"
            )
            lines.extend(
                f"      {key} = {value!r} unless the caller says"
                for key, value in target["params"].items()
            )
    return "\n".join(lines) + "\n"


def _join(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
