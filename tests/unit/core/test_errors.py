"""Codes and statuses: one derivation, so that status and code can never disagree."""

import pytest

from gateway.core.errors import CODES, GatewayError, UpstreamError
from gateway.core.status import Status, classify_http


@pytest.mark.parametrize("code", CODES)
def test_every_code_makes_a_sound_error(code: str) -> None:
    error = GatewayError(code)

    assert 400 <= error.http <= 599
    assert error.message
    assert error.message[-1] == "."
    assert str(error) == error.message


@pytest.mark.contract("G-STAT")
@pytest.mark.parametrize("code", CODES)
def test_a_client_fault_is_never_worth_repeating(code: str) -> None:
    row = CODES[code]

    if row.http < 500 and row.status not in {Status.RESOURCE_EXHAUSTED, Status.ABORTED}:
        assert row.should_retry is False


@pytest.mark.contract("G-STAT-1", "G-STAT-2")
@pytest.mark.parametrize(
    ("http", "status"),
    [
        (400, Status.INVALID_ARGUMENT),
        (401, Status.UNAUTHENTICATED),
        (402, Status.PERMISSION_DENIED),
        (403, Status.PERMISSION_DENIED),
        (404, Status.NOT_FOUND),
        (408, Status.DEADLINE_EXCEEDED),
        (409, Status.ABORTED),
        (413, Status.INVALID_ARGUMENT),
        (418, Status.UNKNOWN),
        (429, Status.RESOURCE_EXHAUSTED),
        (500, Status.INTERNAL),
        (501, Status.UNIMPLEMENTED),
        (502, Status.UNAVAILABLE),
        (503, Status.UNAVAILABLE),
        (504, Status.DEADLINE_EXCEEDED),
        (520, Status.INTERNAL),
        (529, Status.UNAVAILABLE),
    ],
)
def test_a_provider_s_status_has_one_meaning(http: int, status: Status) -> None:
    assert classify_http(http) is status


def test_an_error_of_the_wire_knows_its_phase_and_whether_anything_was_sent() -> None:
    error = UpstreamError("upstream_unavailable", phase="connect", sent=False, detail="refused")

    assert (error.phase, error.sent, error.detail) == ("connect", False, "refused")
    assert "refused" not in error.message
