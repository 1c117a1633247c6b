"""Names of tools: a bijection for each request, the same in every turn, undone in every answer (B116)."""

from random import Random

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Delta, PartBegan, PartEnded
from gateway.core.errors import InputError
from gateway.core.message import (
    Message,
    Prompt,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.fit.names import NameMap, fits, shortened
from gateway.dialects.grammar import NameRules

RULES = (
    NameRules(),
    NameRules(longest=128),
    NameRules(r"[a-zA-Z_][a-zA-Z0-9_-]*", 64),
    NameRules(r"[a-z]+", 20),
    NameRules(r"[a-zA-Z0-9]{9}", 9),
)
ODD = ("1c_run", "x" * 70, "x" * 64 + "yyyyyy", "a.b/c", "ünï", "", " ", "日本", "a b", "a_b", "-")

pytestmark = pytest.mark.bug("K34", "B116")


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_a_map_is_a_bijection_of_names_that_fit(rules: NameRules) -> None:
    rng = Random(str(rules))
    for _ in range(50):
        names = [
            rng.choice(ODD) + rng.choice(("", "a", "." * rng.randrange(80))) for _ in range(20)
        ]
        names += [shortened(name, rules) for name in names[:3]]
        made = NameMap(names, rules)
        short = {name: made.short(name) for name in names}

        assert all(fits(each, rules) for each in short.values())
        assert len(set(short.values())) == len(set(names))
        assert all(made.original(each) == name for name, each in short.items())


def test_names_that_fit_are_never_changed() -> None:
    made = NameMap(["find", "get-weather", "x" * 64], RULES[0])

    assert not made
    assert made.short("find") == "find"
    assert made.original("invented") == "invented"


def test_a_name_is_the_same_whatever_stands_beside_it() -> None:
    alone = NameMap(["a.b/c"], RULES[0]).short("a.b/c")

    assert NameMap(["find", "a.b/c", "x" * 70], RULES[0]).short("a.b/c") == alone
    assert NameMap(["a.b/c", alone], RULES[0]).short("a.b/c") != alone


def prompt() -> Prompt:
    return Prompt(
        "openai_chat",
        (
            Message("user", (Text("hi"),)),
            Message("assistant", (ToolCall("c", "a.b/c", "{}"), ToolCall("d", "find"))),
            Message("tool", (ToolResult("c", name="a.b/c"), ToolResult("d"))),
        ),
        tools=(Tool("a.b/c"), Tool("find")),
        choice=ToolChoice("named", ("a.b/c",)),
    )


def test_a_name_is_changed_everywhere_in_the_request() -> None:
    made = NameMap.of(prompt(), RULES[0])
    short = made.short("a.b/c")
    found = made.apply(prompt())

    assert found.tools == (Tool(short), Tool("find"))
    assert found.choice == ToolChoice("named", (short,))
    assert found.messages[1].parts == (ToolCall("c", short, "{}"), ToolCall("d", "find"))
    assert found.messages[2].parts == (ToolResult("c", name=short), ToolResult("d"))
    assert found.messages[0] is not None
    assert NameMap.of(found, RULES[0]).apply(found) is found


def test_the_caller_sees_its_own_names_in_answers_and_streams() -> None:
    made = NameMap.of(prompt(), RULES[0])
    parts = (Text("so"), ToolCall("c", made.short("a.b/c")), ToolCall("d", "invented"))
    answer = Answer("gemini", "i", "m", (Choice(0, parts, "tool_calls"),))
    own = (parts[0], ToolCall("c", "a.b/c"), parts[2])

    assert made.answer(answer).choices[0].parts == own
    events = [PartBegan(0, 1, parts[1]), Delta(0, 1, "{}"), PartEnded(0, 1)]
    assert made.events(events) == [PartBegan(0, 1, own[1]), *events[1:]]


def test_nothing_is_made_anew_where_all_names_fit() -> None:
    plain = codec.replace(prompt(), tools=(), choice=None, messages=prompt().messages[:1])
    made = NameMap.of(plain, RULES[0])
    answer = Answer("gemini", "i", "m", ())
    events = [Delta(0, 0, "a")]

    assert made.apply(plain) is plain
    assert made.answer(answer) is answer
    assert made.events(events) is events


def test_rules_that_leave_no_room_are_an_error_of_the_request() -> None:
    with pytest.raises(InputError):
        NameMap(["a.b"], NameRules(r"only", 10))
