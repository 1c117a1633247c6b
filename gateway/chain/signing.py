"""Which credential a provider's requests carry where no key is configured: one made anew as it expires."""

from gateway.config.providers import Provider as Entry
from gateway.providers.base import Provider
from gateway.upstream.client import Endpoint


def signed(endpoint: Endpoint, entry: Entry, row: Provider, secret: str) -> Endpoint:
    """Return the endpoint as it is, or behind a signer; raises ValueError where a package is missing."""
    if not row.signs or secret:
        return endpoint
    raise ValueError(
        f"{row.kind}: signing is not there yet; configure an `api_key` for {entry.kind}"
    )
