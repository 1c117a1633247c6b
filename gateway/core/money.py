"""Money: whole micro-dollars, and the only arithmetic on it.

A price is micro-dollars per million tokens, so that a cost is rounded once, upwards, at the end of each call.
"""

from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import NamedTuple

from gateway.core.usage import Usage

_MILLION = 1_000_000


class Price(NamedTuple):
    """What a model costs, in micro-dollars per million tokens; None: as `input`, or as `output`.

    `call` is micro-dollars for each call. `tiers` hold the prices of calls with more prompt tokens than `above`,
    lowest first; such a price counts for the whole call.
    """

    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    audio_input: int | None = None
    audio_output: int | None = None
    call: int = 0
    above: int = 0
    tiers: "tuple[Price, ...]" = ()


FREE = Price(0, 0)
"""What the gateway itself answers."""


def cost(price: Price, usage: Usage) -> int:
    """Return the micro-dollars of one call, rounded up once (K16).

    Parts that a provider names are taken out of their total, each token counted once; a part never exceeds it.
    """
    prompt = usage.input or 0
    answer = usage.output or 0
    if price.tiers:
        price = _tier(price, prompt)
    total = prompt * price.input + answer * price.output
    if usage.cached or usage.cache_write or usage.audio_input:
        total += _prompt_parts(price, usage, prompt)
    if usage.reasoning or usage.audio_output:
        total += _answer_parts(price, usage, answer)
    return price.call - (-total // _MILLION)


def worst(price: Price, input_tokens: int, output_tokens: int) -> int:
    """Return micro-dollars that no call within these bounds can exceed: by the dearest part of the dearest tier."""
    prompt, answer, call = _dearest(price)
    for tier in price.tiers:
        if tier.above >= input_tokens:
            break
        more = _dearest(tier)
        prompt, answer, call = max(prompt, more[0]), max(answer, more[1]), max(call, more[2])
    return call - (-(input_tokens * prompt + output_tokens * answer) // _MILLION)


def micro(usd: Decimal) -> int:
    """Return dollars as micro-dollars, rounded up; raises ValueError for what is no sum of money."""
    if not usd.is_finite() or usd < 0:
        message = f"{usd} is no sum of money"
        raise ValueError(message)
    return int((usd * _MILLION).to_integral_value(ROUND_CEILING))


@lru_cache(4096)
def dollars(cost_micro: int) -> str:
    """Return micro-dollars as a decimal number of dollars, exactly."""
    whole, rest = divmod(abs(cost_micro), _MILLION)
    sign = "-" if cost_micro < 0 else ""
    return f"{sign}{whole}.{rest:06d}".rstrip("0").rstrip(".")


def _tier(price: Price, prompt: int) -> Price:
    """Return the price that counts for a prompt of so many tokens."""
    found = price
    for tier in price.tiers:
        if prompt <= tier.above:
            break
        found = tier
    return found


def _prompt_parts(price: Price, usage: Usage, prompt: int) -> int:
    """Return what the named parts of a prompt cost beyond its plain price; may be negative."""
    left = prompt
    more = 0
    for count, rate in (
        (usage.cached, price.cache_read),
        (usage.cache_write, price.cache_write),
        (usage.audio_input, price.audio_input),
    ):
        part = min(count or 0, left)
        left -= part
        if rate is not None:
            more += part * (rate - price.input)
    return more


def _answer_parts(price: Price, usage: Usage, answer: int) -> int:
    left = answer
    more = 0
    for count, rate in (
        (usage.reasoning, price.reasoning),
        (usage.audio_output, price.audio_output),
    ):
        part = min(count or 0, left)
        left -= part
        if rate is not None:
            more += part * (rate - price.output)
    return more


@lru_cache(4096)
def _dearest(price: Price) -> tuple[int, int, int]:
    prompt = max(price.input, price.cache_read or 0, price.cache_write or 0, price.audio_input or 0)
    return prompt, max(price.output, price.reasoning or 0, price.audio_output or 0), price.call
