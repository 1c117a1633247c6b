"""How opaque state of one maker travels in another format's field, and comes back byte for byte (K32)."""

_MARK = "gw1."


def wrap(maker: str, sealed: str, own: str) -> str:
    """Return sealed text for a field of the maker `own`: its own as it is, others with the name of their maker."""
    return sealed if maker == own or not sealed else f"{_MARK}{maker}.{sealed}"


def unwrap(field: str, own: str) -> tuple[str, str]:
    """Return maker and sealed text of a field of the maker `own`; ("", "") for an empty field."""
    if not field:
        return "", ""
    if not field.startswith(_MARK):
        return own, field
    maker, _, sealed = field.removeprefix(_MARK).partition(".")
    return maker, sealed
