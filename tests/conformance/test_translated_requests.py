"""What was asked in each recorded request, asked by callers of the other formats: the provider gets what it got (K33).

The replay upstream compares what it receives with what it was recorded to take, and answers only that.
"""

from collections.abc import Generator

import pytest

from tests.support.asked import FORMATS
from tests.support.exchanges import Exchange
from tests.support.heard import PATHS
from tests.support.matched import CASES, KNOWN, asked_by, matched
from tests.support.translated import Stage
from tests.support.unmatched import UNMATCHED, reason_of

LISTED = [pytest.param(e, caller, id=f"{e.id}-{caller}") for e, caller in CASES]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with matched(tmp_path_factory.mktemp("requests")) as stage:
        yield stage


@pytest.mark.bug("K32", "K33", "K34")
@pytest.mark.parametrize(("exchange", "caller"), LISTED)
def test_a_provider_gets_what_it_is_known_to_take(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    reason = reason_of(exchange.id, caller)
    asked = asked_by(exchange, caller)
    if asked is None or asked.lost:
        assert reason is None, "listed, though the caller's format cannot say it anyhow"
        return
    stage.replay.reset()
    answer = stage.client.post(stage.gateway.url + PATHS[caller], json=asked.body)

    log = stage.replay.log()
    assert log, answer.text
    if reason is not None:
        assert log[-1]["recording"] is None, f"matches now; take it off the list: {reason}"
        return
    assert log[-1]["recording"] is not None, log[-1]
    assert "replay_no_match" not in answer.text


def test_what_is_listed_as_unmatched_was_recorded() -> None:
    ids = {exchange.id for exchange in KNOWN}
    listed = {case for cases in UNMATCHED.values() for case in cases}
    known = {f"{e.id} {caller}" for e in KNOWN for caller in FORMATS}
    if ids >= {case.partition(" ")[0] for case in listed}:
        assert listed <= known
