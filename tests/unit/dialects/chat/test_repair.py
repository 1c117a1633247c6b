"""Messages that are relayed: what a provider insists on beyond OpenAI's own rules is seen to (K33)."""

from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.dialects.chat.history_rules import HISTORY_RULES, may_break
from gateway.dialects.chat.manners import MANNERS
from gateway.dialects.chat.repair import repaired
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write
from gateway.providers.registry import PROVIDERS

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hi"}
SYSTEM: Json = {"role": "system", "content": "Be brief."}
SAID: Json = {"role": "assistant", "content": "Hello"}
NEXT: Json = {"role": "user", "content": "Continue."}
OK: Json = {"role": "assistant", "content": "OK"}
OPENAI_ID, GOOD_ID = "call_PTLP8xhu3uwZk4l3nlnrrJha", "abcdefghi"

pytestmark = pytest.mark.bug("K33", "B104")


def called(*ids: str, content: str | None = None) -> Json:
    """Return a message of calls with these ids."""
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": each, "type": "function", "function": function} for each in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(call_id: str, content: Any = "42") -> Json:
    """Return what a tool returned."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def relayed(kind: str, *messages: Json, **fields: Any) -> tuple[list[Json], list[str]]:
    """Return the messages that a kind of provider gets, and what was told."""
    split = {name: codec.raw(each) for name, each in {**fields, "messages": messages}.items()}
    found = repaired(split, HISTORY_RULES[kind])
    return (list(messages), []) if found is None else (codec.value_of(found[0]), list(found[1]))


def is_untouched(kind: str, *messages: Json) -> bool:
    return repaired({"messages": codec.raw(list(messages))}, HISTORY_RULES[kind]) is None


def test_every_rule_belongs_to_a_kind_whose_requests_are_relayed() -> None:
    for kind in MANNERS:
        assert "chat" in PROVIDERS[kind].endpoints, kind
    assert "openai_compatible" not in HISTORY_RULES


@pytest.mark.parametrize("kind", sorted(HISTORY_RULES))
def test_what_keeps_the_rules_is_relayed_byte_for_byte_and_not_read(kind: str) -> None:
    call = called(GOOD_ID, content="Wait")
    call["reasoning_content"] = "hm"
    history = [SYSTEM, USER, call, result(GOOD_ID), SAID, USER]

    raw = codec.raw(history)
    assert not may_break(bytes(raw), HISTORY_RULES[kind])
    assert is_untouched(kind, *history)
    assert is_untouched(kind, USER)


def test_mistral_gets_ids_of_nine_letters_and_digits_the_same_in_every_turn() -> None:
    first = [USER, called(OPENAI_ID, "call_2"), result(OPENAI_ID), result("call_2"), SAID, USER]
    found, told = relayed("mistral", *first)

    ids = [call["id"] for call in found[1]["tool_calls"]]
    assert all(len(each) == 9 and each.isascii() and each.isalnum() for each in ids)
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in found[2:4]] == ids
    assert not told
    later, _ = relayed("mistral", *first, called("call_3"), result("call_3"))
    assert later[:6] == found


def test_openai_gets_no_id_that_is_too_long_for_it() -> None:
    long = "call_" + "x" * 60
    found, _ = relayed("openai", USER, called(long), result(long))

    assert len(found[1]["tool_calls"][0]["id"]) <= 40
    assert found[2]["tool_call_id"] == found[1]["tool_calls"][0]["id"]
    assert is_untouched("openai", USER, called(OPENAI_ID), result(OPENAI_ID), USER)


def test_mistral_hears_the_model_between_results_and_the_user() -> None:
    call = called(GOOD_ID, content="Wait")
    found, told = relayed("mistral", USER, call, result(GOOD_ID), USER, SAID)

    assert found == [USER, call, result(GOOD_ID), OK, USER, {**SAID, "prefix": True}]
    assert [text.partition(":")[0] for text in told] == ["messages"]


def test_a_system_prompt_in_the_middle_is_marked_where_it_must_stand_in_front() -> None:
    for kind in ("mistral", "perplexity"):
        found, told = relayed(kind, USER, SAID, SYSTEM)
        text = "<system_message>\nBe brief.\n</system_message>"
        assert found == [USER, SAID, {"role": "user", "content": text}], kind
        assert told[0].startswith("messages[2]: stands between"), kind
    assert is_untouched("mistral", SYSTEM, SYSTEM, USER)
    assert is_untouched("deepseek", USER, SAID, SYSTEM)


def test_system_prompts_alone_are_followed_by_the_user() -> None:
    assert relayed("mistral", SYSTEM)[0] == [SYSTEM, NEXT]
    assert relayed("perplexity", SYSTEM)[0] == [SYSTEM, NEXT]


def test_perplexity_hears_user_and_model_in_turns() -> None:
    found, told = relayed("perplexity", SYSTEM, SAID, USER, {**USER, "content": "Bye"}, SAID, SAID)

    both = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "Bye"}]
    twice = [{"type": "text", "text": "Hello"}] * 2
    assert found == [
        SYSTEM,
        NEXT,
        SAID,
        {"role": "user", "content": both},
        {"role": "assistant", "content": twice},
        NEXT,
    ]
    assert len(told) == 2


@pytest.mark.parametrize("kind", ["mistral", "moonshot", "perplexity", "gemini_compatible"])
def test_a_message_that_says_nothing_is_filled_or_left_out(kind: str) -> None:
    empty: list[Any] = ["", " \n", [{"type": "text", "text": ""}], None]
    for content in empty:
        blank = {"role": "assistant", "content": content}
        found, told = relayed(kind, USER, SAID, USER, blank)
        assert found == [USER, SAID, USER], content
        assert not told
        found, told = relayed(kind, {"role": "user", "content": content})
        assert found == [{"role": "user", "content": "(empty message)"}]
        assert told == [
            "messages[0]: is empty, which this target does not take; a placeholder was put in its place"
        ]
    found, _ = relayed(kind, USER, called(GOOD_ID), result(GOOD_ID, ""))
    assert found[2]["content"] == "(no output)"


def test_a_call_without_words_is_no_empty_message() -> None:
    assert is_untouched("mistral", USER, called(GOOD_ID), result(GOOD_ID))


@pytest.mark.parametrize("kind", ["deepseek", "mistral", "zai", "alibaba", "moonshot", "groq"])
def test_the_developer_is_the_system_where_only_that_is_known(kind: str) -> None:
    assert relayed(kind, {**SYSTEM, "role": "developer"}, USER) == ([SYSTEM, USER], [])


def test_what_clients_send_back_of_an_answer_is_left_out_where_it_is_refused() -> None:
    dumped: Json = {**SAID, "refusal": None, "annotations": [], "audio": None}
    for kind in ("mistral", "groq", "cerebras"):
        assert relayed(kind, USER, dumped, USER) == ([USER, SAID, USER], [])
    assert is_untouched("openai", USER, dumped, USER)
    found, told = relayed("groq", USER, {**SAID, "annotations": [{"type": "url_citation"}]})
    assert found[1] == SAID
    assert told[0].startswith("messages[1].annotations: is not supported")


def test_a_refusal_is_said_as_text_and_names_of_tools_stay() -> None:
    refused = {"role": "assistant", "content": None, "refusal": "No."}
    assert relayed("mistral", USER, refused, USER)[0][1] == {"role": "assistant", "content": "No."}
    named = {**result(GOOD_ID), "name": "f"}
    found, told = relayed("mistral", {**USER, "name": "Ann"}, called(GOOD_ID), named)
    assert found == [USER, called(GOOD_ID), named]
    assert told[0].startswith("messages[0].name: is not supported")


def test_marks_of_a_cache_are_left_out_where_they_are_refused() -> None:
    part = {"type": "text", "text": "Hi"}
    marked = {"role": "user", "content": [{**part, "cache_control": {"type": "ephemeral"}}]}
    found, told = relayed("groq", marked)
    assert found == [{"role": "user", "content": [part]}]
    assert told == [
        "messages[0].content[0]: cannot be marked for caching at this target; the mark was left out"
    ]


@pytest.mark.parametrize("kind", ["deepseek", "moonshot"])
def test_calls_come_with_reasoning_where_it_is_wanted(kind: str) -> None:
    history = [USER, called(GOOD_ID), result(GOOD_ID)]
    found, told = relayed(kind, *history)
    assert found == [USER, {**called(GOOD_ID), "reasoning_content": ""}, result(GOOD_ID)]
    assert not told
    assert relayed(kind, *history, thinking={"type": "disabled"})[0] == history


def test_a_model_that_does_not_think_gets_calls_as_they_came() -> None:
    history = [USER, called(GOOD_ID), result(GOOD_ID)]
    assert relayed("deepseek", *history, model="deepseek-chat")[0] == history
    assert relayed("deepseek", *history, model="deepseek-flash")[0] != history


@pytest.mark.parametrize(
    "body", ['"text"', "[1]", '[{"role":"tool"}, "x"]', '[{"role":"odd","content":""}]', "{}"]
)
def test_what_nobody_reads_is_left_to_the_provider(body: str) -> None:
    raw = codec.Raw(body.encode())
    for rules in HISTORY_RULES.values():
        assert repaired({"messages": raw}, rules) is None


def any_history(rng: Random) -> list[Json]:
    """Return turns as clients write them: with empty words, odd ids and members, and in any order."""
    words: tuple[Any, ...] = ("Hi", "", " ", None, [], [{"type": "text", "text": ""}])
    words += ([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],)
    history: list[Json] = []
    for _ in range(rng.randrange(1, 8)):
        role = rng.choice(("user", "user", "assistant", "system", "developer", "calls"))
        if role == "calls":
            ids = [f"{rng.choice(('call', 'a' * 60))}_{rng.randrange(9)}" for _ in range(2)]
            ids = list(dict.fromkeys(ids))
            history.append(called(*ids, content=rng.choice(("Wait", "", None))))
            history += [result(each, rng.choice(("42", "", None))) for each in ids]
            continue
        history.append({"role": role, "content": rng.choice(words)})
        if rng.random() < 0.3:
            member = rng.choice(("name", "refusal", "annotations", "audio"))
            history[-1][member] = rng.choice((None, "x"))
    return history


@pytest.mark.parametrize("kind", sorted(HISTORY_RULES))
def test_what_is_repaired_keeps_the_rules(kind: str) -> None:
    repairs = 0
    for seed in range(150):
        found, told = relayed(kind, *any_history(Random(seed)))
        assert relayed(kind, *found) == (found, []), (seed, told)
        repairs += not is_untouched(kind, *any_history(Random(seed)))
    assert repairs > 10


@pytest.mark.parametrize("kind", sorted(HISTORY_RULES))
def test_a_relay_and_a_translation_say_the_same(kind: str) -> None:
    history = [
        {**SYSTEM, "role": "developer"},
        USER,
        called(OPENAI_ID, content="Wait"),
        result(OPENAI_ID),
        USER,
        SAID,
        SYSTEM,
        {"role": "assistant", "content": ""},
        USER,
    ]
    side, facts = ChatSide(), Facts(kind, "m")
    prompt = side.read_request({"messages": codec.raw(history)}, Notes())
    told = Told("r", "m", 0, prompt)
    written = write(prompt, side, side, facts, side.grammar(facts), told, Notes())
    expected = codec.value_of(written.fields["messages"])

    found, _ = relayed(kind, *history, thinking={"type": "disabled"})
    if kind != "deepseek":  # it takes empty messages, and a translation leaves them out
        assert [each["role"] for each in found] == [each["role"] for each in expected]
    assert found[2].get("tool_calls") == expected[2].get("tool_calls")
