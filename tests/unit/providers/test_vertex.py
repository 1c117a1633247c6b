"""The address of a project of Vertex follows from its region."""

import pytest

from gateway.providers.registry import PROVIDERS


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ("europe-west4", "europe-west4-aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_each_region_has_its_host(region: str, host: str) -> None:
    address = PROVIDERS["vertex"].address(region, "p")
    assert address == f"https://{host}/v1/projects/p/locations/{region}"


def test_a_region_and_a_project_are_needed() -> None:
    for region, project in ((None, "p"), ("global", None)):
        with pytest.raises(ValueError, match="needs"):
            PROVIDERS["vertex"].address(region, project)
