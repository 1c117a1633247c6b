"""Which models a tenant and a key may call: worked out at load, never wider than what is listed (T-9, K30)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gateway.chain.compiled import BARE, Chain
from gateway.chain.plan import Model, Pattern, Principal, Target


def grant(
    tenant: str,
    names: Iterable[str],
    models: Mapping[str, Model],
    accounts: Mapping[str, Target],
    chain: Chain = BARE,
) -> Principal:
    """Return what a tenant may call, and through which chain: the configured models that its list opens."""
    exact = {name: model for name, model in models.items() if "*" not in name}
    patterns = [
        Pattern(model.prefix, model.suffix, model) for name, model in models.items() if "*" in name
    ]
    opened, opened_patterns = _restrict(names, exact, patterns)
    return Principal(tenant, "", opened, opened_patterns, accounts, None, chain)


def narrow(
    tenant: Principal, key_id: str, names: Iterable[str] | None, expires: float | None
) -> Principal:
    """Return what one key of a tenant may call: all of it, or what the key's own list leaves of it.

    A key with a list of models cannot name providers: what it may do there could not be told from the list.
    """
    if names is None:
        return replace(tenant, key_id=key_id, expires=expires)
    exact, patterns = _restrict(names, tenant.models, tenant.patterns)
    return replace(
        tenant, key_id=key_id, models=exact, patterns=patterns, accounts={}, expires=expires
    )


def opens(name: str, listed: Iterable[str], models: Iterable[str]) -> bool:
    """Tell whether a name or pattern in a key's list opens any model that its tenant's list opens."""
    tenant = grant("", listed, {each: _named(each) for each in models}, {})
    key = narrow(tenant, "", (name,), None)
    return bool(key.models or key.patterns)


def _named(name: str) -> Model:
    prefix, _, suffix = name.partition("*")
    return Model(name, (), "weighted", None, None, None, prefix, suffix)


def _restrict(
    names: Iterable[str], exact: Mapping[str, Model], patterns: Iterable[Pattern]
) -> tuple[dict[str, Model], tuple[Pattern, ...]]:
    ordered = sorted(patterns, key=lambda pattern: -len(pattern.prefix))
    opened: dict[str, Model] = {}
    left: list[Pattern] = []
    for name in names:
        prefix, star, suffix = name.partition("*")
        if not star:
            model = exact.get(name) or _first_fit(name, ordered)
            if model is not None:
                opened[name] = model
            continue
        asked = Pattern(prefix, suffix, _NO_MODEL)
        opened.update({each: model for each, model in exact.items() if asked.fits(each)})
        left.extend(both for pattern in ordered if (both := _meet(asked, pattern)) is not None)
    return opened, tuple(sorted(left, key=lambda pattern: -len(pattern.prefix)))


def _first_fit(name: str, patterns: Iterable[Pattern]) -> Model | None:
    return next((pattern.model for pattern in patterns if pattern.fits(name)), None)


def _meet(asked: Pattern, given: Pattern) -> Pattern | None:
    """Return the narrower of two patterns, for the given one's model; None when neither holds the other."""
    if _holds(given, asked):
        return Pattern(asked.prefix, asked.suffix, given.model)
    return given if _holds(asked, given) else None


def _holds(wide: Pattern, tight: Pattern) -> bool:
    return tight.prefix.startswith(wide.prefix) and tight.suffix.endswith(wide.suffix)


_NO_MODEL = Model("", (), "weighted", None, None, None)
