"""The addresses of one origin: resolved, then checked one by one against the egress policy."""

from gateway.core.errors import UpstreamError
from gateway.upstream.egress import Origin, refusal
from gateway.upstream.resolver import Resolver


class Addresses:
    """Finds where connections to one origin may go; the caller connects to these and to nothing else."""

    def __init__(self, origin: Origin, resolver: Resolver, *, allow_private: bool) -> None:
        self.origin = origin
        self._resolver = resolver
        self._allow_private = allow_private

    async def find(self) -> list[str]:
        """Return the addresses, families in turn; UpstreamError when there is none or one is refused."""
        origin = self.origin
        if origin.literal is not None:
            found = (str(origin.literal),)
        else:
            found = await self._resolver.resolve(origin.host)
        for address in found:
            reason = refusal(address, origin, allow_private=self._allow_private)
            if reason:
                raise UpstreamError(
                    "upstream_unavailable", phase="connect", sent=False, detail=f"egress: {reason}"
                )
        return _in_turn(found)


def _in_turn(addresses: tuple[str, ...]) -> list[str]:
    """Order addresses so that the families alternate, the first one's family first (RFC 8305)."""
    first = [a for a in addresses if (":" in a) == (":" in addresses[0])]
    other = [a for a in addresses if (":" in a) != (":" in addresses[0])]
    ordered: list[str] = []
    for index in range(max(len(first), len(other))):
        ordered += first[index : index + 1] + other[index : index + 1]
    return ordered
