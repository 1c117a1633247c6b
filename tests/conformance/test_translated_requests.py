"""What was asked in each recorded request, asked by callers of the other formats: the provider gets what it got (K33).

The replay upstream compares what it receives with what it was recorded to take, and answers only that.
"""

from collections.abc import Generator

import pytest

from tests.support.exchanges import Exchange
from tests.support.heard import PATHS
from tests.support.matched import CASES, asked_by, ignored, matched
from tests.support.translated import Stage
from tests.support.unmatched import ALL_RULES, reasons

REFUSED = {400, 422}
LISTED = [
    pytest.param(e, caller, id=f"{e.id}-{caller}")
    for e, caller in CASES
    if e.status not in REFUSED  # what a provider did not take need not be sent to it as it was
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with matched(tmp_path_factory.mktemp("requests")) as stage:
        yield stage


@pytest.mark.bug("K32", "K33", "K34")
@pytest.mark.parametrize(("exchange", "caller"), LISTED)
def test_a_provider_gets_what_it_is_known_to_take(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    asked = asked_by(exchange, caller)
    if asked is None or asked.lost:
        return  # the caller's format has no words for it
    stage.replay.reset()
    answer = stage.client.post(stage.gateway.url + PATHS[caller], json=asked.body)

    log = stage.replay.log()
    assert log, answer.text
    if log[-1]["recording"] is None:
        why = reasons(exchange, log[-1]["body"], ignored(exchange, caller))
        assert why, log[-1]
        assert [each for each in why if each not in ALL_RULES] == []
