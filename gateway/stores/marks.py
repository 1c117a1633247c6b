"""Deletes of cached answers that outlive what they deleted, so that no late writer brings it back (O-4)."""

from collections.abc import Mapping

from gateway.core.caching import Entry, Pool, Selector

MOST = 256
"""Marks of one tenant; with more of them all that was kept before is forgotten instead."""


class Marks:
    """The deletes of one tenant. `version` is the epoch of the last; each selector has that of its own."""

    def __init__(self, version: int = 0, deletes: Mapping[Selector, int] | None = None) -> None:
        self.version = version
        self._deletes = dict(deletes or {})

    def add(self, selector: Selector) -> None:
        """Note one more delete."""
        self.version += 1
        if len(self._deletes) >= MOST:
            self._deletes = {Selector(selector.tenant): self.version}
        self._deletes[selector] = self.version

    def forbid(self, entry: Entry) -> bool:
        """Tell whether an entry was asked for before a delete that means it."""
        return entry.epoch < self.version and any(
            entry.epoch < at and selects(selector, entry) for selector, at in self._deletes.items()
        )

    def generation(self, pool: Pool) -> int:
        """Return the epoch of the last delete that meant all of a pool; 0 for none."""
        return max(
            (at for selector, at in self._deletes.items() if _means_all(selector, pool)), default=0
        )


def selects(selector: Selector, entry: Entry) -> bool:
    """Tell whether an entry of the same tenant is meant."""
    return (
        selector.id in {"", entry.id}
        and _has_pool(selector, entry.pool)
        and selector.model in {"", entry.model}
        and selector.agent in {"", entry.agent}
        and (not selector.tag or selector.tag in entry.tags)
    )


def _has_pool(selector: Selector, pool: Pool) -> bool:
    return (
        selector.tenant == pool.tenant
        and selector.namespace in {"", pool.namespace}
        and selector.scope in {"", pool.scope}
        and selector.value in {"", pool.value}
    )


def _means_all(selector: Selector, pool: Pool) -> bool:
    some = selector.id or selector.model or selector.agent or selector.tag
    return not some and _has_pool(selector, pool)
