"""The address of a project of Vertex follows from its region."""

import pytest

from gateway.providers.vertex import vertex_base_url


@pytest.mark.parametrize(
    ("project", "region", "url"),
    [
        (
            "p",
            "us-east5",
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5",
        ),
        ("p", "global", "https://aiplatform.googleapis.com/v1/projects/p/locations/global"),
        ("p", "", "https://aiplatform.googleapis.com/v1/projects/p/locations/global"),
        ("p", "eu", "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu"),
        ("", "us-east5", "https://aiplatform.googleapis.com/v1"),
    ],
)
def test_each_region_has_its_host(project: str, region: str, url: str) -> None:
    assert url == vertex_base_url(project, region)
