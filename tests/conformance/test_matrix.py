"""The page that says what callers of each format get of each provider is what is measured, and no cell fails."""

from pathlib import Path

import pytest

from tests.support.folder import folder
from tests.support.matrix import FAILS, PAGE, page
from tests.support.shared import SHARED, absent
from tests.support.unmatched import RULES


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.bug("K34", "K35")
def test_the_matrix_is_what_is_measured(tmp_path: Path) -> None:
    if SHARED is None:
        absent("../shared with the recordings that the page was measured with")
    if folder() != SHARED / "recordings":
        pytest.skip("the page was measured with other recordings")
    text, measured = page(tmp_path)

    assert not [cell for cell, outcomes in measured.items() if FAILS in outcomes]
    assert [rule for rule in RULES if rule not in text] == [], "a rule that explains nothing"
    assert PAGE.read_text(encoding="utf-8") == text, "run python -m tests.support.matrix"
