"""The order of a history, by the minimal inputs of what users reported (K33)."""

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    CacheMark,
    Image,
    Message,
    Part,
    Prompt,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects.fit.history import CONTINUE, EMPTY_USER
from gateway.dialects.fit.parts import NO_OUTPUT
from gateway.dialects.fit.prompt import fit
from gateway.dialects.fit.results import MISSING
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from tests.support.strict import breaches

STRICT = Grammar(
    alternates=True,
    first_user=True,
    system="leading",
    empty_text=False,
    results_together=True,
    results_complete=True,
    object_arguments=True,
    makers=frozenset({"anthropic"}),
    cache_marks=4,
)
LOOSE = Grammar()

pytestmark = pytest.mark.bug("K33")


def say(role: Role, *parts: Part | str) -> Message:
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "find", "{}")


def result(call_id: str, *parts: Part | str) -> ToolResult:
    return ToolResult(call_id, say("tool", *parts).parts)


def prompt(*messages: Message, origin: str = "openai_chat") -> Prompt:
    return Prompt(origin, messages)


def fitted(*messages: Message, grammar: Grammar = STRICT) -> list[Message]:
    made = fit(prompt(*messages), grammar, Notes())
    assert breaches(made, grammar) == []
    return list(made.messages)


def noted(*messages: Message, grammar: Grammar = STRICT) -> list[str]:
    notes = Notes()
    fit(prompt(*messages), grammar, notes)
    return notes.warnings


USER = say("user", "hi")


def test_a_prompt_that_fits_is_the_same_prompt() -> None:
    whole = prompt(say("system", "be kind"), USER, say("assistant", "hello"), say("user", "go"))

    assert fit(whole, STRICT, Notes()) is whole


@pytest.mark.bug("B102")
@pytest.mark.parametrize("said", [(), ("",), ("\n",), (" ", "\t")])
def test_blank_texts_beside_calls_are_left_out(said: tuple[str, ...]) -> None:
    messages = (USER, say("assistant", *said, call("c1")), say("tool", result("c1", "out")))

    assert fitted(*messages) == [USER, say("assistant", call("c1")), messages[2]]
    assert fit(prompt(*messages), LOOSE, Notes()) == prompt(*messages)


@pytest.mark.bug("B102")
def test_each_role_that_says_nothing_follows_its_rule() -> None:
    messages = fitted(
        say("system", ""),
        say("user", ""),
        say("assistant", " "),
        say("user", "go"),
        say("assistant", call("c1")),
        say("tool", result("c1", "")),
    )

    assert messages == [
        say("user", EMPTY_USER, "go"),
        say("assistant", call("c1")),
        say("tool", result("c1", NO_OUTPUT)),
    ]
    assert noted(say("user", ""))[0].startswith("messages[0]: is empty")


@pytest.mark.bug("B102", "B109")
def test_the_cache_mark_of_a_blank_text_moves_to_the_text_before_it() -> None:
    mark = CacheMark("5m")
    (message,) = fitted(say("user", "hi", Text("", cache=mark)))

    assert message == say("user", Text("hi", cache=mark))


@pytest.mark.bug("B104")
def test_results_of_one_turn_stand_together_ordered_as_the_calls() -> None:
    messages = fitted(
        USER,
        say("assistant", call("a"), call("b"), call("c")),
        say("tool", result("c", "3")),
        say("user", "wait"),
        say("tool", result("a", "1"), result("b", "2")),
        say("user", "so?"),
    )

    assert messages[2:] == [
        say("tool", result("a", "1"), result("b", "2"), result("c", "3")),
        say("user", "wait", "so?"),
    ]


@pytest.mark.bug("B104")
def test_a_missing_result_is_filled_with_an_error_and_noted() -> None:
    messages = (USER, say("assistant", call("a"), call("b")), say("tool", result("b", "2")))
    filled = codec.replace(result("a", MISSING), is_error=True, name="find")

    assert fitted(*messages)[2] == say("tool", filled, result("b", "2"))
    assert noted(*messages)[0].startswith("messages[1] (tool call a): has no result")


@pytest.mark.bug("B104")
@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ((USER, say("tool", result("x", "1"))), "messages[1] (tool call x)"),
        (
            (USER, say("assistant", call("a")), say("tool", result("a", "1"), result("a", "2"))),
            "messages[2] (tool call a)",
        ),
        (
            (USER, say("assistant", call("a")), say("tool", result("a", "1"), result("x", "2"))),
            "messages[3] (tool call x)",
        ),
        (
            (USER, say("assistant", call("a")), say("tool", result("a", "1")), say("assistant", "b"), say("tool", result("a", "2"))),
            "messages[4] (tool call a)",
        ),
        ((USER, say("assistant", call("a"), call("a"))), "messages[1] (tool call a)"),
    ],
)  # fmt: skip
def test_orphans_and_doubles_are_refused_by_the_name_of_their_message(
    messages: tuple[Message, ...], place: str
) -> None:
    with pytest.raises(InputError) as caught:
        fit(prompt(*messages), STRICT, Notes())

    assert caught.value.message.startswith(f"{place}: ")
    assert caught.value.param == place.partition(" ")[0]


def test_places_are_told_in_the_words_of_the_callers_format() -> None:
    messages = (
        say("system", "be kind"),
        USER,
        say("assistant", call("a"), call("b")),
        say("tool", result("a", "1"), result("b", "2")),
        say("user", "go"),
        say("assistant", call("c")),
        say("tool", result("x", "1")),
    )
    places = {"openai_chat": "messages[7]", "anthropic_messages": "messages[4]"}
    places["openai_responses"] = "input"
    for origin, place in places.items():
        with pytest.raises(InputError) as caught:
            fit(prompt(*messages, origin=origin), STRICT, Notes())
        assert caught.value.param == place


@pytest.mark.bug("B104")
def test_pictures_of_results_are_shown_behind_them_where_results_are_texts() -> None:
    picture = Image("image/png", "iVBORw0KGgo")
    grammar = Grammar(results_text_only=True, alternates=True)
    messages = fitted(
        USER,
        say("assistant", call("a"), call("b")),
        say("tool", result("a", "see", picture), result("b", picture)),
        say("user", "so?"),
        grammar=grammar,
    )

    assert messages[2] == say("tool", result("a", "see"), result("b", "(shown below)"))
    assert [part for part in messages[3].parts if isinstance(part, Image)] == [picture, picture]
    assert messages[3].parts[-1] == Text("so?")


@pytest.mark.bug("B105")
def test_neighbours_of_one_role_are_joined_results_first() -> None:
    assert fitted(say("user", "a"), say("user", "b")) == [say("user", "a", "b")]
    assert fitted(USER, say("assistant", "a"), say("assistant", "b"), USER) == [
        USER,
        say("assistant", "a", "b"),
        USER,
    ]


@pytest.mark.bug("B105")
def test_calls_said_before_the_last_words_come_with_their_results() -> None:
    messages = (
        USER,
        say("assistant", call("a")),
        say("assistant", "there"),
        say("tool", result("a", "1")),
    )
    together = Grammar(results_together=True)

    assert fitted(*messages, grammar=together) == [
        USER,
        say("assistant", call("a"), "there"),
        messages[3],
    ]


@pytest.mark.bug("B105")
def test_a_history_begins_and_ends_with_the_user_where_it_must() -> None:
    start = say("user", CONTINUE)

    assert fitted(say("assistant", "hello"), USER) == [start, say("assistant", "hello"), USER]
    assert fitted(say("system", "be kind")) == [say("system", "be kind"), start]
    no_prefill = Grammar(prefill=False)
    assert fitted(USER, say("assistant", "The"), grammar=no_prefill)[2] == start
    assert fitted(USER, say("assistant", "The"), grammar=LOOSE) == [USER, say("assistant", "The")]
    assert "user" in noted(say("assistant", "hello"), USER)[0]


def test_a_name_that_not_all_joined_messages_share_is_noted() -> None:
    messages = (codec.replace(USER, name="ann"), codec.replace(USER, name="ben"))

    assert fitted(*messages) == [say("user", "hi", "hi")]
    assert noted(*messages)[0].startswith("messages[].name")


@pytest.mark.bug("B115")
@pytest.mark.parametrize("system", ["leading", "single"])
def test_system_messages_keep_order_and_authority(system: str) -> None:
    grammar = Grammar(alternates=True, system="leading" if system == "leading" else "single")
    messages = fitted(
        say("system", "S1"),
        say("developer", "S2"),
        say("user", "a"),
        say("assistant", "b"),
        say("system", "S3"),
        say("user", "c"),
        say("developer", "D"),
        grammar=grammar,
    )
    head = [say("system", "S1"), say("developer", "S2")]

    assert messages[: -3 or None] == (head if system == "leading" else [say("system", "S1\n\nS2")])
    assert messages[-3:] == [
        say("user", "a"),
        say("assistant", "b"),
        say(
            "user",
            "<system_message>\nS3\n</system_message>",
            "c",
            "<system_message>\nD\n</system_message>",
        ),
    ]


@pytest.mark.bug("B115")
def test_system_messages_stay_in_place_where_they_may() -> None:
    messages = (say("system", "S1"), USER, say("assistant", "b"), say("system", "S2"), USER)

    assert fitted(*messages, grammar=Grammar(alternates=True)) == list(messages)
    assert noted(*messages)[0].startswith("messages[3]: ")


@pytest.mark.bug("B115")
def test_a_picture_cannot_be_part_of_one_system_text() -> None:
    picture = Image("image/png", "iVBORw0KGgo")
    with pytest.raises(InputError) as caught:
        fit(prompt(say("system", "see", picture), USER), Grammar(system="single"), Notes())
    assert caught.value.message.startswith("messages[0] (image in a system message)")


def test_a_turn_of_the_model_that_lost_all_it_said_is_left_out() -> None:
    thought = say("assistant", Thinking("hm", signature="s", maker="gemini"))

    assert fitted(say("user", "a"), thought, say("user", "b")) == [say("user", "a", "b")]
    assert fitted(USER, thought, USER, grammar=LOOSE) == [USER, USER]


def test_a_history_without_messages_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        fit(prompt(), LOOSE, Notes())
    assert caught.value.param == "messages"
