"""Where requests may go: the configured origin alone, at addresses that were checked one by one."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_PORTS: Final = {"http": 80, "https": 443}
_HOST = re.compile(r"(?=.{1,253}\.?\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_-]{1,63})*\.?\Z")
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")

_METADATA: Final = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::23",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)
_NAT64: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of an endpoint; `literal` is its address when the host is one."""

    scheme: str
    host: str
    port: int
    literal: Address | None = None

    @property
    def host_header(self) -> bytes:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}").encode()

    @classmethod
    def parse(cls, base_url: str) -> Origin:
        """Read the origin of a base URL strictly; ValueError for what two readers could read apart."""
        if not base_url.isprintable() or " " in base_url or "\\" in base_url:
            raise ValueError("a base URL holds no spaces, backslashes or control characters")
        url = urlsplit(base_url)
        if url.scheme not in _PORTS or not url.netloc:
            raise ValueError("a base URL starts with http:// or https:// and a host")
        if "@" in url.netloc or url.query or url.fragment or "?" in base_url or "#" in base_url:
            raise ValueError("a base URL holds no credentials, query or fragment")
        port = url.port  # raises ValueError out of range
        host = url.hostname or ""
        literal = _literal(host)
        host = _name(host) if literal is None else str(literal)
        return cls(url.scheme, host, _PORTS[url.scheme] if port is None else port, literal)


def refusal(address: str, origin: Origin, *, allow_private: bool) -> str:
    """Say why a connection to this address is not allowed; empty when it is."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "not an address"
    if ip == origin.literal:
        return "" if allow_private or _is_public(ip) else "a private address"
    for inner in (ip, *_embedded(ip)):
        if inner.is_link_local or inner in _METADATA:
            return "an address of a metadata service"
        if inner.is_multicast or inner.is_unspecified:
            return "not the address of a host"
        if not allow_private and not _is_public(inner):
            return "a private address"
    return ""


def _is_public(ip: Address) -> bool:
    # What leads to an IPv4 address by translation is not public: versions of Python disagree about it.
    site_local = isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or site_local or _embedded(ip))


def _embedded(ip: Address) -> list[ipaddress.IPv4Address]:
    """List the IPv4 addresses that an IPv6 address can lead to."""
    if isinstance(ip, ipaddress.IPv4Address):
        return []
    number = int(ip)
    found = [inner for inner in (ip.ipv4_mapped, ip.sixtofour) if inner is not None]
    if ip.teredo is not None:
        found += ip.teredo
    if (
        any(ip in network for network in _NAT64)
        or (number >> 32) & 0xFFFFFFFF in _ISATAP
        or (ip in _COMPATIBLE and number > 1)
    ):
        found.append(ipaddress.IPv4Address(number & 0xFFFFFFFF))
    return found


def _literal(host: str) -> Address | None:
    if "%" in host:
        raise ValueError("an address with a zone cannot be an origin")
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _name(host: str) -> str:
    try:
        name = host.encode("ascii" if host.isascii() else "idna").decode().lower()
    except UnicodeError:
        raise ValueError("the host of a base URL is not a name") from None
    if not _HOST.match(name):
        raise ValueError("the host of a base URL is not a name")
    if _NUMERIC.match(name.rstrip(".").rpartition(".")[2]):
        raise ValueError("a numeric host must be a dotted IPv4 or a bracketed IPv6 address")
    return name
