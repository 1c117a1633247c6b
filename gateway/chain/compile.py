"""From a checked configuration to a snapshot: every account, target, model and caller, built once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import cast
from urllib.parse import urlsplit

from gateway.chain.access import grant, narrow
from gateway.chain.endings import said_of
from gateway.chain.guarding import breaker_rules, host_of, places_rules
from gateway.chain.layers import Chains
from gateway.chain.plan import Account, Door, Key, Model, Principal, Target
from gateway.chain.prices import Tariff
from gateway.chain.signing import open_door
from gateway.chain.snapshot import Snapshot
from gateway.config import models as config_models
from gateway.config import providers as config_providers
from gateway.config.loader import Tree
from gateway.config.tenants import Tenant
from gateway.core import codec
from gateway.core.ports import StoredKey
from gateway.core.status import Status
from gateway.dialects.base import Redactor, StreamRules
from gateway.dialects.registry import TARGETS
from gateway.providers.base import Provider
from gateway.providers.registry import PROVIDERS
from gateway.upstream.client import Client, Endpoint, EndpointSpec, Timeouts
from gateway.upstream.health import HealthBook

LocalDoor = Callable[[str], Door]
"""Returns the door of a provider that is built into the gateway, by its kind."""


class Compiler:
    """Builds snapshots; what outlives one (pools, health) is found again by identity."""

    def __init__(
        self,
        client: Client,
        health: HealthBook,
        local_door: LocalDoor,
        redactor: Redactor,
        chains: Chains,
    ) -> None:
        self._client = client
        self._health = health
        self._local_door = local_door
        self._redactor = redactor
        self._chains = chains

    def account(self, name: str, entry: config_providers.Provider, tree: Tree) -> Account:
        """Build one account with its prices; raises ValueError or OSError for settings that cannot be used."""
        tariff = Tariff(name, entry.kind, entry.base_url or "", tree.prices)
        return replace(self._account(name, entry), tariff=tariff)

    def compile(self, tree: Tree, stored: Iterable[StoredKey], generation: int) -> Snapshot:
        """Build the snapshot of a checked tree and the keys of the key store; raises ConfigError."""
        accounts = {name: self.account(name, entry, tree) for name, entry in tree.providers.items()}
        models = {name: self._model(name, entry, accounts) for name, entry in tree.models.items()}
        rows: dict[str, list[StoredKey]] = {}
        for row in stored:
            if not row.revoked:
                rows.setdefault(row.tenant, []).append(row)
        principals: dict[bytes, Principal] = {}
        builder = self._chains.builder(tree, models)
        for name, tenant in tree.tenants.items():
            chain = builder.build(name, tree.chain_of(name))
            base = grant(name, tenant.models, models, self._own(tenant, accounts), chain)
            opened = {
                each.name: each
                for each in (*base.models.values(), *(p.model for p in base.patterns))
            }
            base = replace(base, uses=builder.uses(name, chain, tenant.use, opened))
            for key in tenant.keys:
                expires = key.expires.timestamp() if key.expires else None
                digest = bytes.fromhex(key.digest.removeprefix("sha256:"))
                principals[digest] = narrow(base, key.id, key.models, expires)
            for row in rows.get(name, ()):
                digest = bytes.fromhex(row.hash.removeprefix("sha256:"))
                principals.setdefault(digest, narrow(base, row.id, row.models, row.expires))
        builder.finish()
        return Snapshot(generation, principals, tuple(_endpoints(accounts.values())))

    def _account(self, name: str, entry: config_providers.Provider) -> Account:
        row = PROVIDERS[entry.kind]
        if entry.dialect is not None:
            row = row.speaking(entry.dialect)
        base_url = entry.base_url or row.address(entry.region, entry.project)
        secrets = [secret.reveal() for secret in entry.credentials] or [""]
        rules = StreamRules(
            hide_usage=False,
            done_required=row.quirks.done_required,
            max_event_bytes=entry.max_event_bytes,
            secrets=self._redactor,
            reasoning_outside=row.quirks.reasoning == "outside",
            content_lists=row.quirks.content_lists,
        )
        guard, bounds = breaker_rules(entry.breaker), places_rules(entry.concurrency)
        host = host_of(entry, base_url)
        return Account(
            name=name,
            row=row,
            base_path=urlsplit(base_url).path.rstrip("/"),
            api_version=entry.api_version or "",
            keys=tuple(self._key(name, entry, row, base_url, secret) for secret in secrets),
            dialect=TARGETS[row.dialect or "openai_chat"],
            rules=rules,
            fetches=entry.fetch_pictures,
            hidden_rules=replace(rules, hide_usage=True),
            status_map={int(http): Status[word] for http, word in entry.status_map.items()},
            health_of=partial(
                self._health.target, name, base_url=base_url, rules=guard, bounds=bounds, host=host
            ),
            names=self._health.names(name, base_url, rules=guard, bounds=bounds, host=host),
        )

    def _key(
        self, name: str, entry: config_providers.Provider, row: Provider, base_url: str, secret: str
    ) -> Key:
        group = entry.quota_group or name
        health = self._health.key(
            group,
            sha256(secret.encode()).digest(),
            rules=breaker_rules(entry.breaker),
            is_shared=entry.quota_group is not None,
        )
        if row.is_local:
            return Key(self._local_door(row.kind), health)
        spec = EndpointSpec(
            base_url=base_url,
            headers=_static_headers(entry, row, secret),
            timeouts=Timeouts(
                connect_s=entry.timeout.connect_s,
                pool_s=entry.timeout.pool_s,
                first_byte_s=entry.timeout.first_byte_s,
                idle_s=entry.timeout.idle_s,
            ),
            max_connections=entry.max_connections,
            max_waiting=entry.max_waiting,
            verify_tls=entry.verify_tls,
            ca_file=entry.ca_file,
            allow_private=_allows_private(entry, row),
            transport=entry.transport,
            proxy=entry.proxy.reveal() if entry.proxy else None,
            http2=entry.http2,
        )
        return Key(open_door(self._client, spec, entry, row), health)

    def _model(
        self, name: str, entry: config_models.Model, accounts: Mapping[str, Account]
    ) -> Model:
        prefix, _, suffix = name.partition("*")
        return Model(
            name=name,
            targets=tuple(self.target(target, accounts) for target in entry.targets),
            balance=entry.balance,
            context_tokens=entry.limits.context_tokens,
            max_output_tokens=entry.limits.max_output_tokens,
            supports=None if entry.supports is None else frozenset(entry.supports),
            prefix=prefix,
            suffix=suffix,
            said=said_of(entry),
        )

    def target(self, entry: config_models.Target, accounts: Mapping[str, Account]) -> Target:
        """Build one target of a model."""
        return Target(
            account=accounts[entry.provider],
            model=entry.model,
            weight=entry.weight,
            params={field: codec.raw(value) for field, value in entry.params.items()},
            health=accounts[entry.provider].health_of(entry.model),
            label=f"{entry.provider}/{entry.model}".encode("ascii", "replace"),
        )

    def _own(self, tenant: Tenant, accounts: Mapping[str, Account]) -> dict[str, Target]:
        """Return a tenant's own accounts as targets, each with its first credential alone: ids belong to it."""
        own: dict[str, Target] = {}
        for name in tenant.providers:
            account = accounts[name].with_first_key()
            own[name] = Target(account, "*", 1, {}, account.health_of("*"), name.encode())
        return own


def _endpoints(accounts: Iterable[Account]) -> Iterator[Endpoint]:
    for account in accounts:
        if not account.row.is_local:
            yield from (cast("Endpoint", key.door) for key in account.keys)


def _allows_private(entry: config_providers.Provider, row: Provider) -> bool:
    """Whether a name may stand for a private address: not when the name is a public provider's own."""
    if entry.allow_private is not None:
        return entry.allow_private
    return entry.base_url is not None or not row.needs_key


def _static_headers(
    entry: config_providers.Provider, row: Provider, secret: str
) -> tuple[tuple[bytes, bytes], ...]:
    headers = list(row.auth_headers(secret))
    if entry.organization:
        headers.append((b"openai-organization", entry.organization.encode()))
    if entry.project and row.dialect == "openai_chat":
        headers.append((b"openai-project", entry.project.encode()))
    for name, value in entry.headers.items():
        headers.append((name.lower().encode(), value.reveal().encode()))
    return tuple(headers)
