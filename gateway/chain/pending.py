"""Middleware that configurations may name before this version can run it.

Only kinds that make answers quicker or likelier are taken, and the start says that they do nothing yet. A kind that
protects somebody (budget, limits, guardrail, ...) is refused: nobody may believe in a guard that is not there.
"""

from collections.abc import Iterator

from gateway.config.schema import Tree

PENDING = ("retry", "fallback", "hedge", "semantic_cache")


def pending_notes(tree: Tree) -> Iterator[str]:
    """Yield what the operator must be told about each tenant's chain."""
    for name in sorted(tree.tenants):
        kinds = [layer.kind for layer in tree.chain_of(name) if layer.mode != "off"]
        if kinds:
            yield f"tenant {name}: not active in this version: {', '.join(kinds)}"
