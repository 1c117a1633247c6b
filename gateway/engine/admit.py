"""The door before each upstream call: a place at the target, and a target and a credential that are not left alone.

Nothing stands in the way of most calls; `enter` says so in a fraction of a microsecond. The rest is `admit`.
"""

from collections.abc import Sequence
from math import inf
from typing import Literal

from gateway.chain.plan import Key, Target
from gateway.core import clock
from gateway.core.errors import UpstreamError
from gateway.upstream.concurrency import wait_any
from gateway.upstream.health import Guarded

Why = Literal["outage", "credentials", "quota", "full"]
_FULL_WAIT_S = 1.0
_CODES: dict[Why, tuple[str, str]] = {
    "outage": (
        "upstream_unavailable",
        "The provider of this model is left alone after an outage; it will be tried again.",
    ),
    "credentials": (
        "upstream_unavailable",
        "The provider refused the gateway's credentials; they will be tried again.",
    ),
    "quota": ("rate_limited", ""),
    "full": ("overloaded", "The provider of this model takes no more calls at the moment."),
}


class Barred(UpstreamError):
    """A target that must not be called now; nothing was sent. `full` are targets that only lack a place.

    Whoever repeats calls shall not wait for it, except for a quota, whose end the provider has named.
    """

    def __init__(self, why: Why, wait_s: float, full: tuple[Target, ...] = ()) -> None:
        code, message = _CODES[why]
        wait_s = max(wait_s, 0.001)
        super().__init__(code, message, phase="pool", sent=False, retry_after_s=wait_s, detail=why)
        self.why = why
        self.wait_s = wait_s
        self.full = full
        self.spent = why != "quota"

    @property
    def is_credential(self) -> bool:
        """Whether the next credential may be used."""
        return self.why in {"credentials", "quota"}

    is_quota = is_credential


def enter(target: Target, key: Key) -> bool:
    """Take a place at a target if nothing stands in the way of this call; `Attempt.end` gives it back."""
    health, own = target.health, key.health
    places = health.places
    if (
        health.breaker.state
        or health.host.breaker.state
        or own.breaker.state
        or own.wait_until
        or health.waits
        or places.taken >= places.limit
    ):
        return False
    places.taken += 1
    return True


async def admit(target: Target, key: Key) -> None:
    """Take a place at a target that may be down, waited for or full, as a probe if need be; raises Barred."""
    health = target.health
    now = clock.monotonic()
    wait_s = quota_wait_s(target, key, now)
    if wait_s > 0.0:
        raise Barred("quota", wait_s)
    guards: tuple[tuple[Guarded, Why], ...] = (
        (health.host, "outage"),
        (health, "outage"),
        (key.health, "credentials"),
    )
    for guard, why in guards:
        wait_s = guard.breaker.wait_s(now)
        if wait_s > 0.0:
            raise Barred(why, wait_s)
    probed: list[tuple[Guarded, int]] = []
    entered = False
    try:
        for guard, why in guards:
            if not guard.breaker.state:
                continue
            if not await guard.may_probe(now):
                raise Barred(why, guard.breaker.wait_s(now))
            probed.append((guard, guard.breaker.epoch))
        if health.places.is_full(now):
            raise Barred("full", _FULL_WAIT_S, (target,))
        entered = True
    finally:
        if not entered:
            for guard, epoch in probed:
                guard.undecided(epoch)
    health.places.taken += 1


def quota_wait_s(target: Target, key: Key, now: float) -> float:
    """Return how long a credential must still wait before this target, as the provider asked."""
    own, waits = key.health, target.health.waits
    if own.wait_until and own.wait_until <= now:
        own.wait_until = 0.0
    until = own.wait_until
    if waits:
        mine = waits.get(own, 0.0)
        if mine and mine <= now:
            del waits[own]
        until = max(until, mine)
    return until - now


def rather(before: UpstreamError | None, error: UpstreamError) -> UpstreamError:
    """Return which failure of two targets to go by.

    That of one that only lacks a place, for it is worth waiting for; then of one that was called; then the shorter.
    """
    if before is None:
        return error
    full = _full(before) + _full(error)
    if full:
        return Barred("full", _FULL_WAIT_S, full)
    if not isinstance(error, Barred):
        return error
    if not isinstance(before, Barred):
        return before
    return before if before.wait_s <= error.wait_s else error


def _full(error: UpstreamError) -> tuple[Target, ...]:
    return error.full if isinstance(error, Barred) else ()


async def wait_for_room(full: Sequence[Target], deadline: float) -> Target:
    """Return a target that has a place again; it is the caller's until the next await.

    Raises UpstreamError `overloaded` after a short wait, `deadline_exceeded` when the request has no time for that.
    """
    now = clock.monotonic()
    queue_s = min(target.health.places.rules.queue_s for target in full)
    until = min(now + queue_s, deadline)
    by_places: dict[int, Target] = {id(target.health.places): target for target in full}
    found = await wait_any([target.health.places for target in full], until)
    if found is not None:
        return by_places[id(found)]
    if deadline <= clock.monotonic() < inf:
        raise UpstreamError("deadline_exceeded", phase="pool", sent=False)
    raise Barred("full", _FULL_WAIT_S)
