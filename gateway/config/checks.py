"""What must agree across sections. Reads what was written, so that no mistake hides another."""

from collections.abc import Collection, Iterator

from gateway.config.chain import COMMON, check_chain, cycles, is_chain, members
from gateway.config.errors import Mistake, did_you_mean
from gateway.config.keys import hash_key
from gateway.config.node import Node, View
from gateway.config.patterns import covers, fits
from gateway.config.references import Secret

_MAY_BE_EMPTY = frozenset({"models", "providers", "chain", "supports", "use"})
_UNREAD = frozenset({"params", "tools"})


def check_tree(
    tree: View,
    kinds: Collection[str],
    middleware: Collection[str] | None,
    absent: Collection[str] = (),
) -> list[Mistake]:
    """Return every mistake that no single section can see."""
    found = [*_empty(tree), *_providers(tree, kinds), *_models(tree), *_prices(tree)]
    found += [*_tenants(tree), *_keys(tree), *_ports(tree), *_relayed(tree)]
    stacks = tree.entries("stacks")
    known = None if middleware is None else frozenset(middleware)
    found += cycles(stacks)
    for chain in _chains(tree):
        found += check_chain(chain, stacks, known, absent)
    return found


def _empty(view: View) -> Iterator[Mistake]:
    """Find what says nothing: keys without a value, lists and blocks that may mean all or none."""
    for key, child in view.entries().items():
        if child.node.bare:
            yield child.key_mistake("is empty: give it a value or remove the key")
        elif key in _UNREAD:
            yield from _bare(child)
        elif child.node.value == {}:
            yield child.mistake("is empty: fill the block or remove the key")
        elif child.node.value == [] and key not in _MAY_BE_EMPTY:
            yield child.mistake("is an empty list: fill it or remove the key")
        elif is_chain(child.path):
            yield from _empty_entries(child)
        else:
            yield from _empty(child)
    for child in view.items():
        if child.node.bare:
            yield child.mistake("is empty: give it a value or remove it")
        else:
            yield from _empty(child)


def _empty_entries(chain: View) -> Iterator[Mistake]:
    """Find the same in a chain; of the options, which are not read here, only keys without a value."""
    for item in members(chain):
        if item.node.bare:
            yield item.mistake("is empty: name a middleware or remove it")
        for kind, inside in item.entries().items():
            if inside.node.bare:
                yield inside.key_mistake(f"is empty: write {kind} alone, or give it options")
            for name, view in inside.entries().items():
                if name in COMMON and not view.node.bare:
                    yield from _empty(View(Node(view.node.place, {name: view.node}), inside.path))
                else:
                    yield from _bare(view)


def _bare(view: View) -> Iterator[Mistake]:
    """Find keys and members without a value, however deep."""
    for each in view.walk():
        if each.node.bare:
            yield each.here("is empty: give it a value or remove it")


def _providers(tree: View, kinds: Collection[str]) -> Iterator[Mistake]:
    for provider in tree.entries("providers").values():
        kind = provider.text("kind")
        view = provider.get("kind")
        if kind and view is not None and kind not in kinds:
            near = did_you_mean(kind, kinds)
            yield view.mistake(f"there is no provider kind {view.quoted()}{near}")
        seen: dict[str, View] = {}
        for key in provider.items("api_keys"):
            first = seen.setdefault(key.text() or "", key)
            if first is not key and key.text():
                yield key.mistake(f"is the same credential as at {first.node.place}")


def _models(tree: View) -> Iterator[Mistake]:
    providers = tree.entries("providers")
    yield from _same_names(tree.entries("models"))
    for name, model in tree.entries("models").items():
        if name.count("*") > 1:
            yield model.key_mistake(f'the name "{name}" has more than one star')
        for target in model.items("targets"):
            provider, wanted = target.get("provider"), target.text("provider")
            if provider is not None and wanted and wanted not in providers:
                near = did_you_mean(wanted, providers)
                yield provider.mistake(f"there is no provider {provider.quoted()}{near}")
            upstream = target.text("model") or ""
            view = target.get("model") or target
            if upstream.count("*") > 1:
                yield view.mistake("has more than one star")
            elif "*" in upstream and "*" not in name:
                yield view.mistake(f'has a star, but the name "{name}" has none')


def _same_names(models: dict[str, View]) -> Iterator[Mistake]:
    """Find patterns between which the part before the star, the longer wins, cannot decide."""
    patterns = [name.partition("*") for name in models if "*" in name]
    for at, (head, _, tail) in enumerate(patterns):
        for other, _, end in patterns[:at]:
            if head == other and (tail.endswith(end) or end.endswith(tail)):
                first = models[f"{other}*{end}"].node.key_place
                message = f'"{head}*{tail}" fits names that "{other}*{end}" at {first} fits too'
                yield models[f"{head}*{tail}"].key_mistake(message)


def _prices(tree: View) -> Iterator[Mistake]:
    providers = tree.entries("providers")
    for name, rows in tree.entries("prices").items():
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            yield rows.key_mistake(f'the name "{name}" must be provider/model')
        elif provider not in providers:
            near = did_you_mean(provider, providers)
            yield rows.key_mistake(f'there is no provider "{provider}"{near}')
        days: set[str] = set()
        for row in rows.items():
            day = row.text("from") or ""
            if day in days:
                yield row.mistake(f"a second row from {day or 'the beginning'}")
            days.add(day)


def _tenants(tree: View) -> Iterator[Mistake]:
    providers = tree.entries("providers")
    models = tree.entries("models")
    for tenant in tree.entries("tenants").values():
        agents = tenant.entries("agents")
        callable_names = {*models, *agents}
        yield from _model_list(tenant.items("models"), callable_names)
        yield from _twice([*tenant.items("models")])
        yield from _twice([*tenant.items("providers")])
        own = [text for view in tenant.items("models") if (text := view.text())]
        for key in tenant.items("keys"):
            yield from _twice(key.items("models"))
            for view in key.items("models"):
                name = view.text()
                if name and not any(covers(each, name) for each in [*own, *agents]):
                    near = did_you_mean(name, own)
                    yield view.mistake(f"{view.quoted()} is no model of this tenant{near}")
        for view in tenant.items("providers"):
            name = view.text()
            if name and name not in providers:
                yield view.mistake(
                    f"there is no provider {view.quoted()}{did_you_mean(name, providers)}"
                )
        for name, agent in agents.items():
            if name in models:
                yield agent.key_mistake(f'"{name}" is already the name of a model')
            model = agent.get("model")
            if model is not None:
                yield from _model_list([model], models)


def _model_list(views: list[View], known: Collection[str]) -> Iterator[Mistake]:
    """Find names that no model has and that fit no pattern, and patterns that fit nothing."""
    for view in views:
        name = view.text()
        if not name:
            continue
        if name.count("*") > 1:
            yield view.mistake("has more than one star")
        elif not any(name == each or fits(each, name) or covers(name, each) for each in known):
            near = did_you_mean(name, known)
            yield view.mistake(f"there is no model {view.quoted()}{near}")


def _twice(views: list[View]) -> Iterator[Mistake]:
    seen: dict[str, View] = {}
    for view in views:
        name = view.text()
        if name and name in seen:
            yield view.mistake(f"{view.quoted()} is already listed at {seen[name].node.place}")
        elif name:
            seen[name] = view


def _keys(tree: View) -> Iterator[Mistake]:
    """Find ids that are used twice in a tenant, and one secret that would open two doors."""
    owners: dict[str, View] = {}
    for tenant in tree.entries("tenants").values():
        seen: dict[str, View] = {}
        for key in tenant.items("keys"):
            name, view = key.text("id"), key.get("id")
            if name and view is not None:
                if name in seen:
                    yield view.mistake(
                        f"{view.quoted()} is already a key at {seen[name].node.place}"
                    )
                seen.setdefault(name, view)
            form = key.get("secret") or key.get("hash")
            secret, digest = key.text("secret"), key.text("hash")
            door = hash_key(secret) if secret else digest
            if form is None or not door:
                continue
            if door in owners:
                yield form.mistake(f"is the same key as at {owners[door].node.place}")
            owners.setdefault(door, form)
    admin = tree.text("server", "admin", "key")
    view = tree.get("server", "admin", "key")
    if admin and view is not None and (other := owners.get(hash_key(admin))):
        yield view.mistake(f"is the same key as at {other.node.place}")


def _relayed(tree: View) -> Iterator[Mistake]:
    """Find accounts whose files two tenants could reach: a relayed provider has one tenant."""
    owners: dict[str, View] = {}
    for tenant in tree.entries("tenants").values():
        for view in tenant.items("providers"):
            name = view.text() or ""
            other = owners.setdefault(name, view)
            if other.path[:2] != view.path[:2]:
                yield view.mistake(
                    f"{view.quoted()} is already open to another tenant at {other.node.place}: "
                    "its files would be in reach of both"
                )


def _ports(tree: View) -> Iterator[Mistake]:
    port, admin = tree.get("server", "port"), tree.get("server", "admin", "port")
    here, there = _port(port, "4000"), _port(admin, "4001")
    if here == there and here != "0":
        view = admin or port
        if view is not None:
            yield view.mistake("the two listeners need two ports")


def _port(view: View | None, usual: str) -> str:
    """Return a port as text, as a variable of the environment gives it."""
    value = view.node.value if view is not None else usual
    return str(value.reveal() if isinstance(value, Secret) else value)


def _chains(tree: View) -> Iterator[View]:
    yield from tree.entries("stacks").values()
    for owner in (tree.get("defaults"), *tree.entries("tenants").values()):
        if owner is None:
            continue
        for each in (owner, *owner.entries("agents").values()):
            chain = each.get("chain")
            if chain is not None:
                yield chain
