"""TLS settings towards providers: TLS 1.2 at least, the system's or a named CA, nothing from the environment."""

import ssl
from functools import lru_cache
from pathlib import Path
from typing import Final

_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def stamp(ca_file: str | None) -> tuple[str, int, int]:
    """Identify the present content of a CA file; OSError when it cannot be read."""
    if ca_file is None:
        return ("", 0, 0)
    stat = Path(ca_file).stat()
    return (ca_file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def make_context(
    ca: tuple[str, int, int], *, verify: bool, alpn: tuple[str, ...] = ("http/1.1",)
) -> ssl.SSLContext:
    """Return the context of these settings; `ca` is a stamp. Raises OSError or ssl.SSLError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(list(alpn))
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca[0]:
        context.load_verify_locations(cafile=ca[0])
    else:
        _load_system(context)
    return context


def _load_system(context: ssl.SSLContext) -> None:
    # Not load_default_certs first: OpenSSL lets SSL_CERT_FILE of the environment replace the trust store.
    built_in = ssl.get_default_verify_paths().openssl_cafile
    for bundle in (built_in, *_BUNDLES):
        if Path(bundle).is_file():
            context.load_verify_locations(cafile=bundle)
            return
    context.load_default_certs()
