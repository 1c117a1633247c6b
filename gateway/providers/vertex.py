"""Hosts of Vertex that are not named as those of plain regions are."""

import re

_SHARED = re.compile(r"//(global|us|eu)-(aiplatform\.googleapis\.com)\b")


def shared_host(url: str) -> str:
    """Return an address with the host that its region has, where that spans the world or a continent."""
    return _SHARED.sub(_named, url, count=1)


def _named(found: re.Match[str]) -> str:
    region, host = found.groups()
    name, _, domain = host.partition(".")
    return f"//{host}" if region == "global" else f"//{name}.{region}.rep.{domain}"
