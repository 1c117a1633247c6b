"""A reason for the end that callers have no word for is told by the nearest, and named (K35)."""

import json

import pytest

from gateway.core.message import Message, Prompt, Text
from gateway.dialects.base import StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import Translation, write

PROMPT = Prompt("x", (Message("user", (Text("Hello"),)),))
ANSWERS = {
    "gemini": ('{"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": %s}]}', "OTHER", "SAFETY"),
    "openai_chat": ('{"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": %s}]}', "tired", "stop"),
    "anthropic_messages": (
        '{"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": %s}', "tired", "end_turn",
    ),
    "cohere_v2": ('{"message": {"content": [{"type": "text", "text": "a"}]}, "finish_reason": %s}', "NEW", "COMPLETE"),
    "bedrock_converse": ('{"output": {"message": {"content": [{"text": "a"}]}}, "stopReason": %s}', "new", "end_turn"),
}  # fmt: skip


def translation(target: str, caller: str, notes: Notes) -> Translation:
    side, facts = TARGETS[target], Facts(target, "m")
    told = Told("req", "m", 1, PROMPT)
    return write(PROMPT, CALLERS[caller], side, facts, side.grammar(facts), told, notes).translation


@pytest.mark.bug("K35")
@pytest.mark.parametrize("caller", sorted(CALLERS))
@pytest.mark.parametrize("target", ANSWERS)
def test_only_ends_without_a_word_are_named(target: str, caller: str) -> None:
    body, odd, usual = ANSWERS[target]
    for native, is_named in ((odd, True), (usual, False)):
        notes = Notes()
        answered = (body % json.dumps(native)).encode()

        translation(target, caller, notes).read_whole(
            answered, StreamRules(hide_usage=False, done_required=False)
        )

        named = [each for each in notes.warnings if each.startswith(f"{native}: ")]
        assert bool(named) is is_named, notes.warnings


@pytest.mark.bug("K35")
def test_a_stream_names_it_too() -> None:
    notes = Notes()
    stream = translation("gemini", "openai_chat", notes).watch(
        StreamRules(hide_usage=False, done_required=False)
    )
    piece = ANSWERS["gemini"][0] % '"MALFORMED_FUNCTION_CALL"'

    stream.feed(f"data: {piece}\n\n".encode())
    stream.end(complete=True)

    assert any(each.startswith("MALFORMED_FUNCTION_CALL: ") for each in notes.warnings)
