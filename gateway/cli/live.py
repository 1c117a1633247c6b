"""`gateway check --live`: one small call to each configured provider, and in words what came of it."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from gateway.chain.compile import Compiler
from gateway.chain.compiled import nowhere
from gateway.chain.layers import Chains
from gateway.chain.local import local_door
from gateway.chain.plan import Account, Model, Target
from gateway.config.schema import Tree
from gateway.core import clock, codec
from gateway.core.call import Call, Run
from gateway.core.errors import GatewayError
from gateway.core.ids import new_request_id
from gateway.dialects.registry import DIALECTS
from gateway.engine.outgoing import JsonOriginal
from gateway.engine.refusal import Refusal
from gateway.engine.run import Engine
from gateway.lifecycle.inflight import InFlight
from gateway.middleware.ports import Ports
from gateway.stores.opaque import MemoryOpaque
from gateway.telemetry.cells import Registry
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.redact import Redactor
from gateway.upstream.client import Client
from gateway.upstream.health import HealthBook
from gateway.version import VERSION

_WAIT_S = 30.0
_TOKENS = 16
_ASK: Mapping[str, tuple[bytes, Mapping[str, Any]]] = {
    "chat": (
        b"/chat/completions",
        {"messages": [{"role": "user", "content": "Say ok."}], "max_tokens": _TOKENS},
    ),
    "embeddings": (b"/embeddings", {"input": "ok"}),
    "rerank": (b"/rerank", {"query": "ok", "documents": ["ok"]}),
}
"""Endpoints that are tried, in this order, and what is asked there."""


def check_live(tree: Tree) -> bool:
    """Call each provider once and print a line for each; True when all of them answered."""
    return asyncio.run(_check_all(tree))


async def _check_all(tree: Tree) -> bool:
    registry = Registry.create(None)
    inflight = InFlight()
    client = Client(spawn=inflight.spawn)
    redactor = Redactor(tree.secrets())
    try:
        metrics = Metrics(registry, VERSION)
        engine = Engine(metrics, redactor, MemoryOpaque())
        ports = Ports(metrics, *(cast("Any", None),) * 3)
        health = HealthBook(metrics.target_health)
        compiler = Compiler(client, health, local_door, redactor, Chains(nowhere, ports))
        said = await asyncio.gather(
            *(_check(engine, compiler, tree, name) for name in tree.providers)
        )
        await inflight.stop_background()
    finally:
        await client.aclose()
        registry.close()
    for name, words, _ in said:
        print(f"{name}: {words}")
    return all(fine for _, _, fine in said)


async def _check(
    engine: Engine, compiler: Compiler, tree: Tree, name: str
) -> tuple[str, str, bool]:
    """Return the provider's name, what came of a call in words, and whether it was fine."""
    try:
        account = compiler.account(name, tree.providers[name], tree)
    except (ValueError, OSError) as error:
        return name, f"cannot be used: {error}", False
    target = _target_of(compiler, tree, account)
    if target is None:
        return name, "not called: no model of the configuration names it", True
    began, words = clock.monotonic(), ""
    for endpoint in _ASK:
        if endpoint not in account.row.offers:
            continue
        try:
            await engine.trip(_call(target, endpoint))
        except GatewayError as error:
            words = words or _words(error)
            continue
        took_ms = (clock.monotonic() - began) * 1000
        return name, f"{target.model} answered {endpoint} in {took_ms:.0f} ms", True
    return name, f"{target.model} failed: {words or 'it offers nothing to call'}", False


def _target_of(compiler: Compiler, tree: Tree, account: Account) -> Target | None:
    targets = [each for model in tree.models.values() for each in model.targets]
    own = [each for each in targets if each.provider == account.name and "*" not in each.model]
    return compiler.target(own[0], {account.name: account}) if own else None


def _call(target: Target, endpoint: str) -> Call:
    path, body = _ASK[endpoint]
    now = clock.monotonic()
    run = Run(new_request_id(), endpoint, now, now + _WAIT_S)
    run.dialect = DIALECTS["openai_chat"]
    run.asked = run.model = target.model
    run.path = "/v1" + path.decode()
    fields = {name: codec.raw(value) for name, value in {"model": target.model, **body}.items()}
    model = Model(target.model, (target,), "weighted", None, None, None)
    return Call(run, model, JsonOriginal(path, fields, watched=endpoint != "rerank"))


def _words(error: GatewayError) -> str:
    """Return why a call failed: for the operator, with what the provider said and the status it said it with."""
    if isinstance(error, Refusal):
        said = error.said.message or error.message
        return f"HTTP {error.upstream_http}: {said}"
    return f"{error.message.removesuffix('.')}: {error.detail}" if error.detail else error.message
