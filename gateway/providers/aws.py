"""Hosts of AWS whose domain is not that of most regions: China's is its own; GovCloud's is not."""

_DOMAIN = ".amazonaws.com"


def in_partition(url: str, region: str) -> str:
    """Return an address with the domain that its region has."""
    return f"{url}.cn" if region.startswith("cn-") and url.endswith(_DOMAIN) else url
