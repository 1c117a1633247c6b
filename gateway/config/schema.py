"""The whole tree: every section a configuration may have."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, PrivateAttr

from gateway.config.base import Block, ModelName, Name, Some
from gateway.config.chain import ChainEntry, expand
from gateway.config.models import Model, Price
from gateway.config.providers import Provider
from gateway.config.references import MaskedUrl, Secret
from gateway.config.server import Server, Stores, Telemetry
from gateway.config.tenants import Defaults, Tenant

_SECRET_HEADER = re.compile("auth|key|token|secret|cookie|pass|credential", re.IGNORECASE)


class Tree(Block):
    """A checked configuration."""

    server: Server = Field(default_factory=Server, description="The listeners.")
    stores: Stores = Field(default_factory=Stores, description="Where state is kept.")
    telemetry: Telemetry = Field(
        default_factory=Telemetry, description="What is logged and exported."
    )
    providers: Mapping[Name, Provider] = Field(
        default_factory=dict[str, Provider], description="Accounts at providers, by name."
    )
    models: Mapping[ModelName, Model] = Field(
        default_factory=dict[str, Model],
        description="The names clients send; one `*` stands for any text.",
    )
    prices: Mapping[str, Some[Price]] = Field(
        default_factory=dict[str, tuple[Price, ...]],
        description="US dollars per million tokens, by `provider/model` (`local/*` for all of a "
        "provider): one row, or one per day. The bundled table is used where nothing is written.",
    )
    tenants: Mapping[Name, Tenant] = Field(
        default_factory=dict[str, Tenant], description="Who may call, by name."
    )
    defaults: Defaults = Field(
        default_factory=Defaults, description="What holds where a tenant says nothing."
    )
    stacks: Mapping[Name, Some[ChainEntry]] = Field(
        default_factory=dict[str, tuple[ChainEntry, ...]],
        description="Chain entries that are used in several places as `{stack: name}`.",
    )

    _sources: tuple[str, ...] = PrivateAttr(())
    _notes: tuple[str, ...] = PrivateAttr(())

    def chain_of(self, tenant: str, agent: str | None = None) -> tuple[ChainEntry, ...]:
        """Return the chain of a tenant or of its agent, stacks replaced, outermost first."""
        owner = self.tenants[tenant]
        chain = owner.agents[agent].chain if agent is not None else None
        chain = owner.chain if chain is None else chain
        return expand(self.defaults.chain if chain is None else chain, self.stacks)

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the files that were read; none when the built-in default is used."""
        return self._sources

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the operator should be told once, at the start."""
        return self._notes

    def secrets(self) -> tuple[str, ...]:
        """Return every text that must never leave: what a log or an answer is searched for."""
        return tuple(sorted(set(_secrets(self))))

    def with_origin(self, sources: tuple[str, ...], notes: tuple[str, ...]) -> "Tree":
        """Return this tree with the files it came from and the notes made on the way."""
        tree = self.model_copy()
        tree._sources, tree._notes = sources, notes  # noqa: SLF001  its own class
        return tree

    def __getstate__(self) -> dict[Any, Any]:
        raise TypeError("a tree holds secrets: load it again instead of pickling it")


def _secrets(value: object) -> Iterator[str]:
    """Yield the secrets inside a value; a header written in place is one if its name says so."""
    if isinstance(value, MaskedUrl):
        yield from filter(None, (value.password, value.reveal() if value.password else ""))
    elif isinstance(value, Secret):
        yield value.reveal()
    elif isinstance(value, Provider):
        yield from _secrets_of(value)
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in cast("Mapping[str, object]", value).values():
            yield from _secrets(each)
    elif isinstance(value, list | tuple):
        for each in cast("list[object]", value):
            yield from _secrets(each)


def _secrets_of(provider: Provider) -> Iterator[str]:
    """Yield credentials and secret headers; where a server of the operator's own stands is a secret too."""
    for name, header in provider.headers.items():
        if header.referred or _SECRET_HEADER.search(name):
            yield header.reveal()
    yield from (secret.reveal() for secret in provider.credentials)
    yield from _secrets(provider.proxy)
    if provider.base_url is not None:
        yield urlsplit(provider.base_url).netloc
