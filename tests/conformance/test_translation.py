"""Every recorded answer of every provider, given to callers of every format: the same words, calls and numbers (K35).

The folder is `RECORDINGS`, or the one beside the project.
"""

from collections.abc import Generator, Iterable

import pytest

from tests.support.exchanges import Exchange
from tests.support.folder import folder, raws
from tests.support.heard import READERS
from tests.support.same import assert_error_told, assert_failure_told, assert_same, has_failed
from tests.support.shared import absent
from tests.support.translated import CALLERS, EXCHANGES, Stage, translated

CUTS = ("event", "1", "7", "random,seed=1")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with translated(tmp_path_factory.mktemp("translation")) as stage:
        yield stage


def cases(exchanges: Iterable[Exchange]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", [pytest.param(e, id=e.id) for e in exchanges])


def good(*, stream: bool) -> list[Exchange]:
    begun = [e for e in EXCHANGES if e.status < 400 and e.stream is stream]
    return [e for e in begun if not has_failed(e)]


def test_there_are_exchanges() -> None:
    if folder() is None:
        absent("../shared with the recordings of providers")
    assert raws(), f"{folder()} holds no recordings"
    if not EXCHANGES:
        pytest.skip("no recording here is a call of a model")


@cases(good(stream=False))
@pytest.mark.parametrize("caller", CALLERS)
def test_a_plain_answer_says_the_same_in_every_format(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    answer = stage.ask(exchange, caller)

    assert answer.status_code == 200, answer.text
    assert_same(READERS[caller](answer.content, stream=False), exchange, caller)


@cases(good(stream=True))
@pytest.mark.parametrize("caller", CALLERS)
def test_a_stream_says_the_same_in_every_format_however_it_is_cut(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    for cut in CUTS:
        answer = stage.ask(exchange, caller, f"chunk={cut}")

        assert answer.status_code == 200, answer.text
        assert_same(READERS[caller](answer.content, stream=True), exchange, caller)


@cases(e for e in EXCHANGES if e.status < 400 and has_failed(e))
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.bug("K04")
def test_an_answer_that_failed_under_way_is_an_error_in_every_format(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    for cut in CUTS:
        assert_failure_told(stage.ask(exchange, caller, f"chunk={cut}"), exchange, caller)


@cases(e for e in EXCHANGES if e.status >= 400)
@pytest.mark.parametrize("caller", CALLERS)
def test_an_error_is_told_in_the_callers_format(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    # Each caller asks under a name of its own: a model that was limited is left alone for a while.
    answer = stage.ask(exchange, caller, f"seed={CALLERS.index(caller)}")

    assert_error_told(answer, exchange, caller)
