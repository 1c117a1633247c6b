"""The beginning of an answer loses the blanks at its end where a target takes none, and the caller is told (K33)."""

import pytest

from gateway.core import codec
from gateway.core.message import Message, Prompt, Text
from gateway.dialects.losses import Notes
from gateway.dialects.registry import TARGETS
from gateway.dialects.sides import Facts

CLAUDE = [
    ("anthropic_messages", Facts("anthropic", "claude-opus-4-1", 4096)),
    ("bedrock_converse", Facts("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 4096)),
]


@pytest.mark.bug("K33")
@pytest.mark.parametrize(("target", "facts"), CLAUDE)
@pytest.mark.parametrize(("text", "is_told"), [("pre", False), ("pre \n", True)])
def test_blanks_that_are_cut_are_told(target: str, facts: Facts, text: str, is_told: bool) -> None:
    notes = Notes()
    messages = (Message("user", (Text("hi"),)), Message("assistant", (Text(text),)))
    fields = TARGETS[target].write_request(Prompt("openai_chat", messages), facts, notes)

    last = codec.value_of(fields["messages"])[-1]
    assert last["content"][0]["text"] == "pre"
    assert ["the blanks at the end" in warning for warning in notes.warnings] == [True] * is_told
