"""Whose data it is: the only builder of storage keys. No key of callers' data is made without a tenant (T-16)."""

from dataclasses import dataclass
from hashlib import blake2b

_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Scope:
    """One tenant's part of every store. All its keys share a cluster slot: the tenant stands in the hash tag."""

    tenant: str

    def __post_init__(self) -> None:
        if not self.tenant or set(self.tenant) & set("{}:"):
            message = "a scope needs the name of a tenant"
            raise ValueError(message)

    def key(self, kind: str, *parts: str) -> str:
        """Return the storage key of a thing of this tenant; `parts` come from the configuration.

        What callers write (users, sessions, idempotency keys) goes through `digest` first.
        """
        return ":".join((f"gw:{{{self.tenant}}}", kind, *parts))


def common_key(kind: str, *parts: str) -> str:
    """Return the storage key of what belongs to no tenant: nothing of a caller's may be kept there."""
    return ":".join(("gw:{-}", kind, *parts))


def digest(*texts: str) -> str:
    """Return a name of fixed length for texts that callers chose; no two lists of texts share one."""
    joined = "".join(f"{len(text)}:{text}" for text in texts)
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=_ID_BYTES).hexdigest()
