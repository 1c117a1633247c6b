"""Sealed state comes back byte for byte at its place, for callers that dropped it, and to its own domain alone (K32)."""

from random import Random

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.message import (
    Message,
    Part,
    Prompt,
    Reasoning,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects.fit.prompt import fit
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.opaque import call_key, restore, seal_key, sealed_of, wanted
from tests.support import neutral
from tests.support.rounds import rounds

CLAUDE = Grammar(makers=frozenset({"anthropic"}), sealed_turns=True, empty_text=False)
GEMINI = Grammar(makers=frozenset({"gemini"}), empty_text=False)
THOUGHT = Thinking("let me see", signature="S==", maker="anthropic", extra={"k": 1})
REDACTED = Thinking(redacted="R==", maker="anthropic")
CALL = ToolCall("toolu_0123456789abcdef", "find", '{"b": 1.0, "a": [2]}')

pytestmark = pytest.mark.bug("K32")


def answer(*parts: Part) -> Answer:
    return Answer("made_up", "i", "m", (Choice(0, parts, "tool_calls"),))


def history(*parts: Part) -> Prompt:
    """Return the next request of a caller that was given these parts and sends back what it can carry."""
    results = tuple(ToolResult(part.id) for part in parts if isinstance(part, ToolCall))
    return Prompt(
        "openai_chat",
        (Message("user", (Text("hi"),)), Message("assistant", parts), Message("tool", results)),
    )


def back(
    kept: dict[str, bytes], prompt: Prompt, grammar: Grammar, domain: str = "d1"
) -> list[Part]:
    """Look up what is wanted and put it back; return what the model's message holds then."""
    found = {each: kept[each] for each in wanted(prompt, grammar) if each in kept}
    return list(restore(prompt, found, domain, Notes()).messages[1].parts)


@pytest.mark.bug("B100")
def test_the_seal_before_a_call_comes_back_at_its_place() -> None:
    said = (THOUGHT, REDACTED, Text("I look"), CALL)
    kept = sealed_of(answer(*said), "d1")
    sent = (Text("I look"), codec.replace(CALL, arguments='{"a":[2],"b":1}'))

    assert back(kept, history(*sent), CLAUDE) == [THOUGHT, REDACTED, *sent]
    assert back(kept, history(sent[1]), CLAUDE) == [THOUGHT, REDACTED, sent[1]]
    open_ = Thinking("let me see")
    assert back(kept, history(open_, *sent), CLAUDE) == [THOUGHT, REDACTED, *sent]


@pytest.mark.bug("B100")
def test_thinking_stays_on_with_what_was_put_back() -> None:
    kept = sealed_of(answer(THOUGHT, CALL), "d1")
    prompt = codec.replace(history(CALL), reasoning=Reasoning(budget=2000))
    found = restore(prompt, kept, "d1", Notes())

    assert fit(found, CLAUDE, Notes()).reasoning == Reasoning(budget=2000)
    assert fit(prompt, CLAUDE, Notes()).reasoning == Reasoning(enabled=False)


@pytest.mark.bug("B108")
def test_every_signature_of_gemini_comes_back_on_its_own_part() -> None:
    t0 = Thinking("hm", signature="T0", maker="gemini")
    said = (
        t0,
        Text("I look", signature="TX", maker="gemini"),
        ToolCall("id_1", "find", "{}", signature="T1", maker="gemini"),
        ToolCall("id_2", "find", ""),
        Text("", signature="TE", maker="gemini"),
        ToolCall("id_3", "find", '{"a":3}', signature="T3", maker="gemini"),
    )
    kept = sealed_of(answer(*said), "d1")
    bare: list[Part] = [
        codec.replace(part, signature="", maker="") if isinstance(part, ToolCall | Text) else part
        for part in said
        if part is not t0 and part != said[4]
    ]

    assert call_key("id_2") not in kept
    assert back(kept, history(*bare), GEMINI) == list(said)
    calls = [part for part in bare if isinstance(part, ToolCall)]
    assert back(kept, history(*calls), GEMINI)[:2] == [t0, said[2]]


def test_interleaved_reasoning_comes_back_before_its_own_call() -> None:
    second = Thinking("again", signature="S2", maker="anthropic")
    other = codec.replace(CALL, id="toolu_fedcba9876543210")
    said = (THOUGHT, Text("a"), CALL, Text("b"), second, other)
    kept = sealed_of(answer(*said), "d1")

    assert back(kept, history(Text("ab"), CALL, other), CLAUDE) == [
        THOUGHT,
        Text("ab"),
        CALL,
        second,
        other,
    ]
    assert back(kept, history(Text("a"), CALL, Text("b"), other), CLAUDE) == list(said)


def test_what_the_caller_sent_wins_and_is_not_asked_for() -> None:
    own = codec.replace(THOUGHT, signature="mine")
    prompt = history(own, CALL)
    kept = sealed_of(answer(THOUGHT, CALL), "d1")

    assert call_key(CALL.id) not in wanted(prompt, CLAUDE)
    assert restore(prompt, kept, "d1", Notes()) is prompt
    signed = codec.replace(CALL, signature="mine", maker="gemini")
    assert wanted(history(signed), GEMINI) == (seal_key(signed),)
    assert wanted(history(CALL), Grammar()) == ()


@pytest.mark.bug("B120")
def test_seals_of_another_account_are_left_out_whoever_brings_them() -> None:
    kept = sealed_of(answer(THOUGHT, REDACTED, CALL), "d1")
    notes = Notes()
    dropped = history(CALL)

    assert restore(dropped, kept, "d2", notes) is dropped
    assert "another account" in notes.warnings[0]
    carried = history(THOUGHT, REDACTED, CALL)
    assert set(wanted(carried, CLAUDE)) == {seal_key(THOUGHT), seal_key(REDACTED)}
    assert back(kept, carried, CLAUDE) == [THOUGHT, REDACTED, CALL]
    restore(carried, kept, "d2", notes)
    assert any("its seal was left out" in text for text in notes.warnings)
    plain = Thinking(THOUGHT.text, extra=THOUGHT.extra)
    assert back(kept, carried, CLAUDE, "d2") == [plain, CALL]


def test_an_id_that_was_used_again_brings_no_seal_of_another_call() -> None:
    call = ToolCall("call_0", "find", '{"a":1}', signature="T", maker="gemini")
    kept = sealed_of(answer(call), "d1")
    again = codec.replace(call, signature="", maker="", arguments='{"a":2}')

    assert back(kept, history(again), GEMINI) == [again]
    other = codec.replace(again, arguments='{"a":1}', name="other")
    assert back(kept, history(other), GEMINI) == [other]
    assert back(kept, history(codec.replace(again, arguments='{ "a": 1 }')), GEMINI) != [again]


def test_a_store_that_does_not_answer_is_noted_and_changes_nothing() -> None:
    notes = Notes()
    prompt = history(CALL)

    assert restore(prompt, None, "d1", notes) is prompt
    assert "did not answer" in notes.warnings[0]
    assert restore(prompt, {}, "d1", Notes()) is prompt
    for broken in (b"", b"{}", b"nonsense", b'{"domain":1}', b"\xff"):
        assert restore(prompt, {call_key(CALL.id): broken}, "d1", Notes()) is prompt


def asked(*texts: str) -> Prompt:
    """Return a conversation of these words, a user's first."""
    roles = ("user", "assistant")
    return Prompt(
        "openai_chat",
        tuple(Message(roles[at % 2], (Text(text),)) for at, text in enumerate(texts)),
    )


SEALED_ANSWERS: list[tuple[Grammar, tuple[Part, ...]]] = [
    (CLAUDE, (THOUGHT, REDACTED, Text("It rains."))),
    (GEMINI, (Thinking("hm"), Text("It rains.", signature="T", maker="gemini"))),
    (GEMINI, (Text("It rains."), Text("", signature="T", maker="gemini"))),
]


@pytest.mark.parametrize(("grammar", "said"), SEALED_ANSWERS)
def test_the_seal_of_an_answer_without_calls_comes_back_in_its_own_conversation_alone(
    grammar: Grammar, said: tuple[Part, ...]
) -> None:
    kept = sealed_of(answer(*said), "d1", asked("How is it?"))
    sealed = [part for part in said if not isinstance(part, Thinking) or part.maker]

    assert back(kept, asked("How is it?", "It rains.", "Why?"), grammar) == sealed
    assert back(kept, asked("How is it?", " It rains.\n", "Why?"), GEMINI)[-1] != Text("It rains.")
    for other in (
        asked("And now?", "It rains.", "Why?"),
        asked("How is it?", "It pours.", "Why?"),
        asked("Hi", "Hello", "How is it?", "It rains."),
    ):
        assert not kept.keys() & set(wanted(other, grammar))
    assert back(kept, asked("How is it?", "It rains."), grammar, "d2") == [Text("It rains.")]
    assert sealed_of(answer(THOUGHT, Text(" ")), "d1", asked("Hi")).keys() == {seal_key(THOUGHT)}


def test_words_behind_a_call_and_words_that_came_sealed_are_told_apart() -> None:
    second = Thinking("again", signature="S2", maker="anthropic")
    said = (THOUGHT, Text("a"), CALL, second, Text("done"))
    kept = sealed_of(answer(*said), "d1", asked("hi"))

    assert back(kept, history(Text("a"), CALL, Text("done")), CLAUDE) == list(said)
    own = codec.replace(second, signature="mine")
    carried = history(THOUGHT, Text("a"), CALL, own, Text("done"))
    assert restore(carried, kept, "d1", Notes()) is carried
    assert all(not key.startswith("turn:") for key in wanted(carried, CLAUDE))


def test_nothing_is_kept_of_an_answer_without_seals() -> None:
    assert sealed_of(answer(Thinking("hm"), Text("a"), CALL), "d1") == {}


def test_any_answer_comes_back_whole_from_what_chat_can_carry() -> None:
    can = neutral.Can(
        "made_up",
        assistant=frozenset({"text", "sealed", "redacted", "call", "sealed_call"}),
        answer=frozenset({"text", "sealed", "redacted", "call", "sealed_call"}),
        most_choices=2,
        empty_text=False,
        huge=0.0,
    )
    restored = 0
    for seed in rounds(300):
        whole = neutral.answer(Random(seed), can)
        kept = sealed_of(whole, "d1")
        assert all(isinstance(codec.encode(key), bytes) for key in kept)
        for choice in whole.choices:
            calls = [part for part in choice.parts if isinstance(part, ToolCall)]
            if not calls:
                continue
            sent = [
                codec.replace(part, signature="", maker="") if isinstance(part, ToolCall) else part
                for part in choice.parts
                if not isinstance(part, Thinking)
            ]
            restored += 1
            rules = Grammar(makers=frozenset({"anthropic", "gemini"}))
            assert back(kept, history(*sent), rules) == list(choice.parts), seed
    assert restored > len(rounds(300)) // 3
