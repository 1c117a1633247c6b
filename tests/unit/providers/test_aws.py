"""The address of Bedrock follows from its region, in each partition of AWS."""

import pytest

from gateway.providers.registry import PROVIDERS
from gateway.upstream.credentials.aws import region_of


@pytest.mark.parametrize(
    ("region", "domain"),
    [
        ("us-east-1", "amazonaws.com"),
        ("us-gov-west-1", "amazonaws.com"),
        ("cn-north-1", "amazonaws.com.cn"),
        ("cn-northwest-1", "amazonaws.com.cn"),
    ],
)
def test_each_region_has_the_domain_of_its_partition(region: str, domain: str) -> None:
    address = PROVIDERS["bedrock"].address(region, None)

    assert address == f"https://bedrock-runtime.{region}.{domain}"
    assert region_of(address) == region
