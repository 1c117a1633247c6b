"""From the configuration to when models and credentials are left alone, and how many calls at once they get."""

from math import inf
from urllib.parse import urlsplit

from gateway.config.providers import Breaker, Concurrency, Provider
from gateway.upstream.breaker import BreakerRules
from gateway.upstream.concurrency import ConcurrencyRules

_NEVER = 2.0


def breaker_rules(entry: Breaker) -> BreakerRules:
    """Return the rules of a block `breaker`."""
    return BreakerRules(
        failures=entry.failures if entry.enabled else inf,
        ratio=entry.failure_ratio if entry.enabled else _NEVER,
        min_calls=entry.min_calls,
        window_s=entry.window_s,
        open_s=entry.open_s,
        max_open_s=entry.max_open_s,
        probes=entry.probes,
    )


def places_rules(entry: Concurrency) -> ConcurrencyRules:
    """Return the bounds of a block `concurrency`."""
    return ConcurrencyRules(
        most=entry.max or inf,
        least=entry.min if entry.adaptive else inf,
        decrease=entry.decrease_ratio,
        recover_s=entry.recover_s,
        queue_s=entry.queue_s,
    )


def host_of(entry: Provider, base_url: str) -> tuple[object, ...]:
    """Return all that decides whether a connection comes about: it fails alike for all models there."""
    proxy = entry.proxy.reveal() if entry.proxy else None
    return (urlsplit(base_url).netloc, proxy, entry.ca_file, entry.verify_tls, entry.allow_private)
