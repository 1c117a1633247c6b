"""Which target is tried first, and which ones after it."""

import random
from collections.abc import Callable, Sequence
from hashlib import blake2b

from gateway.chain.plan import Key, Model, Target
from gateway.core import clock
from gateway.core.call import Run

_random = random.Random()  # noqa: S311  spreads load; nothing secret depends on it


def order_targets(model: Model, run: Run) -> tuple[Target, ...]:
    """Return a model's targets in the order in which they are to be tried."""
    targets = model.targets
    if len(targets) == 1:
        return targets
    first = _BALANCE[model.balance](targets, run)
    return (first, *sorted((t for t in targets if t is not first), key=_load))


def usable_keys(target: Target) -> Sequence[Key]:
    """Return a target's credentials in turn, without those that rest; one of them at least."""
    keys = target.account.keys
    if len(keys) == 1:
        return keys
    now = clock.monotonic()
    target.health.turn += 1
    turn = target.health.turn % len(keys)
    rotated = (*keys[turn:], *keys[:turn])
    awake = [key for key in rotated if key.health.rest_until <= now]
    return awake or [min(rotated, key=lambda key: key.health.rest_until)]


def _load(target: Target) -> float:
    return target.health.in_flight / target.weight


def _weighted(targets: tuple[Target, ...], run: Run) -> Target:
    del run
    return _random.choices(targets, [target.weight for target in targets])[0]


def _least_busy(targets: tuple[Target, ...], run: Run) -> Target:
    del run
    least = min(_load(target) for target in targets)
    return _random.choice([target for target in targets if _load(target) == least])


def _lowest_latency(targets: tuple[Target, ...], run: Run) -> Target:
    del run
    one, other = _random.sample(targets, 2)
    return one if one.health.cost() <= other.health.cost() else other


def _session(targets: tuple[Target, ...], run: Run) -> Target:
    """Choose by rendezvous hashing: a session keeps its target when others come and go."""
    who = f"{run.tenant}\0{run.session or run.key_id}".encode()

    def score(target: Target) -> float:
        digest = blake2b(who + b"\0" + target.label, digest_size=8).digest()
        chance = (int.from_bytes(digest, "big") + 1) / (1 << 64)
        return chance ** (1.0 / target.weight)

    return max(targets, key=score)


_BALANCE: dict[str, Callable[[tuple[Target, ...], Run], Target]] = {
    "weighted": _weighted,
    "least_busy": _least_busy,
    "lowest_latency": _lowest_latency,
    "session": _session,
}
BALANCES = tuple(_BALANCE)
