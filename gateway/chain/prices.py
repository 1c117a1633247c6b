"""What a target takes: the operator's own prices first, else the bundled table; nothing is ever fetched.

The table is loaded when the first price is looked up in it: that takes a tenth of a second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway.chain.facts import MAKERS, ModelFacts, known_of
from gateway.config.models import Price as Row
from gateway.config.patterns import fits
from gateway.config.schema import Tree
from gateway.core import clock
from gateway.core.money import FREE, Price, micro

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

_MOST_KEPT = 4096
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_TABLE = {
    "moonshot": "moonshotai",
    "xai": "x-ai",
    "gemini": "google",
    "gemini_compatible": "google",
    "vertex": "google",
    "bedrock": "aws",
    "cohere_compatible": "cohere",
    "voyage": "voyageai",
    **{
        kind: kind
        for kind in (
            "anthropic", "azure", "cerebras", "cohere", "deepseek", "fireworks", "groq", "mistral", "openai",
            "openrouter", "perplexity", "together", "zai",
        )
    },
}  # fmt: skip
"""Kinds of providers and their names in the table."""
_BY_ADDRESS = frozenset({"openai_compatible"})
"""Kinds that may be any provider: the table knows some by their address."""


class _Quote(NamedTuple):
    """A price, and the second of the epoch until which it holds."""

    price: Price | None
    until: float


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices of one configured provider; each model's is looked up once, and again when it may have changed."""

    name: str
    kind: str
    base_url: str
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict[str, Sequence[Row]])
    _known: dict[str, _Quote] = field(default_factory=dict[str, _Quote])

    def price(self, served: str) -> Price | None:
        """Return what a model of this provider takes now; None when nobody knows."""
        quote = self._known.get(served)
        if quote is not None and clock.wall() < quote.until:
            return quote.price
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        quote = self._known[served] = self._look_up(served, clock.now())
        return quote.price

    def known(self, served: str) -> ModelFacts:
        """Return what the small table knows of a model, which takes no time."""
        return known_of(self.kind, self.base_url, served)

    def facts(self, served: str) -> ModelFacts:
        """Return what both tables know of a model: where others host it, their own number of tokens counts."""
        known = self.known(served)
        info = _find(self.kind, self.base_url, served)
        if info is None:
            return known
        bundled = ModelFacts(info.context_window, deprecated=bool(info.deprecated))
        return bundled.under(known) if self.kind in MAKERS else known.under(bundled)

    def _look_up(self, served: str, now: datetime) -> _Quote:
        midnight = datetime.combine(now.date() + _DAY, time(), UTC).timestamp()
        row = self._own_row(served, now)
        if row is not None:
            return _Quote(_from_row(row), midnight)
        if self.kind == "echo":
            return _Quote(FREE, midnight)
        info = _find(self.kind, self.base_url, served)
        if info is None:
            return _Quote(None, midnight)
        hour = now.replace(minute=0, second=0, microsecond=0) + _HOUR
        return _Quote(_from_table(info.get_prices(now)), hour.timestamp())

    def _own_row(self, served: str, now: datetime) -> Row | None:
        """Return the operator's row in force: of this very model, else of the longest pattern that fits."""
        name = f"{self.name}/{served}"
        rows = self.rows.get(name)
        if rows is None:
            patterns = [each for each in self.rows if "*" in each and fits(each, name)]
            rows = self.rows[max(patterns, key=len)] if patterns else ()
        today = now.date()
        begun = [row for row in rows if row.valid_from is None or row.valid_from <= today]
        return max(
            begun, key=lambda row: (row.valid_from is not None, row.valid_from), default=None
        )


def tariffs_of(tree: Tree) -> dict[str, Tariff]:
    """Return the prices of every provider of a configuration, by its name."""
    return {
        name: Tariff(name, entry.kind, entry.base_url or "", tree.prices)
        for name, entry in tree.providers.items()
    }


NO_TARIFF = Tariff("", "", "")
"""Of targets that were made without one: no price is known."""


def warm() -> None:
    """Load the table, so that no request waits for it; may be called in a thread."""
    _find("openai", "", "")


def uses_table(kinds: Sequence[str]) -> bool:
    """Tell whether the table knows any of these kinds of providers."""
    return any(kind in _TABLE or kind in _BY_ADDRESS for kind in kinds)


def _from_row(row: Row) -> Price:
    flat = _rates(row)
    tiers = sorted(row.long_context, key=lambda tier: tier.above_tokens)
    return flat._replace(tiers=tuple(_rates(tier, tier.above_tokens) for tier in tiers))


def _rates(row: Any, above: int = 0) -> Price:  # noqa: ANN401  a row or a tier: the same fields
    return Price(
        input=micro(row.input),
        output=micro(row.output),
        cache_read=None if row.cache_read is None else micro(row.cache_read),
        cache_write=None if row.cache_write is None else micro(row.cache_write),
        reasoning=None if row.reasoning is None else micro(row.reasoning),
        above=above,
    )


def _find(kind: str, base_url: str, served: str) -> "ModelInfo | None":
    provider_id = _TABLE.get(kind)
    if provider_id is None and kind not in _BY_ADDRESS:
        return None
    from genai_prices.data_snapshot import get_snapshot  # ~100 ms, and 30 MB

    snapshot = get_snapshot()
    try:
        provider: Provider = snapshot.find_provider(None, provider_id, base_url or None)
    except LookupError:
        return None
    # Not the table's own search: that one keeps every name a client ever sent.
    return provider.find_model(served.lower(), all_providers=snapshot.providers)


def _from_table(prices: "ModelPrice") -> Price | None:
    """Return a price of the table; None when it is not by tokens."""
    starts = {tier.start for value in vars(prices).values() for tier in getattr(value, "tiers", ())}
    flat = _at(prices, None)
    if flat is None:
        return None
    tiers = [_at(prices, start) for start in sorted(starts)]
    return flat._replace(tiers=tuple(tier for tier in tiers if tier is not None))


# Tokens of images and videos are not told apart in what is read of an answer: the dearest counts for all.
_INPUT = ("input_mtok", "input_image_mtok", "input_video_mtok")
_OUTPUT = ("output_mtok", "output_image_mtok", "output_video_mtok")


def _at(prices: "ModelPrice", start: int | None) -> Price | None:
    def rate(*names: str) -> int | None:
        found = [
            _rate(value, start) for name in names if (value := getattr(prices, name)) is not None
        ]
        return max(map(micro, found), default=None)

    prompt, answer = rate(*_INPUT), rate(*_OUTPUT)
    if prompt is None:
        return None
    calls = prices.requests_kcount
    return Price(
        input=prompt,
        output=answer or 0,
        cache_read=rate("cache_read_mtok"),
        cache_write=rate("cache_write_mtok", "cache_write_1h_mtok"),
        reasoning=rate("output_reasoning_mtok"),
        audio_input=rate("input_audio_mtok"),
        audio_output=rate("output_audio_mtok"),
        call=0 if calls is None else micro(_rate(calls, start) / 1000),
        above=start or 0,
    )


def _rate(value: Any, start: int | None) -> Decimal:  # noqa: ANN401  a plain or a tiered price
    """Return the price of calls with more prompt tokens than `start`."""
    found: Decimal = getattr(value, "base", value)
    for tier in getattr(value, "tiers", ()):
        if start is not None and tier.start <= start:
            found = tier.price
    return found
