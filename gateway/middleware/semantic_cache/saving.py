"""What the cache counts: hits, misses by reason, what was kept, and what it saved."""

from gateway.core.answer import Answer
from gateway.core.call import Call, ModelRef
from gateway.core.money import Price, cost
from gateway.core.usage import Usage
from gateway.middleware.base import Build
from gateway.middleware.semantic_cache import bodies, stored
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
        "judge_unavailable",
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
        self._hits: dict[str, tuple[Counter, Counter, Counter, Counter]] = {}
        # Of the last hit: a model of a loaded configuration never changes its prices.
        self._priced_model: ModelRef | None = None
        self._priced_name = ""
        self._price: Price | None = None
        # What an alarm watches is there before it first counts.
        self._mismatches = self._find("gateway_cache_scope_mismatch_total")

    def _count(self, *name: str) -> Counter:
        """Return a counter; each is looked up once."""
        cell = self._cells.get(name)
        if cell is None:
            cell = self._cells[name] = self._find(*name)
        return cell

    def hit(self, call: Call, result: str, size: int, length: int) -> None:
        """Count an answer that was served, and what it would have cost.

        Tokens are counted by the bytes of the request and the characters of the answer.
        """
        served, asked, said, money = self._hits.get(result) or self._hit_cells(result)
        served.inc()
        prompt, output = size // _BYTES_PER_TOKEN, length // _BYTES_PER_TOKEN
        asked.inc(prompt)
        said.inc(output)
        model, name = call.model, call.run.asked
        if model is not self._priced_model or name != self._priced_name:
            self._priced_model, self._priced_name = model, name
            self._price = next(iter(model.prices(name)), None)
        if self._price is not None:
            money.inc(cost(self._price, Usage(prompt, output)) / _MILLION)

    def _hit_cells(self, result: str) -> tuple[Counter, Counter, Counter, Counter]:
        tenant, tokens = self._tenant, "gateway_cache_saved_tokens_total"
        cells = (
            self._find("gateway_cache_requests_total", tenant, result),
            self._find(tokens, tenant, "input"),
            self._find(tokens, tenant, "output"),
            self._find("gateway_cache_saved_cost_usd_total", tenant),
        )
        self._hits[result] = cells
        return cells

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


def length_of(answer: Answer) -> int:
    """Return how many characters of text a kept answer holds."""
    return bodies.length(answer) + stored.text_length(answer)
