"""Who may try a provider that is believed to be down: the port over which replicas agree on one probe at a time."""

from typing import Protocol

from gateway.core import clock


class ProbePermits(Protocol):
    """Leases of probes, one per name. Asked only while a provider is believed to be down; never raises."""

    async def permit(self, target_key: str, ttl_s: float) -> bool:
        """Take the lease of this name for at most `ttl_s` seconds; False while somebody else has it."""
        ...

    def release(self, target_key: str) -> None:
        """Give a lease back early; returns at once."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


class LocalPermits:
    """Leases among the holders of one object: the default of a process."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    async def permit(self, target_key: str, ttl_s: float) -> bool:
        """Take the lease; see the port."""
        now = clock.monotonic()
        if self._until.get(target_key, 0.0) > now:
            return False
        self._until[target_key] = now + ttl_s
        return True

    def release(self, target_key: str) -> None:
        """Give the lease back."""
        self._until.pop(target_key, None)

    async def aclose(self) -> None:
        """Nothing is held."""
