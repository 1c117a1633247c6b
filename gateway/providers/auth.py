"""Static credential headers; a key never stands in an address."""


def auth_headers(auth: str, secret: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers for one credential: a bearer token, a bare key in the named header, or nothing.

    Raises ValueError for a key that cannot stand in a header.
    """
    if auth == "none" or not secret:
        return ()
    if not secret.isascii() or not secret.isprintable() or secret != secret.strip():
        raise ValueError("a credential holds characters that a header cannot carry")
    if auth == "bearer":
        return ((b"authorization", b"Bearer " + secret.encode()),)
    return ((auth.encode(), secret.encode()),)
