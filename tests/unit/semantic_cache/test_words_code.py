"""No rule of the words reads a label, a file or a clock: pure functions on two texts."""

from pathlib import Path

import pytest

from gateway.middleware.semantic_cache import words

SOURCES = sorted(Path(words.__file__ or "").parent.glob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_name_of_a_measured_set_stands_in_the_rules(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()
    assert not [
        name for name in ("paws", "checklist", "hwu", "fow", "banking77", "clinc") if name in text
    ]
