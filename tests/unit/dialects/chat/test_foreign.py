"""What a relay takes out of messages of the model: reasoning that this provider does not know (K32)."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.dialects.chat.foreign import without_foreign
from gateway.dialects.losses import Notes

Json = dict[str, Any]
NONE = frozenset[str]()
OPEN = frozenset({"reasoning", "reasoning_content"})
DETAILED = OPEN | {"reasoning_details"}
GOOGLE = frozenset({"thought_signature"})
OURS: Json = {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic"}
THEIRS: Json = {**OURS, "format": "anthropic-claude-v1"}
SEAL = {"google": {"thought_signature": "c2ln"}}
CALL: Json = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SAID: Json = {"role": "assistant", "content": "Hi", "reasoning_content": "hm", "reasoning": "hm"}

pytestmark = pytest.mark.bug("K32")


def left(message: Json, known: frozenset[str]) -> tuple[Json, list[str]]:
    """Return what is left of one message, and what was told."""
    notes = Notes()
    found = codec.value_of(without_foreign(codec.raw([message]), known, notes))
    return found[0], [text.partition(":")[0] for text in notes.warnings]


def test_open_reasoning_goes_to_those_who_take_it() -> None:
    bare = {"role": "assistant", "content": "Hi"}

    assert left(SAID, OPEN) == (SAID, [])
    assert left(SAID, NONE) == (bare, ["messages[0].reasoning", "messages[0].reasoning_content"])
    assert left({**SAID, "reasoning": None}, NONE) == (bare, ["messages[0].reasoning_content"])
    assert left(SAID, frozenset({"reasoning"}))[0] == {**bare, "reasoning": "hm"}


def test_what_another_maker_sealed_goes_to_nobody_else() -> None:
    def said(*entries: Json) -> Json:
        return {"role": "assistant", "content": "Hi", "reasoning_details": list(entries)}

    bare = {"role": "assistant", "content": "Hi"}
    assert left(said(OURS, THEIRS), DETAILED) == (said(THEIRS), ["messages[0].reasoning_details"])
    assert left(said(OURS), DETAILED)[0] == bare
    assert left(said(THEIRS), OPEN)[0] == bare
    assert left(said(THEIRS), DETAILED) == (said(THEIRS), [])


def test_seals_of_calls_go_to_gemini_alone() -> None:
    sealed = {"role": "assistant", "tool_calls": [{**CALL, "extra_content": SEAL}, CALL]}

    assert left(sealed, GOOGLE) == (sealed, [])
    assert left(sealed, OPEN) == (
        {"role": "assistant", "tool_calls": [CALL, CALL]},
        ["the seal in messages[0]"],
    )


BLOCKS = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
THOUGHT: Json = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
HIDDEN: Json = {"type": "redacted_thinking", "data": "c2ln"}
WORDS: Json = {"type": "text", "text": "Hi"}


@pytest.mark.parametrize(
    "name", ["reasoning", "reasoning_content", "reasoning_details", "thinking_blocks"]
)
def test_each_member_is_found_alone(name: str) -> None:
    bare = {"role": "assistant", "content": "Hi"}
    value = BLOCKS if name == "thinking_blocks" else [OURS] if "details" in name else "hm"

    assert left({**bare, name: value}, NONE) == (bare, [f"messages[0].{name}"])


@pytest.mark.parametrize("thought", [THOUGHT, HIDDEN])
def test_parts_that_are_reasoning_go_to_those_who_take_it(thought: Json) -> None:
    said = {"role": "assistant", "content": [thought, WORDS]}
    asked = {"role": "user", "content": [thought, WORDS]}

    assert left(said, frozenset({"thinking"})) == (said, [])
    assert left(said, OPEN) == (
        {"role": "assistant", "content": [WORDS]},
        ["messages[0].content (thinking)"],
    )
    assert left({**said, "content": [thought]}, OPEN)[0]["content"] == ""
    assert left(asked, OPEN) == (asked, [])


@pytest.mark.parametrize(
    "body",
    [
        b'[ {"role":"user","content":"say \\"reasoning\\" 1.0e1"} ]',
        b'[{"role":"user","reasoning":"x"}]',
        b'{"reasoning":1}',
        b'["reasoning", {"role":"assistant","reasoning_details":{}, "tool_calls":{}}]',
        b'[{"role":"assistant", "reasoning_details":[{}, 1], "tool_calls":[1, {}]}]',
    ],
)
def test_what_holds_none_stays_byte_for_byte(body: bytes) -> None:
    messages = codec.Raw(body)

    assert without_foreign(messages, DETAILED, Notes()) is messages


def test_only_the_messages_at_fault_are_written_anew() -> None:
    other = b'{ "role" : "user","content":"1"}'
    body = b"[" + other + b"," + codec.encode(SAID) + b"]"

    found = bytes(without_foreign(codec.Raw(body), NONE, Notes()))

    assert found == b"[" + other + b',{"role":"assistant","content":"Hi"}]'
