"""Stop sequences: sent as far as they are taken, kept by the gateway otherwise, however a stream is cut (B114)."""

from collections.abc import Sequence
from random import Random

import pytest

from gateway.core.answer import (
    Answer,
    Choice,
    Collector,
    Counted,
    Delta,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    events_of,
)
from gateway.core.message import Message, Prompt, Refusal, Sampling, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.fit.prompt import fit
from gateway.dialects.fit.stop_watch import StopWatch
from gateway.dialects.fit.stops import watched
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from tests.support import neutral
from tests.support.rounds import rounds

NO_BLANKS = Grammar(blank_stops=False, most_stops=4)

pytestmark = pytest.mark.bug("K34", "B114")


@pytest.mark.parametrize(
    ("stops", "sent", "kept"),
    [
        (("\n",), (), ("\n",)),
        (("\n\n", " ", "END"), ("END",), ("\n\n", " ")),
        (("",), (), ()),
        (tuple("abcdef"), tuple("abcd"), ("e", "f")),
        (("a", "a", "b"), ("a", "b"), ()),
        (("a", "b"), ("a", "b"), ()),
    ],
)
def test_what_is_not_sent_is_watched_and_noted(
    stops: tuple[str, ...], sent: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    notes = Notes()
    prompt = Prompt(
        "openai_chat", (Message("user", (Text("hi"),)),), sampling=Sampling(stop=stops, n=2)
    )
    made = fit(prompt, NO_BLANKS, notes)

    assert made.sampling == Sampling(stop=sent, n=2)
    assert watched(prompt, NO_BLANKS) == kept
    assert bool(notes.warnings) == (len(sent) < len(set(stops)))
    assert (made is prompt) == (sent == stops)


def run(events: Sequence[Event], stops: Sequence[str]) -> Answer:
    watch = StopWatch(stops)
    collector = Collector("made_up")
    for event in events:
        collector.add(watch.add([event]))
    return collector.answer()


def answer(*parts: Text | ToolCall | Thinking | Refusal) -> Answer:
    calls = any(isinstance(part, ToolCall) for part in parts)
    finish = "tool_calls" if calls else "stop"
    return Answer("made_up", "i", "m", (Choice(0, parts, finish, "end_turn"),), Usage(1, 2))


@pytest.mark.parametrize(
    ("text", "stops", "left"),
    [
        ("one\ntwo", ("\n",), "one"),
        ("one\n\ntwo", ("\n\n",), "one"),
        ("one\ntwo\n", ("\n\n",), None),
        ("aaab", ("aab",), "a"),
        ("abcabd", ("abd", "xyz"), "abc"),
        ("abc", ("abcd", "bc"), "a"),
        ("END", ("END",), ""),
        ("EN", ("END",), None),
        ("👩‍👩‍👧!", ("👧",), "👩‍👩‍"),
    ],
)
def test_a_text_ends_at_the_sequence_that_is_complete_first(
    text: str, stops: tuple[str, ...], left: str | None
) -> None:
    whole = answer(Text(text))
    by_letter: list[Event] = [PartBegan(0, 0, Text(""))]
    by_letter += (Delta(0, 0, letter) for letter in text)
    by_letter += (PartEnded(0, 0), Finished(0, "stop", "end_turn"))
    for found in (StopWatch(stops).whole(whole), run(by_letter, stops)):
        choice = found.choices[0]
        if left is None:
            assert choice == whole.choices[0]
        else:
            assert choice.parts == (Text(left),)
            assert choice.finish == "stop_sequence"
            assert choice.stop_sequence in stops


def test_any_stream_ends_where_the_whole_answer_does_however_it_is_cut() -> None:
    can = neutral.Can("made_up", most_choices=3, one_text=False, huge=0.0, ordered=False)
    cut = 0
    for seed in rounds(200):
        rng = Random(seed)
        whole = neutral.answer(rng, can)
        texts = [part.text for c in whole.choices for part in c.parts if isinstance(part, Text)]
        said = "".join(texts) or "x"
        at = rng.randrange(len(said))
        stops = tuple({said[at : at + rng.randrange(1, 4)], "\n", "zz"})
        expected = StopWatch(stops).whole(whole)
        events = neutral.events(rng, whole, overlap=False)
        found = run(events, stops)

        cut += expected is not whole
        assert [(c.parts, c.finish, c.stop_sequence) for c in found.choices] == [
            (c.parts, c.finish, c.stop_sequence) for c in expected.choices
        ], seed
        assert found.usage == whole.usage
    assert len(rounds(200)) // 10 < cut < len(rounds(200))


def test_only_texts_are_watched() -> None:
    whole = answer(Thinking("one\n"), Refusal("two\n"), ToolCall("c", "find", '{"a":"\\n"}\n'))

    assert run(events_of(whole), ("\n",)) == StopWatch(("\n",)).whole(whole) == whole


def test_a_complete_call_outlives_the_text_behind_it() -> None:
    whole = answer(ToolCall("c", "find"), Text("one\ntwo"), ToolCall("d", "find"))
    expected = (ToolCall("c", "find"), Text("one"))
    for found in (run(events_of(whole), ("\n",)), StopWatch(("\n",)).whole(whole)):
        assert found.choices[0].parts == expected
        assert found.choices[0].finish == "tool_calls"


def test_parts_that_are_open_end_and_usage_still_comes() -> None:
    watch = StopWatch(("\n",))
    events = watch.add(
        [
            PartBegan(0, 0, Text("a")),
            PartBegan(0, 1, ToolCall("c", "find")),
            Delta(0, 0, "b\nc"),
            Delta(0, 1, "{}"),
            PartEnded(0, 0),
            PartEnded(0, 1),
            Finished(0, "stop"),
            Counted(Usage(1, 2)),
        ]
    )

    assert events[-4:] == [
        PartEnded(0, 0),
        PartEnded(0, 1),
        Finished(0, "stop_sequence", "", "\n"),
        Counted(Usage(1, 2)),
    ]
    assert watch.is_cut
