"""Which chains are refused and which are warned of, as data (R-1 to R-23): one row a rule."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gateway.config.chain import ChainEntry

REJECT, WARN, INFO = "reject", "warn", "info"


class Rule(NamedTuple):
    """One rule: `find` yields the entry at fault and what to write instead."""

    id: str
    code: str
    result: str
    find: Callable[[Sequence[ChainEntry]], Iterator[tuple[ChainEntry, str]]]


class Finding(NamedTuple):
    """What a rule says of one entry."""

    rule: Rule
    entry: ChainEntry
    message: str

    def __str__(self) -> str:
        return f"{self.message} ({self.rule.id} {self.rule.code})"


def check_order(chain: Sequence[ChainEntry]) -> list[Finding]:
    """Return what the rules say of a chain, outermost entry first."""
    active = [entry for entry in chain if entry.mode != "off"]
    return [Finding(rule, entry, message) for rule in RULES for entry, message in rule.find(active)]


def _inside(
    chain: Sequence[ChainEntry], outer: frozenset[str], inner: frozenset[str]
) -> Iterator[tuple[ChainEntry, ChainEntry]]:
    """Yield each inner entry with the nearest outer one around it."""
    around: ChainEntry | None = None
    for entry in chain:
        if around is not None and entry.kind in inner:
            yield entry, around
        if entry.kind in outer:
            around = entry


def _has(entry: ChainEntry, option: str) -> bool:
    value: Any = entry.options.get(option)
    return bool(value)


_CACHE = frozenset({"semantic_cache"})
_REPEATS = frozenset({"retry", "fallback", "hedge"})
_POLICY = frozenset({"guardrail", "budget", "limits", "semantic_cache"})


def _guardrail_outside_cache(chain: Sequence[ChainEntry]) -> Iterator[tuple[ChainEntry, str]]:
    for cache, guard in _inside(chain, frozenset({"guardrail"}), _CACHE):
        if _has(guard, "output"):
            yield (guard, f"{guard.id} is not asked what {cache.id} serves: write {cache.id} first")


def _budget_inside_repeats(chain: Sequence[ChainEntry]) -> Iterator[tuple[ChainEntry, str]]:
    for entry, around in _inside(
        chain, frozenset({"retry", "hedge"}), frozenset({"budget", "limits"})
    ):
        yield (
            entry,
            f"{entry.id} inside {around.id} would count every try as a call: write {entry.id} before it",
        )


def _cache_inside_repeats(chain: Sequence[ChainEntry]) -> Iterator[tuple[ChainEntry, str]]:
    for entry, around in _inside(chain, _REPEATS, _CACHE):
        yield (
            entry,
            f"{entry.id} inside {around.id} is asked again for every try: write it before {around.id}",
        )


def _policy_inside_fallback(chain: Sequence[ChainEntry]) -> Iterator[tuple[ChainEntry, str]]:
    for entry, around in _inside(chain, frozenset({"fallback"}), _POLICY):
        if not _has(around, "through_inner"):
            words = f"models of {around.id} are called without {entry.id} inside it"
            yield entry, f"{words}: write {entry.id} before it, or through_inner: true"


def _retry_and_fallback(chain: Sequence[ChainEntry]) -> Iterator[tuple[ChainEntry, str]]:
    for entry, around in _inside(chain, frozenset({"retry"}), frozenset({"fallback"})):
        yield entry, f"{around.id} repeats the whole cascade of {entry.id}"
    for entry, around in _inside(chain, frozenset({"fallback"}), frozenset({"retry"})):
        yield entry, f"{entry.id} repeats the first model alone; {around.id} calls its models once"


def _guardrail_outside_budget(chain: Sequence[ChainEntry]) -> Iterator[tuple[ChainEntry, str]]:
    for entry, around in _inside(chain, frozenset({"guardrail"}), frozenset({"budget"})):
        yield (
            around,
            f"checks of {around.id} that cost money are not held by {entry.id}: write {entry.id} before it",
        )


def _unscoped_pool(chain: Sequence[ChainEntry]) -> Iterator[tuple[ChainEntry, str]]:
    for entry in chain:
        if entry.kind not in _CACHE or "unscoped" in entry.options:
            continue
        if entry.options.get("scope", "session") == "session":
            words = f"{entry.id}: requests without a session share one pool of answers: have callers send"
            yield entry, f"{words} x-gateway-session, or write unscoped: pool (meant so) or bypass"


def _inert(chain: Sequence[ChainEntry]) -> Iterator[tuple[ChainEntry, str]]:
    for entry in chain:
        wanted = _CAPS.get(entry.kind)
        if wanted is not None and not any(_has(entry, option) for option in wanted):
            yield entry, f"{entry.id} does nothing: give it {' or '.join(wanted)}"


_CAPS: Mapping[str, tuple[str, ...]] = {
    "budget": ("limits", "max_tokens", "max_cost_usd", "contract"),
    "limits": ("requests", "tokens", "concurrent"),
    "guardrail": ("input", "output"),
}

RULES: tuple[Rule, ...] = (
    Rule("R-1", "order_cache_guardrail", REJECT, _guardrail_outside_cache),
    Rule("R-2", "order_budget_retry", REJECT, _budget_inside_repeats),
    Rule("R-3", "order_cache_retry", WARN, _cache_inside_repeats),
    Rule("R-4", "order_policy_in_fallback", REJECT, _policy_inside_fallback),
    Rule("R-13", "retry_and_fallback", INFO, _retry_and_fallback),
    Rule("R-14", "order_guardrail_budget", WARN, _guardrail_outside_budget),
    Rule("R-16", "inert", WARN, _inert),
    Rule("R-21", "unscoped_pool", WARN, _unscoped_pool),
)
"""The rules of a chain alone; those that need more (models, prices, tools) are found where these are known."""
