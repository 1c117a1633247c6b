"""The page about metrics says what the catalogue says."""

import pytest

from gateway.telemetry.catalogue import METRICS
from gateway.telemetry.reference import markdown
from tests.support.shared import ROOT

PAGE = ROOT / "docs" / "metrics.md"


def test_the_page_is_what_the_catalogue_generates() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown()


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_on_the_page(name: str) -> None:
    assert f"| `{name}` |" in markdown()
