"""How fragments of tool calls find their calls: by index, id and name, in any order (K03)."""

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from gateway.core.answer import Collector, PartEnded
from gateway.core.errors import UpstreamError
from gateway.core.message import ToolCall
from gateway.dialects.base import StreamRules
from gateway.dialects.chat.stream_reader import ChatReader
from tests.support.chat_chunks import DONE, Json, chunk, failure, said
from tests.support.neutral import Can, arguments, word
from tests.support.rounds import rounds


def call(index: int | None = None, known: str = "", name: str = "", words: str = "") -> Json:
    """Return a fragment of a call that says no more than it is given."""
    said: Json = {"function": {**({"name": name} if name else {}), "arguments": words}}
    if known:
        said["id"] = known
    if index is not None:
        said["index"] = index
    return said


def calling(*fragments: Json) -> bytes:
    return b"".join(chunk({"tool_calls": [each]}) for each in fragments) + chunk({}, "tool_calls")


@pytest.mark.bug("K03", "B004")
@pytest.mark.parametrize(
    "fragments",
    [
        [call(0, "a", "f", "{"), call(0, words="}"), call(1, "b", "g", "{"), call(1, words="}")],
        [call(0, "a", "f", "{"), call(1, "b", "g", "{"), call(0, words="}"), call(1, words="}")],
        [call(0, "a", "f", "{}"), call(0, "b", "g", "{"), call(0, words="}")],
        [call(None, "a", "f", "{}"), call(None, "b", "g", "{}")],
        [call(None, "a", "f", "{"), call(None, "a", words="}"), call(None, "b", "g", "{}")],
        [call(0, "a", "f", "{"), call(0, "a", "f", "}"), call(1, "b", "g", "{}")],
        [call(3, "a", "f", "{}"), call(7, "b", "g", "{}")],
        [call(0, "a", "f"), call(0, words="{}"), call(1, "b", "g"), call(1, words="{}")],
        [call(0, "a"), call(0, name="f", words="{}"), call(1, "b", "g", "{}")],
        [call(0, "a", "f", "{}"), call(0), call(1, "b", "g", "{}"), call(None)],
    ],
)
def test_fragments_find_their_calls(fragments: Sequence[Json]) -> None:
    assert said(calling(*fragments)) == (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))


@pytest.mark.bug("K03")
def test_an_empty_id_does_not_overwrite_the_first() -> None:
    later = {"index": 0, "id": "", "type": "function", "function": {"arguments": "}"}}

    assert said(calling(call(0, "a", "f", "{"), later)) == (ToolCall("a", "f", "{}"),)


@pytest.mark.bug("K03")
def test_the_same_call_twice_is_two_calls() -> None:
    twice = calling(call(0, "", "f", '{"a":1}'), call(0, "", "f", '{"a":1}'))

    assert said(twice) == (ToolCall("", "f", '{"a":1}'), ToolCall("", "f", '{"a":1}'))


@pytest.mark.bug("K03")
@pytest.mark.parametrize(
    "fragments",
    [
        [call(0, words="{}")],
        [call(None, words="{}")],
        [call(0, "a", words="{}")],
        [call(0, "a", "f", "{}"), call(None, words="{}")],
        [call(0, "a", "f", "{}"), call(1, "b", "g", "{}"), call(0, words='{"more": 1}')],
    ],
)
def test_a_fragment_without_a_call_is_an_error(fragments: Sequence[Json]) -> None:
    assert failure(calling(*fragments)) == "upstream_invalid_response"


@pytest.mark.bug("K01", "K03")
def test_what_came_before_a_fragment_without_a_call_is_not_lost() -> None:
    reader = ChatReader(StreamRules(False, True))

    events = reader.feed(chunk({"content": "a"}) + calling(call(0, words="{}")) + DONE)

    collector = Collector("openai_chat")
    collector.add(events)
    assert len(events) == 3
    assert not collector.ended
    with pytest.raises(UpstreamError):
        reader.feed(b"")


@pytest.mark.bug("K03")
def test_random_calls_in_random_pieces_stay_apart() -> None:
    for seed in rounds(60):
        rng = Random(seed)
        can = Can("openai_chat", no_arguments='{"a":1}', huge=0)
        calls = [ToolCall(word(rng), word(rng), arguments(rng, can)) for _ in range(4)]
        rest = [list(fragments(rng, at, each)) for at, each in enumerate(calls)]
        mixed: list[Json] = []
        begun = 1
        while any(rest):
            at = rng.randrange(begun)
            if rest[at]:
                mixed.append(rest[at].pop(0))
                begun = min(max(begun, at + 2), len(rest))
            elif begun < len(rest):
                begun += 1
        opened = [each["id"] for each in mixed if "name" in each["function"]]
        calls.sort(key=lambda each: opened.index(each.id))
        assert said(calling(*mixed)) == tuple(calls), seed


def fragments(rng: Random, index: int, made: ToolCall) -> Iterator[Json]:
    """Yield a call in pieces; the identity may be repeated, as some providers do."""
    yield call(index, made.id, made.name)
    words = made.arguments
    while words:
        size = rng.choice((1, 3, len(words)))
        known = made.id if rng.random() < 0.2 else ""
        yield call(index, known, words=words[:size])
        words = words[size:]


def test_a_call_that_nothing_can_follow_ends_when_the_next_begins() -> None:
    reader = ChatReader(StreamRules(False, True))
    one, other = call(0, "a", "f", '{"b": {}}'), call(1, "b", "g")

    assert not [e for e in reader.feed(chunk({"tool_calls": [one]})) if isinstance(e, PartEnded)]
    assert PartEnded(0, 0) in reader.feed(chunk({"tool_calls": [other]}))


def test_calls_of_other_kinds_are_read() -> None:
    custom = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": "l"}}
    more = {"index": 0, "custom": {"input": "s"}}
    sealed = {
        **call(1, "b", "g", "{}"),
        "extra_content": {"google": {"thought_signature": "c2ln"}},
    }
    assert said(calling(custom, more, sealed)) == (
        ToolCall("a", "run", "ls", custom=True),
        ToolCall("b", "g", "{}", signature="c2ln", maker="gemini"),
    )
    legacy = chunk({"function_call": {"name": "f", "arguments": "{"}}) + chunk(
        {"function_call": {"arguments": "}"}}, "function_call"
    )
    assert said(legacy) == (ToolCall("", "f", "{}"),)
    as_object = {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"b": 1}}}
    assert said(calling(as_object)) == (ToolCall("a", "f", '{"b":1}'),)
