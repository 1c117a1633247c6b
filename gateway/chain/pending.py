"""What configurations may say before this version can do it: taken, and told at the start.

Only middleware that makes answers quicker or likelier is taken. A kind that protects somebody (budget, limits,
guardrail, ...) is refused: nobody may believe in a guard that is not there.
"""

from collections.abc import Iterator

from gateway.config.schema import Tree
from gateway.middleware.registry import KINDS

PENDING = ("semantic_cache",)
PROTECTING = ("guardrail", "tool_approval")


def pending_notes(tree: Tree) -> Iterator[str]:
    """Yield what the operator must be told about settings and each tenant's chain."""
    yield from setting_notes(tree)
    for name in sorted(tree.tenants):
        kinds = [
            layer.kind
            for layer in tree.chain_of(name)
            if layer.mode != "off" and layer.kind in PENDING and layer.kind not in KINDS
        ]
        if kinds:
            yield f"tenant {name}: not active in this version: {', '.join(kinds)}"


def setting_notes(tree: Tree) -> Iterator[str]:
    """Yield one line for each setting that was written and has no effect."""
    if tree.telemetry.otlp_endpoint is not None:
        yield "telemetry.otlp_endpoint: no traces are sent in this version"
    if tree.telemetry.log_bodies:
        yield "telemetry.log_bodies: in this version only what exceptions say is logged, no bodies"
    for name, tenant in sorted(tree.tenants.items()):
        if tenant.agents:
            agents = ", ".join(sorted(tenant.agents))
            yield f"tenants.{name}.agents: cannot be called in this version: {agents}"
