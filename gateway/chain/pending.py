"""What configurations may say before this version can do it: taken, and told at the start."""

from collections.abc import Iterator

from gateway.config.schema import Tree

PROTECTING = ("tool_approval",)
"""Kinds that are refused with these words where they are not there: nobody may believe in a guard that is not."""


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
