"""Where clouds hand credentials to whoever asks on the machine: no host of a provider, however it is spelled."""

import ipaddress
import socket

_V4 = frozenset(
    int(ipaddress.IPv4Address(address))
    for address in (
        "100.100.100.200",
        "168.63.129.16",
        "169.254.0.23",
        "169.254.169.253",
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "192.0.0.192",
    )
)
_V6 = frozenset(
    ipaddress.IPv6Address(address) for address in ("fd00:ec2::23", "fd00:ec2::254", "fd20:ce::254")
)
_NAMES = frozenset({
    "instance-data.ec2.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.tencentyun.com",
})  # fmt: skip
_LAST_32_BITS = 0xFFFFFFFF


def is_metadata(host: str) -> bool:
    """Tell whether a host is the name or address of a metadata service; looks nothing up."""
    host = host.lower().rstrip(".")
    ip = _address(host)
    if ip is None:
        return host in _NAMES
    if isinstance(ip, ipaddress.IPv4Address):
        return int(ip) in _V4
    # Mapped, compatible, NAT64 and ISATAP addresses end with the one they lead to.
    ends = {int(ip) & _LAST_32_BITS}
    if ip.sixtofour is not None:
        ends.add(int(ip.sixtofour))
    return not ends.isdisjoint(_V4) or ipaddress.IPv6Address(int(ip)) in _V6


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an address in any spelling that the system's resolver takes, such as 0xa9fea9fe."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host)) if host else None
    except (OSError, ValueError):
        return None
