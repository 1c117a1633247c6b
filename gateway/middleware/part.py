"""What one layer brings to an admission."""

from dataclasses import dataclass

from gateway.core.call import ModelRef
from gateway.middleware.caps import Cap


@dataclass(frozen=True, slots=True)
class Part:
    """What one layer brings: its caps, and what happens when one of them is reached.

    `unpriced` is refuse or tokens_only. `queue_s`: how long a call waits for room. `closed`: without the store
    nothing is admitted. `fallback`: a cheaper model that is called instead of being refused.
    """

    id: str
    kind: str
    caps: tuple[Cap, ...]
    shadow: bool = False
    unpriced: str = "refuse"
    queue_s: float = 0.0
    closed: bool = True
    fallback: ModelRef | None = None

    @property
    def clamps(self) -> bool:
        """Whether answers without a bound are given one: only where a budget refuses."""
        return self.kind == "budget" and any(cap.enforced and cap.is_sized for cap in self.caps)
