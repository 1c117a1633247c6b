"""What this process knows about targets and keys: load, latency, rest. Hints only: safe when wrong.

Kept by identity, so a reload that does not touch a target keeps what was learned.
"""

import math
from collections.abc import Callable
from hashlib import blake2b
from threading import RLock
from typing import Any
from weakref import WeakSet, WeakValueDictionary, finalize

from gateway.core import clock
from gateway.core.probing import LocalPermits, ProbePermits
from gateway.upstream.breaker import CLOSED, NAMES, Breaker, BreakerRules
from gateway.upstream.concurrency import ConcurrencyRules, Places
from gateway.upstream.names import Names

_DECAY_S = 10.0
_FIRST_GUESS_S = 0.0
_LEASE_S = 15.0
_NEVER = 2.0
_RULES = BreakerRules()
_BOUNDS = ConcurrencyRules()

Watch = Callable[[str, str, int, float], None]
"""Told of every change: provider, model, state of the breaker, limit of calls at once (inf: none)."""


class Guarded:
    """Something with a breaker, and the leases of the probes that are under way."""

    __slots__ = ("__weakref__", "_leases", "breaker", "name", "permits")

    def __init__(self, name: str, breaker: Breaker, permits: ProbePermits) -> None:
        self.name = name
        self.breaker = breaker
        self.permits = permits
        self._leases: list[str] = []

    async def may_probe(self, now: float) -> bool:
        """Take the place of a probe, here and among all who share the permits."""
        breaker = self.breaker
        if not breaker.reserve(now):
            return False
        epoch = breaker.epoch
        granted = ""
        try:
            for number in range(breaker.rules.probes):
                lease = f"{self.name}#{number}"
                if await self.permits.permit(lease, _LEASE_S):
                    granted = lease
                    break
        finally:
            if not granted:
                breaker.refuse(epoch, now)
        if granted and breaker.epoch != epoch:
            self.permits.release(granted)
            return False
        if granted:
            self._leases.append(granted)
        return bool(granted)

    def succeed(self, epoch: int, now: float) -> None:
        """Take a good outcome of a call that started in this epoch."""
        if self.breaker.succeed(epoch, now):
            self._release()

    def fail(self, epoch: int, now: float) -> None:
        """Take a bad outcome of a call that started in this epoch."""
        if self.breaker.fail(epoch, now):
            self._release()

    def undecided(self, epoch: int) -> None:
        """Take an outcome that says nothing about this."""
        if self.breaker.undecided(epoch):
            self._release(1)

    def _release(self, most: int | None = None) -> None:
        for _ in range(len(self._leases) if most is None else min(most, len(self._leases))):
            self.permits.release(self._leases.pop())


class HostHealth(Guarded):
    """Where several targets are: whether connections come about at all."""

    __slots__ = ("members",)

    def __init__(
        self,
        name: str = "",
        permits: ProbePermits | None = None,
        rules: BreakerRules = _RULES,
    ) -> None:
        super().__init__(name, Breaker(_in_a_row(rules), self._show), permits or LocalPermits())
        self.members: WeakSet[TargetHealth] = WeakSet()

    def _show(self) -> None:
        for member in tuple(self.members):
            member.show()


class TargetHealth(Guarded):
    """One target: its breaker, its places, and the peak-EWMA of the time to the answer's head.

    It is down with its `host`. One whose model holds a star is the `whole` of its parts: a record for each name
    that is served, all shown as one.
    """

    __slots__ = (
        "_latency_s",
        "_stamp",
        "host",
        "model",
        "parts",
        "places",
        "provider",
        "served",
        "turn",
        "waits",
        "whole",
    )

    def __init__(
        self,
        provider: str = "",
        model: str = "",
        *,
        name: str = "",
        watch: Watch | None = None,
        rules: BreakerRules = _RULES,
        bounds: ConcurrencyRules = _BOUNDS,
        host: HostHealth | None = None,
    ) -> None:
        self.provider = provider
        self.model = model
        self.served = ""
        self.whole: TargetHealth | None = None
        self.parts: WeakSet[TargetHealth] = WeakSet()
        self.host = host or HostHealth(rules=rules)
        self.host.members.add(self)
        show = None if watch is None else self._shown(watch)
        super().__init__(name, Breaker(rules, show), self.host.permits)
        self.places = Places(bounds, show)
        self.turn = 0
        self.waits: dict[KeyHealth, float] = {}
        self._latency_s = _FIRST_GUESS_S
        self._stamp = 0.0

    @property
    def state(self) -> int:
        """The state of its breaker, or of its host's when that is worse."""
        return max(self.breaker.state, self.host.breaker.state)

    def wait_s(self, now: float) -> float:
        """Return how long until a call may pass: 0 when one may try at once."""
        return max(self.breaker.wait_s(now), self.host.breaker.wait_s(now))

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return self.places.taken

    def part(self, served: str) -> "TargetHealth":
        """Return a new record for one name that is served; it is shown with this one."""
        part = TargetHealth(
            self.provider,
            self.model,
            name=f"target:{_digest(self.name, served)}",
            watch=self._show_part,
            rules=self.breaker.rules,
            bounds=self.places.rules,
            host=self.host,
        )
        # The whole shows what befalls the host: once, not for each part.
        self.host.members.discard(part)
        part.served, part.whole = served, self
        part.turn = self.turn
        self.turn += 1
        self.parts.add(part)
        return part

    def leave(self) -> None:
        """Be no part any more."""
        if self.whole is not None:
            self.whole.parts.discard(self)
            if self.breaker.state or self.places.limit < self.places.rules.most:
                self.whole.show()

    def observe(self, latency_s: float, now: float) -> None:
        """Take one measurement: a peak counts at once, better times win slowly."""
        if latency_s >= self._latency_s:
            self._latency_s = latency_s
        else:
            weight = math.exp(-(now - self._stamp) / _DECAY_S)
            self._latency_s = self._latency_s * weight + latency_s * (1.0 - weight)
        self._stamp = now

    def cost(self) -> float:
        """Return the expected wait of one more request; compare only within one model."""
        return self._latency_s * (self.places.taken + 1)

    def wait(self, key: "KeyHealth", until: float, now: float) -> None:
        """Do not use a credential for this target until then; waits that are over are forgotten."""
        waits = {each: end for each, end in self.waits.items() if end > now}
        waits[key] = max(until, waits.get(key, 0.0))
        self.waits = waits

    def describe(self, now: float) -> dict[str, Any]:
        """Return plain data for people."""
        calls, failures = self.breaker.counts(now)
        limit = self.places.limit
        served = {"served": self.served} if self.served else {}
        return {
            "provider": self.provider,
            "model": self.model,
            **served,
            "state": NAMES[self.state],
            "retry_in_s": round(self.wait_s(now), 3),
            "calls": calls,
            "failures": failures,
            "in_flight": self.places.taken,
            "waiting": self.places.waiting,
            "limit": None if limit == math.inf else int(limit),
            "latency_s": round(self._latency_s, 6),
        }

    def show(self) -> None:
        """Have whoever watches told how things are."""
        if self.breaker.on_change is not None:
            self.breaker.on_change()

    def _show_part(self, *_: object) -> None:
        self.show()

    def _shown(self, watch: Watch) -> Callable[[], None]:
        def show() -> None:
            state, limit = self.state, self.places.limit
            for part in tuple(self.parts):
                state = max(state, part.breaker.state)
                limit = min(limit, part.places.limit)
            watch(self.provider, self.model, state, limit)

        return show


class KeyHealth(Guarded):
    """One credential. `rest_until`: others go first until then; `wait_until`: not used at all until then.

    `is_shared`: its quota is known to be one for all targets, so that a wait for one is a wait for all.
    """

    __slots__ = ("group", "is_shared", "rest_until", "wait_until")

    def __init__(
        self,
        group: str = "",
        *,
        name: str = "",
        permits: ProbePermits | None = None,
        rules: BreakerRules = _RULES,
        is_shared: bool = False,
    ) -> None:
        super().__init__(name, Breaker(_in_a_row(rules)), permits or LocalPermits())
        self.group = group
        self.is_shared = is_shared
        self.rest_until = 0.0
        self.wait_until = 0.0

    def rest(self, until: float) -> None:
        """Leave this key alone until then; a shorter rest never shortens a longer one."""
        self.rest_until = max(self.rest_until, until)

    def describe(self, now: float) -> dict[str, Any]:
        """Return plain data for people."""
        return {
            "quota_group": self.group,
            "state": NAMES[self.breaker.state],
            "retry_in_s": round(max(self.breaker.wait_s(now), self.wait_until - now, 0.0), 3),
            "rests_s": round(max(self.rest_until - now, 0.0), 3),
        }


def _in_a_row(rules: BreakerRules) -> BreakerRules:
    """Return rules under which refusals count alone: how many calls other keys had says nothing of this one."""
    return rules._replace(ratio=_NEVER)


class HealthBook:
    """All health records of this process, by identity; one that no snapshot refers to any more is forgotten."""

    def __init__(self, watch: Watch | None = None, permits: ProbePermits | None = None) -> None:
        self._watch = watch
        self._permits = permits or LocalPermits()
        # A record may be collected, and told of, inside any of the blocks below.
        self._lock = RLock()
        self._shown: set[tuple[str, str]] = set()
        self._targets: WeakValueDictionary[tuple[object, ...], TargetHealth]
        self._targets = WeakValueDictionary()
        self._keys: WeakValueDictionary[tuple[object, ...], KeyHealth] = WeakValueDictionary()
        self._hosts: WeakValueDictionary[tuple[object, ...], HostHealth] = WeakValueDictionary()
        self._names: WeakValueDictionary[tuple[object, ...], Names] = WeakValueDictionary()

    def target(
        self,
        provider: str,
        model: str,
        base_url: str = "",
        *,
        rules: BreakerRules = _RULES,
        bounds: ConcurrencyRules = _BOUNDS,
        host: tuple[object, ...] = (),
    ) -> TargetHealth:
        """Return the record of a provider's model at an address; under other rules it is another one.

        `host` is all that decides whether a connection comes about; empty: the provider is a host of its own.
        """
        place = _place(provider, base_url, host, rules)
        identity = (model, provider, base_url, rules, bounds, place)
        with self._lock:
            found = self._targets.get(identity)
            if found is not None:
                return found
            found = self._targets[identity] = TargetHealth(
                provider,
                model,
                name=f"target:{_digest(provider, model, base_url)}",
                watch=self._tell,
                rules=rules,
                bounds=bounds,
                host=self._host(place, rules),
            )
            finalize(found, self._settle, provider, model).atexit = False
            self._settle(provider, model)
        return found

    def names(
        self,
        provider: str,
        base_url: str = "",
        *,
        rules: BreakerRules = _RULES,
        bounds: ConcurrencyRules = _BOUNDS,
        host: tuple[object, ...] = (),
    ) -> Names:
        """Return the records of the names that callers ask of a provider; its configured models keep their own."""
        identity = (provider, base_url, rules, bounds, _place(provider, base_url, host, rules))

        def configured(model: str) -> TargetHealth | None:
            return self._targets.get((model, *identity))

        with self._lock:
            found = self._names.get(identity)
            if found is None:
                found = self._names[identity] = Names(configured, self._lock)
        return found

    def _all(self) -> list[TargetHealth]:
        """Return every record of a target, those of names last; for whoever holds the lock."""
        records = list(self._targets.values())
        for names in list(self._names.values()):
            records.extend(names.records())
        return records

    def _host(self, place: tuple[object, ...], rules: BreakerRules) -> HostHealth:
        found = self._hosts.get(place)
        if found is None:
            name = f"host:{_digest(*map(str, place))}"
            found = self._hosts[place] = HostHealth(name, self._permits, rules)
        return found

    def _tell(self, provider: str, model: str, state: int, limit: float) -> None:
        self._shown.add((provider, model))
        if self._watch is not None:
            self._watch(provider, model, state, limit)

    def _settle(self, provider: str, model: str) -> None:
        """Have shown what there is after a record came or went: the newest, or that nothing is amiss."""
        if (provider, model) not in self._shown or self._watch is None:
            return
        with self._lock:
            left = [
                each
                for each in self._targets.values()
                if (each.provider, each.model) == (provider, model)
            ]
        if left:
            left[-1].show()
        else:
            self._watch(provider, model, CLOSED, math.inf)

    def key(
        self,
        group: str,
        fingerprint: bytes,
        *,
        rules: BreakerRules = _RULES,
        is_shared: bool = False,
    ) -> KeyHealth:
        """Return the record of a credential in its quota group, named by a digest of it."""
        identity = (group, fingerprint, is_shared)
        with self._lock:
            found = self._keys.get(identity)
            if found is None:
                found = self._keys[identity] = KeyHealth(
                    group,
                    name=f"key:{_digest(group, fingerprint.hex())}",
                    permits=self._permits,
                    rules=rules,
                    is_shared=is_shared,
                )
        return found

    def share(self, permits: ProbePermits) -> None:
        """Ask for probes here from now on: with others who ask the same."""
        with self._lock:
            self._permits = permits
            for record in (*self._all(), *self._keys.values(), *self._hosts.values()):
                record.permits = permits

    def describe(self) -> dict[str, Any]:
        """Return all records as plain data: no addresses, no credentials. Callable from any thread."""
        now = clock.monotonic()
        with self._lock:
            targets, keys = self._all(), list(self._keys.values())
        return {
            "targets": [each.describe(now) for each in targets],
            "keys": [each.describe(now) for each in keys],
        }


def _place(
    provider: str, base_url: str, host: tuple[object, ...], rules: BreakerRules
) -> tuple[object, ...]:
    return (*(host or (provider, base_url)), rules)


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()
