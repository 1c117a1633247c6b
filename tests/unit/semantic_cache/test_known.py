"""A request that comes again byte for byte is not read again; whatever may change its answer makes it another one."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.call import CacheWish, Call, Run
from gateway.dialects.registry import DIALECTS
from gateway.middleware.semantic_cache.fingerprint import Ask
from gateway.middleware.semantic_cache.known import Reading, Readings
from gateway.middleware.semantic_cache.written import Written
from gateway.testing.runner import Model, Original

QUESTION: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "How far is the moon?"}],
}


class Desk:
    """Readings, and how often one was made."""

    def __init__(self) -> None:
        self.made = 0
        self.readings = Readings(self._bars)

    def _bars(self, call: Call, ask: Ask) -> str:
        del call, ask
        self.made += 1
        return ""

    def read(self, body: dict[str, Any], **about: Any) -> Reading:
        fields = {name: codec.raw(value) for name, value in body.items()}
        run = Run("req_1", about.pop("endpoint", "chat"), 0.0, 9.0)
        run.tenant, run.asked, run.dialect = "t", "m", DIALECTS["openai_chat"]
        model = about.pop("model", "m")
        for name, value in about.items():
            setattr(run, name, value)
        return self.readings.read(Call(run, Model(model), Original(fields)), fields)


@pytest.mark.contract("W-CACHE-2")
def test_the_same_request_is_read_once() -> None:
    desk = Desk()

    first, second = desk.read(QUESTION), desk.read(QUESTION)

    assert first is second
    assert desk.made == 1


@pytest.mark.bug("K20")
@pytest.mark.parametrize(
    "about",
    [
        {"endpoint": "messages"},
        {"asked": "other"},
        {"model": "other"},
        {"agent": "a"},
        {"passed": ((b"anthropic-beta", b"x"),)},
        {"cache_wish": CacheWish(context=b'{"a":1}')},
        {"dialect": DIALECTS["anthropic_messages"]},
    ],
    ids=lambda about: next(iter(about)),
)
def test_what_may_change_an_answer_beside_the_body_is_read_anew(about: dict[str, Any]) -> None:
    desk = Desk()

    first, second = desk.read(QUESTION), desk.read(QUESTION, **about)

    assert first is not second
    assert desk.made == 2


@pytest.mark.bug("K20")
@pytest.mark.parametrize(
    "more",
    [{"temperature": 0.1}, {"stream": True}, {"x": 1}, {"messages": [{"role": "user", "content": "How far"}]}],
    ids=str,
)  # fmt: skip
def test_every_field_of_the_body_counts(more: dict[str, Any]) -> None:
    desk = Desk()

    assert desk.read(QUESTION) is not desk.read(QUESTION | more)


def test_the_oldest_reading_is_forgotten_and_long_requests_are_not_held() -> None:
    desk = Desk()
    long = QUESTION | {"messages": [{"role": "user", "content": "x" * 140_000}]}

    kept = desk.read(QUESTION)
    for number in range(255):
        desk.read(QUESTION | {"seed": number})
    assert desk.read(QUESTION) is kept, "what is asked for stays"
    for number in range(255, 600):
        desk.read(QUESTION | {"seed": number})

    assert desk.read(QUESTION) is not kept
    assert desk.read(long) is not desk.read(long)


def test_long_requests_push_out_others_by_their_bytes() -> None:
    desk = Desk()
    kept = desk.read(QUESTION)
    for number in range(10, 40):
        desk.read(QUESTION | {"messages": [{"role": "user", "content": f"{number}" * 50_000}]})

    assert desk.read(QUESTION) is not kept


def test_an_answer_comes_again_when_the_same_one_is_served_twice_in_a_row() -> None:
    reading = Desk().read(QUESTION)

    assert [reading.comes_again(each) for each in (b"a", b"b", b"b", b"b", b"a", b"a")] == [
        False, False, True, False, False, True,
    ]  # fmt: skip


def test_what_is_kept_as_written_counts_for_the_room_of_readings() -> None:
    desk = Desk()
    first = desk.read(QUESTION)
    first.written = Written(b"x" * (1 << 21), 0, [], [])

    assert desk.read(QUESTION) is first
    desk.read({**QUESTION, "seed": 1})
    assert desk.read(QUESTION) is not first
