"""What a request finds ready: models, targets and credentials, checked and compiled at load."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gateway.chain.compiled import BARE, Chain
from gateway.chain.facts import NO_FACTS, ModelFacts, together
from gateway.chain.prices import NO_TARIFF, Tariff
from gateway.chain.uses import Uses
from gateway.core import codec
from gateway.core.money import Price
from gateway.core.status import Status
from gateway.dialects.base import Speaks, StreamRules
from gateway.dialects.defaults import split_params
from gateway.providers.base import Provider
from gateway.upstream.client import Answer, Body, Headers
from gateway.upstream.health import KeyHealth, TargetHealth
from gateway.upstream.names import Names

_NOTHING = codec.Raw(b"null")


class Door(Protocol):
    """Where a request leaves: a pooled endpoint, or a provider built into the gateway."""

    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Answer:
        """Send one request; `gateway.upstream.client` says what each part means."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """One credential of a provider: where it may be sent, and whether it rests."""

    door: Door
    health: KeyHealth


@dataclass(frozen=True, slots=True)
class Account:
    """A configured provider: its row, its credentials, its limits. `name` is the operator's name for it.

    `dialect` reads its errors. `fetches`: pictures by address are got for it. `health_of` returns what is known of
    one of its configured models, `names` of those that callers name.
    """

    name: str
    row: Provider
    base_path: str
    api_version: str
    keys: tuple[Key, ...]
    dialect: Speaks
    rules: StreamRules
    hidden_rules: StreamRules
    status_map: Mapping[int, Status]
    tariff: Tariff = NO_TARIFF
    fetches: bool = False
    health_of: Callable[[str], TargetHealth] = TargetHealth
    names: Names = field(default_factory=Names)

    def with_first_key(self) -> "Account":
        """Return this account with its first credential alone."""
        return replace(self, keys=self.keys[:1])


@dataclass(frozen=True, slots=True)
class Target:
    """A provider's model that can serve a configured model. `model` may hold one star (wildcards).

    `params` are defaults of this target; where requests to it are translated, `common` are those that every format
    has, `own` those that go into its body as they are. `known` is what tables say of its model.
    """

    account: Account
    model: str
    weight: int
    params: codec.Fields
    health: TargetHealth
    label: bytes
    common: Mapping[str, Any] = field(init=False, repr=False)
    own: codec.Fields = field(init=False, repr=False)
    known: ModelFacts = field(init=False, repr=False, default=NO_FACTS)

    def __post_init__(self) -> None:
        """Tell defaults in common names from those in the target's own, and look its model up."""
        if "*" not in self.model:
            object.__setattr__(self, "known", self.account.tariff.known(self.model))
        common, own = split_params(self.params)
        object.__setattr__(self, "common", common)
        object.__setattr__(self, "own", own)

    def served(self, model: "Model", asked: str) -> str:
        """Return the name the provider knows, of what a caller asked for.

        A star alone stands for what the caller asked for, less the part up to the last `/` before the pattern's
        star; inside a text it stands for what the pattern's star stood for.
        """
        if "*" not in self.model:
            return self.model
        if self.model == "*":
            return asked[model.prefix.rfind("/") + 1 :]
        return self.model.replace("*", asked[len(model.prefix) : len(asked) - len(model.suffix)])

    def named(self, model: "Model", asked: str) -> "Target":
        """Return this target with what is known of the one name that it serves to a caller."""
        if "*" not in self.model:
            return self
        health = self.account.names.of(self.health, self.served(model, asked))
        return Target(self.account, self.model, self.weight, self.params, health, self.label)

    def at(self, model: "Model", name: str) -> "Target":
        """Return this target for one name that the configuration gives."""
        if "*" not in self.model:
            return self
        served = self.served(model, name)
        return replace(self, model=served, health=self.account.health_of(served))


@dataclass(frozen=True, slots=True)
class Model:
    """A name that clients send, or a pattern with one star, and the targets behind it.

    `name` is what metrics and logs show. Limits are tokens, None where unknown; so is `supports`. `prefix` and
    `suffix` stand around a pattern's star. `is_wide`: a target of it serves names that callers choose. `is_spread`:
    it is served from several accounts. `is_uneven`: its targets may take different things. `said`: what the
    configuration says of it for those who list models.
    """

    name: str
    targets: tuple[Target, ...]
    balance: str
    context_tokens: int | None
    max_output_tokens: int | None
    supports: frozenset[str] | None
    prefix: str = ""
    suffix: str = ""
    said: ModelFacts = NO_FACTS
    is_wide: bool = field(init=False, default=False)
    is_spread: bool = field(init=False, default=False)
    is_uneven: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Work out what every call would ask for."""
        object.__setattr__(self, "is_wide", any("*" in each.model for each in self.targets))
        accounts = {each.account.name for each in self.targets}
        object.__setattr__(self, "is_spread", len(accounts) > 1)
        object.__setattr__(self, "is_uneven", len({each.known[:3] for each in self.targets}) > 1)

    @property
    def has_facts(self) -> bool:
        """Whether anything is known that could rule a request out."""
        return (self.supports, self.context_tokens, self.max_output_tokens) != (None, None, None)

    def at(self, name: str) -> "Model":
        """Return this model, a pattern, for one name that fits it."""
        named = tuple(target.at(self, name) for target in self.targets)
        return replace(self, name=name, targets=named, prefix="", suffix="")

    def named(self, asked: str) -> "Model":
        """Return this model with what is known of each target under the name that a caller asked for."""
        return Model(
            self.name,
            tuple([target.named(self, asked) for target in self.targets]),
            self.balance,
            self.context_tokens,
            self.max_output_tokens,
            self.supports,
            self.prefix,
            self.suffix,
            self.said,
        )

    def facts(self, asked: str, *, quick: bool = False) -> ModelFacts:
        """Return what is known of this model by the name that a caller gives it; `quick`: what is found at once."""
        known: list[ModelFacts] = []
        for each in self.targets:
            tariff, served = each.account.tariff, each.served(self, asked)
            known.append(tariff.known(served) if quick else tariff.facts(served))
        return together(known).under(self.said)

    @property
    def usual_output_tokens(self) -> int | None:
        """Return the answer at most where a caller says nothing; None when a target does not say."""
        found = [_limit_of(target.params) for target in self.targets]
        return None if not found or None in found else max(each or 0 for each in found)

    def prices(self, asked: str) -> tuple[Price | None, ...]:
        """Return the price at each target; see `core.call.ModelRef`."""
        if len(self.targets) == 1:
            only = self.targets[0]
            return (only.account.tariff.price(only.served(self, asked)),)
        return tuple(each.account.tariff.price(each.served(self, asked)) for each in self.targets)


def _limit_of(params: codec.Fields) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = codec.value_of(params[name]) if name in params else None
        if isinstance(value, int) and value > 0:
            return value
    return None


@dataclass(frozen=True, slots=True)
class Pattern:
    """Names that begin and end so; the star between stands for at least one character."""

    prefix: str
    suffix: str
    model: Model

    def fits(self, name: str) -> bool:
        """Tell whether a name fits."""
        return (
            len(name) > len(self.prefix) + len(self.suffix)
            and name.startswith(self.prefix)
            and name.endswith(self.suffix)
        )


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: tenant, key id, and what this key may call. `expires` is in seconds since the epoch.

    `accounts` are the providers whose files, batches and model lists belong to this tenant alone. `chain` is what
    every call passes through, `uses` that with what a request brings.
    """

    tenant: str
    key_id: str
    models: Mapping[str, Model]
    patterns: tuple[Pattern, ...]
    accounts: Mapping[str, Target]
    expires: float | None
    chain: Chain = BARE
    uses: Uses | None = None

    def may_call(self, name: str) -> bool:
        """Tell whether this key opens a model of this name."""
        return name in self.models or any(pattern.fits(name) for pattern in self.patterns)

    def chain_with(self, wish: codec.Raw) -> Chain:
        """Return the chain, with what the request brings (raw JSON); raises InputError or AuthError."""
        if self.uses is None or wish == _NOTHING:
            return self.chain
        return self.uses.chain(bytes(wish))
