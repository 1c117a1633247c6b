"""Warnings in the header of an answer: one visible line, whatever names callers choose."""

import pytest

from gateway.server.head import checked_lines
from gateway.server.heads import told


@pytest.mark.bug("K34", "K39")
@pytest.mark.parametrize(
    "name", ["a\nb", "\x00", "a\r\nset-cookie: x", "né", "\U0001f600", "\ud800", "x" * 5000]
)
def test_any_name_can_be_told(name: str) -> None:
    line = told([f"{name}: was left out", "second"])

    assert checked_lines(((b"x-gateway-warnings", line),))
    assert len(line) <= 2048
    assert b"\n" not in line


def test_what_does_not_fit_is_counted() -> None:
    line = told([f"field_{number}: is not known" for number in range(400)])

    whole, _, more = line.rpartition(b"; and ")
    assert more.endswith(b" more")
    assert whole.count(b"is not known") + int(more.split()[0]) == 400
    assert len(line) <= 2048
