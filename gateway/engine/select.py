"""Which target is tried first, and which ones after it."""

import random
from collections.abc import Callable, Sequence
from hashlib import blake2b

from gateway.chain.plan import Key, Model, Target
from gateway.core import clock
from gateway.core.call import Run
from gateway.engine.admit import quota_wait_s

_random = random.Random()  # noqa: S311  spreads load; nothing secret depends on it


def order_targets(model: Model, run: Run) -> tuple[Target, ...]:
    """Return a model's targets in the order in which they are to be tried.

    One that was down and may be tried again goes first, so that traffic finds back to it; the others that are down
    go last.
    """
    targets = model.targets
    if len(targets) == 1:
        return targets
    for target in targets:
        if target.health.state:
            return _around_the_down(model, run)
    return _balanced(model.balance, targets, run)


def usable_keys(target: Target) -> Sequence[Key]:
    """Return a target's credentials in turn, without those that rest; one of them at least."""
    keys = target.account.keys
    if len(keys) == 1:
        return keys
    now = clock.monotonic()
    target.health.turn += 1
    turn = target.health.turn % len(keys)
    rotated = (*keys[turn:], *keys[:turn])
    awake = [
        key for key in rotated if key.health.rest_until <= now and _free_s(target, key, now) <= 0.0
    ]
    return awake or [
        min(rotated, key=lambda key: (max(_free_s(target, key, now), 0.0), key.health.rest_until))
    ]


def _free_s(target: Target, key: Key, now: float) -> float:
    """Return how long a credential cannot be used at all."""
    return max(quota_wait_s(target, key, now), key.health.breaker.wait_s(now))


def _around_the_down(model: Model, run: Run) -> tuple[Target, ...]:
    now = clock.monotonic()
    ready = tuple(target for target in model.targets if not target.health.state)
    down = [target for target in model.targets if target.health.state]
    due = [target for target in down if target.health.wait_s(now) <= 0.0]
    waiting = [target for target in down if target.health.wait_s(now) > 0.0]
    return (*due[:1], *_balanced(model.balance, ready, run), *due[1:], *waiting)


def _balanced(balance: str, targets: tuple[Target, ...], run: Run) -> tuple[Target, ...]:
    if len(targets) <= 1:
        return targets
    first = _BALANCE[balance](targets, run)
    return (first, *sorted((t for t in targets if t is not first), key=_load))


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
