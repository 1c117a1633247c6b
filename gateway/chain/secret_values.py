"""Every secret value of a configuration, for the redactor; nothing else may ask for all of them."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from gateway.config.schema import Tree


def secret_values(tree: Tree) -> Iterator[str]:
    """Yield credentials, secret headers, keys and passwords of a tree."""
    for provider in tree.providers.values():
        yield from (secret.reveal() for secret in provider.credentials)
        yield from (secret.reveal() for secret in provider.headers.values())
        if provider.proxy is not None:
            yield from _password(provider.proxy.reveal())
    for tenant in tree.tenants.values():
        yield from (key.secret.reveal() for key in tenant.keys if key.secret is not None)
    if tree.server.admin.key is not None:
        yield tree.server.admin.key.reveal()
    for url in (tree.stores.state, tree.stores.database):
        yield from _password(url.reveal())


def _password(url: str) -> Iterator[str]:
    password = urlsplit(url).password
    if password:
        yield password
