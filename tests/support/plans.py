"""Small compiled plans for unit tests: accounts and targets without any network."""

from collections.abc import Sequence
from typing import Any, cast

from gateway.chain.compiled import nowhere
from gateway.chain.layers import Chains
from gateway.chain.plan import Account, Key, Model, Target
from gateway.core.errors import UpstreamError
from gateway.dialects.base import StreamRules
from gateway.dialects.registry import DIALECTS
from gateway.middleware.base import Proceed
from gateway.middleware.ports import Ports
from gateway.providers.registry import PROVIDERS
from gateway.telemetry.cells import Registry
from gateway.telemetry.metrics import Metrics
from gateway.upstream.client import Answer, Body, Headers
from gateway.upstream.health import KeyHealth, TargetHealth


class ClosedDoor:
    """A door that nothing may leave by."""

    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Answer:
        """Refuse."""
        raise UpstreamError("upstream_unavailable", phase="connect", sent=False)


def chains(trip: Proceed = nowhere) -> Chains:
    """Return what builds chains around a model call, with metrics of their own."""
    ports = Ports(Metrics(Registry.create(None), "test"), *(cast("Any", None),) * 3)
    return Chains(trip, ports)


def account(name: str = "up", kind: str = "openai", keys: int = 1) -> Account:
    """Return an account of a provider kind."""
    rules = StreamRules(hide_usage=False, done_required=True)
    return Account(
        name=name,
        row=PROVIDERS[kind],
        base_path="/v1",
        api_version="",
        keys=tuple(Key(ClosedDoor(), KeyHealth()) for _ in range(keys)),
        dialect=DIALECTS["openai_chat"],
        rules=rules,
        hidden_rules=rules,
        status_map={},
    )


def target(model: str = "m", weight: int = 1, name: str = "up", keys: int = 1) -> Target:
    """Return a target of its own account."""
    own = account(name, keys=keys)
    return Target(own, model, weight, {}, TargetHealth(), f"{name}/{model}".encode())


def model(name: str, targets: Sequence[Target], balance: str = "weighted") -> Model:
    """Return a model over targets."""
    prefix, _, suffix = name.partition("*")
    return Model(name, tuple(targets), balance, None, None, None, prefix, suffix)
