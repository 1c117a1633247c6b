"""The small parts of the cache: wishes, scopes, pieces of a replay, what is kept of an answer."""

import random
from math import inf
from typing import Any

import pytest

from gateway.core.answer import Answer, Choice, Collector
from gateway.core.call import CacheWish, Run
from gateway.core.message import Part, Refusal, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.middleware.semantic_cache import stored
from gateway.middleware.semantic_cache.admission import Admission
from gateway.middleware.semantic_cache.options import SemanticCacheOptions
from gateway.middleware.semantic_cache.replay import cut, pieces
from gateway.middleware.semantic_cache.scope import Scoping
from gateway.middleware.semantic_cache.wish import read_wish

ADMISSION = Admission(SemanticCacheOptions(semantic=False))


def run(cache_control: str = "", **fields: Any) -> Run:
    made = Run("r", "chat", 0.0, 1.0)
    made.tenant = "acme"
    header = {b"cache-control": cache_control.encode()} if cache_control else {}
    made.header = {**header, **fields.pop("headers", {})}.get
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def answer(*parts: Part, finish: Any = "stop", native: str = "stop") -> Answer:
    return Answer("openai_chat", "id-1", "m", (Choice(0, parts, finish, native),), Usage(3, 4), 7)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (run(), (True, True, False, 60.0, 60.0, 0.0, inf)),
        (run("no-store"), (False, False, False, 60.0, 60.0, 0.0, inf)),
        (run("No-Cache"), (False, True, False, 60.0, 60.0, 0.0, inf)),
        (run("only-if-cached, max-age=5"), (True, True, True, 60.0, 5.0, 0.0, 5.0)),
        (run("max-age=500"), (True, True, False, 60.0, 60.0, 0.0, 500.0)),
        (run(cache_wish=CacheWish("off")), (False, False, False, 60.0, 60.0, 0.0, inf)),
        (run(cache_wish=CacheWish("refresh")), (False, True, False, 60.0, 60.0, 0.0, inf)),
        (
            run(cache_wish=CacheWish(ttl_s=5.0, threshold=0.9)),
            (True, True, False, 5.0, 5.0, 0.9, 5.0),
        ),
        (run(cache_wish=CacheWish(ttl_s=500.0)), (True, True, False, 60.0, 60.0, 0.0, 500.0)),
    ],
)
def test_callers_only_make_it_stricter(made: Run, expected: tuple[Any, ...]) -> None:
    assert tuple(read_wish(made, 60.0)) == expected


@pytest.mark.bug("K19")
@pytest.mark.contract("W-CACHE-9", "W-CACHE-10")
def test_every_owner_has_a_pool_of_its_own() -> None:
    pools = [
        Scoping(SemanticCacheOptions.model_validate({"semantic": False, **options})).pool(made, "f")
        for options in (
            {},
            {"namespace": "b"},
            {"scope": "tenant"},
            {"scope": "shared:a"},
            {"scope": "shared:b"},
            {"scope": "header:x"},
        )
        for made in (run(), run(session="s"), run(session="t"), run(headers={b"x": b"1"}))
    ]
    partitions = {pool.partition for pool in pools if pool is not None}

    # Sessions: 3 twice; the others do not look at them: 1 and 1 and 1; the header: with and without.
    assert len(partitions) == 3 + 3 + 1 + 1 + 1 + 2


@pytest.mark.bug("K22")
@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (answer(Text("hi")), ""),
        (answer(Thinking("hm"), Text("hi")), ""),
        (answer(Text("hi"), finish="length"), "length"),
        (answer(Text("hi"), native=""), "unfinished"),
        (answer(Text("hi"), finish="content_filter"), "content_filter"),
        (answer(Text("hi"), finish="refusal"), "refusal"),
        (answer(Text("hi"), finish="stop_sequence"), "stop_sequence"),
        (answer(Text("hi"), finish="pause"), "pause"),
        (answer(Text("hi"), ToolCall("c", "f"), finish="tool_calls"), "tool_calls"),
        (answer(Text("hi"), ToolCall("c", "f")), "tool_calls"),
        (answer(Refusal("no")), "not_text"),
        (answer(Text("")), "empty"),
        (answer(), "empty"),
        (Answer("openai_chat", "", "m", ()), "empty"),
    ],
)
def test_only_good_answers_are_kept(made: Answer, reason: str) -> None:
    assert ADMISSION.refuses(made) == reason


@pytest.mark.bug("K22")
def test_an_answer_is_kept_without_what_belonged_to_its_request() -> None:
    parts = (Thinking("hm", signature="s", maker="anthropic"), Text("h\u00e9llo"))
    made = answer(*parts)
    data = stored.encode(made)
    back = stored.decode(data, 99)

    assert b"id-1" not in data
    assert b"usage" not in data
    assert (back.id, back.usage, back.created) == ("", stored.ZERO, 99)
    assert back.choices[0].parts == parts


@pytest.mark.contract("O-3")
def test_a_text_is_cut_into_pieces_that_are_neither_small_nor_large() -> None:
    draw = random.Random(3)
    for _ in range(300):
        text = "".join(draw.choice("ab \u00e9\U0001f600") for _ in range(draw.randrange(400)))
        found = list(cut(text))

        assert "".join(found) == text
        assert all(20 <= len(piece) <= 80 for piece in found[:-1])
        assert len(found[-1:] or "") <= 80


@pytest.mark.contract("O-3")
def test_pieces_tell_the_whole_answer() -> None:
    made = stored.decode(stored.encode(answer(Thinking("hm " * 90), Text("word " * 500))), 5)
    collector = Collector("openai_chat")
    for events in pieces(made):
        collector.add(events)

    assert collector.ended
    assert collector.answer() == made
