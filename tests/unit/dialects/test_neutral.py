"""The generators of requests, answers and streams tell one and the same thing (K37)."""

from random import Random

import pytest

from gateway.core.answer import Collector, PartBegan
from gateway.core.message import ToolCall, ToolResult
from tests.support.neutral import PARTS, Can, answer, events, prompt
from tests.support.rounds import rounds

EVERYTHING = Can(
    "made_up",
    user=frozenset({"text", "image_url", "image_data", "audio", "file_data"}),
    assistant=frozenset(PARTS),
    tool=frozenset({"text", "image_data"}),
    answer=frozenset(PARTS) - {"image_url"},
    ordered=False,
    one_text=False,
    cached=frozenset({"text", "tool", "result", "call"}),
    most_choices=3,
    logprobs=True,
    finishes=("stop", "length", "content_filter", "refusal", "stop_sequence", "pause"),
)


@pytest.mark.bug("K37")
@pytest.mark.parametrize("can", [EVERYTHING, Can("made_up")], ids=["everything", "little"])
def test_a_stream_collected_is_the_answer_it_tells(can: Can) -> None:
    for seed in rounds(200):
        rng = Random(seed)
        whole = answer(rng, can)
        told = events(rng, whole)
        collector = Collector(can.origin)
        collector.add(told)
        assert collector.answer() == whole, seed
        assert collector.ended
        for choice in whole.choices:
            begun = [e.at for e in told if isinstance(e, PartBegan) and e.choice == choice.index]
            assert begun == sorted(begun), seed


@pytest.mark.parametrize("can", [EVERYTHING, Can("made_up")], ids=["everything", "little"])
def test_every_call_of_a_history_is_answered(can: Can) -> None:
    for seed in rounds(200):
        history = prompt(Random(seed), can).messages
        parts = [part for message in history for part in message.parts]
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        results = [part.call_id for part in parts if isinstance(part, ToolResult)]
        assert calls == results, seed
        assert history[-1].role != "assistant"
