"""What commands about keys need of a configuration. Other sections, and secrets in this one, are not resolved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.config.build import Origin, build, referred
from gateway.config.default import data_directory, place_database
from gateway.config.files import Files
from gateway.config.loader import load
from gateway.config.node import Node, View
from gateway.config.schema import Tree

_OF_A_TENANT = ("models",)


@dataclass(frozen=True, slots=True)
class KeySettings:
    """Where keys are kept, what each tenant may call, and the models that there are."""

    database: str
    tenants: Mapping[str, Sequence[str]]
    models: Sequence[str]


def load_key_settings(
    path: Path | None,
    *,
    environ: Mapping[str, str],
    known_kinds: Mapping[str, Sequence[str]],
) -> KeySettings:
    """Return what commands about keys need; raises ConfigError for mistakes in that alone."""
    if path is None:
        tree = load(None, environ=environ, known_kinds=known_kinds)
        return _settings(tree, tuple(tree.models))
    from gateway.config.folder import gather

    written = gather(path, Files())
    needed = _needed(View(written.root))
    origin = Origin(environ, known_kinds, None, {})
    # Names across sections cannot be checked here: only a part of them is there.
    tree = build(needed, origin, written.mistakes, whole=False, referred_to=referred(written.root))
    tree = place_database(tree, data_directory(environ)[0])
    return _settings(tree, tuple(View(written.root).entries("models")))


def _settings(tree: Tree, models: Sequence[str]) -> KeySettings:
    tenants = {name: tenant.models for name, tenant in tree.tenants.items()}
    return KeySettings(tree.stores.database.reveal(), tenants, models)


def _needed(root: View) -> Node:
    """Return the stores, and the tenants without their keys, chains and agents."""
    sections: dict[str, Node] = {}
    stores, tenants = root.get("stores"), root.get("tenants")
    if stores is not None:
        sections["stores"] = stores.node
    if tenants is not None:
        kept = {name: _kept(tenant) for name, tenant in tenants.entries().items()}
        sections["tenants"] = Node(tenants.node.place, kept, tenants.node.key_place)
    return Node(root.node.place, sections)


def _kept(tenant: View) -> Node:
    fields = {name: field.node for name, field in tenant.entries().items() if name in _OF_A_TENANT}
    return Node(tenant.node.place, fields, tenant.node.key_place)
