"""What the cache counts: hits, misses by reason, what was kept, and what it saved."""

from gateway.core.answer import Answer
from gateway.core.call import Call
from gateway.core.message import Text
from gateway.core.money import cost
from gateway.core.usage import Usage
from gateway.middleware.base import Build
from gateway.middleware.semantic_cache import bodies
from gateway.telemetry.cells import Counter

_BYTES_PER_TOKEN = 4
_MILLION = 1_000_000
REASONS = frozenset(
    {
        "after_tools",
        "asked",
        "cold",
        "expired",
        "explore",
        "judge",
        "negative",
        "refresh",
        "remote",
        "scope",
        "server_tool",
        "stale",
        "state",
        "temperature",
        "threshold",
        "too_long",
        "unavailable",
        "unreadable",
        "unscoped",
        "verifier",
        "volatile",
    }
)
"""Why a request was not answered from the cache; a guard's own names begin with `guard:`."""


class Savings:
    """The counters of one cache of a chain."""

    def __init__(self, build: Build) -> None:
        self._find = build.ports.metrics.counter
        self._tenant = build.tenant
        self._cells: dict[tuple[str, ...], Counter] = {}
        # What an alarm watches is there before it first counts.
        self._mismatches = self._find("gateway_cache_scope_mismatch_total")

    def _count(self, *name: str) -> Counter:
        """Return a counter; each is looked up once."""
        cell = self._cells.get(name)
        if cell is None:
            cell = self._cells[name] = self._find(*name)
        return cell

    def hit(self, call: Call, result: str, answer: Answer | None) -> None:
        """Count an answer that was served, and what it would have cost: tokens by its length."""
        self._count("gateway_cache_requests_total", self._tenant, result).inc()
        prompt = call.original.size // _BYTES_PER_TOKEN
        output = _length(answer) // _BYTES_PER_TOKEN if answer is not None else 0
        saved = self._count
        saved("gateway_cache_saved_tokens_total", self._tenant, "input").inc(prompt)
        saved("gateway_cache_saved_tokens_total", self._tenant, "output").inc(output)
        prices = call.model.prices(call.run.asked)
        if prices and prices[0] is not None:
            micro = cost(prices[0], Usage(prompt, output))
            saved("gateway_cache_saved_cost_usd_total", self._tenant).inc(micro / _MILLION)

    def missed(self, call: Call, result: str, reason: str) -> None:
        """Count a request that goes on to the model, and tell the caller."""
        call.run.cache = result
        self._count("gateway_cache_requests_total", self._tenant, result).inc()
        self._count("gateway_cache_misses_total", self._tenant, reason).inc()

    def kept(self) -> None:
        """Count an answer that was kept."""
        self._count("gateway_cache_stores_total", self._tenant, "kept").inc()

    def refused(self, reason: str) -> None:
        """Count an answer that was not kept."""
        self._count("gateway_cache_stores_total", self._tenant, reason).inc()

    def mismatched(self) -> None:
        """Count a record that is not what its key says: never to be seen."""
        self._mismatches.inc()

    def shadowed(self, name: str, tier: str) -> None:
        """Count what would have been served."""
        self._count("gateway_shadow_verdicts_total", name, tier).inc()


def _length(answer: Answer) -> int:
    return bodies.length(answer) + sum(
        len(part.text)
        for choice in answer.choices
        for part in choice.parts
        if isinstance(part, Text)
    )
