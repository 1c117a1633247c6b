"""One key for all spellings of a question, another for every other question (K20)."""

import json
import random
import unicodedata
from collections.abc import Iterator
from typing import Any, cast

import pytest

from gateway.chain.plan import Model
from gateway.core import codec
from gateway.core.call import CacheWish, Call, Run
from gateway.engine.outgoing import JsonOriginal
from gateway.middleware.semantic_cache.fingerprint import Ask, read_ask

Json = dict[str, Any]
ROUNDS = 250
LARGE = 1_000
"""A small part of what runs by hand: 10,000 of each."""
MODEL = Model("m", (), "weighted", None, None, None)
TOOL: Json = {
    "type": "function",
    "function": {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"minimum": 1.5}}},
    },
}
BODIES: dict[str, Json] = {
    "chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be kind, caf\u00e9"},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
                ],
            },
            {"role": "assistant", "content": "yes", "name": "x"},
            {"role": "user", "content": "hi"},
        ],
        "tools": [TOOL],
        "tool_choice": "auto",
        "temperature": 1,
        "top_p": 0.5,
        "seed": 7,
        "stop": ["a"],
        "response_format": {"type": "json_object"},
        "user": "u",
        "metadata": {"a": "b"},
        "new_field": {"deep": [1, {"x": None}]},
    },
    "messages": {
        "model": "m",
        "system": [{"type": "text", "text": "be kind"}],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "hi"}],
            }
        ],
        "max_tokens": 64,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "top_k": 3,
    },
    "responses": {
        "model": "m",
        "instructions": "be kind",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "reasoning": {"effort": "low"},
        "max_output_tokens": 64,
        "store": False,
    },
    "completions": {"model": "m", "prompt": "hi", "max_tokens": 5},
}

UNPINNED: list[tuple[Json, str]] = [
    (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}],
                }
            ]
        },
        "remote",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f-1"}}]}]},
        "remote",
    ),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "remote"),
    ({"previous_response_id": "resp_1"}, "state"),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "server_tool"),
    ({"web_search_options": {}}, "server_tool"),
    ({"messages": [{"role": "user", "content": "see https://x/a.png"}]}, ""),
    ({"tools": [TOOL, {"name": "f", "input_schema": {}}, {"type": "custom", "name": "c"}]}, ""),
]


def ask(body: bytes, endpoint: str = "chat", **of_run: Any) -> Ask:
    run = Run("r", endpoint, 0.0, 1.0)
    run.asked = "m"
    for name, value in of_run.items():
        setattr(run, name, value)
    original = JsonOriginal(b"/x", codec.split(body), watched=True)
    return read_ask(Call(run, MODEL, original), original.fields)


def key(body: bytes, endpoint: str = "chat", **of_run: Any) -> tuple[str, str]:
    found = ask(body, endpoint, **of_run)
    return found.fingerprint, found.exact


def respelt(value: object, draw: random.Random) -> str:
    """Write a value in another way: order of keys, blanks, escapes, forms of letters and numbers."""
    blank = draw.choice(["", " ", "\n  "])
    match value:
        case dict():
            pairs = list(cast("Json", value).items())
            draw.shuffle(pairs)
            written = [
                f"{text(name, draw)}{blank}:{blank}{respelt(each, draw)}" for name, each in pairs
            ]
            return "{" + blank + f",{blank}".join(written) + "}"
        case list():
            each = [respelt(item, draw) for item in cast("list[object]", value)]
            return f"[{blank}" + f"{blank},".join(each) + "]"
        case str():
            return text(value, draw)
        case bool() | None:
            return json.dumps(value)
        case int():
            return draw.choice([str(value), f"{value}.0", f"{value}e0", f"{value}0E-1"])
        case float():
            return draw.choice([repr(value), f"{value}0", f"{value * 10:.6f}e-1"])
        case _:
            raise TypeError


def text(value: str, draw: random.Random) -> str:
    value = unicodedata.normalize(draw.choice(["NFC", "NFD"]), value)
    return json.dumps(value, ensure_ascii=draw.random() < 0.5)


@pytest.mark.bug("K20")
@pytest.mark.parametrize("endpoint", list(BODIES))
def test_every_spelling_of_a_question_has_one_key(endpoint: str) -> None:
    draw = random.Random(7)
    body = BODIES[endpoint]
    keys: set[tuple[str, str]] = set()
    for _ in range(ROUNDS):
        more = (
            {}
            if draw.random() < 0.5
            else {"stream": draw.random() < 0.5, "stream_options": {"include_usage": True}}
        )
        keys.add(key(respelt({**body, **more}, draw).encode(), endpoint))

    assert len(keys) == 1


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict):
        for name, each in cast("Json", value).items():
            yield from places(each, (*path, name))
    elif isinstance(value, list):
        for at, each in enumerate(cast("list[object]", value)):
            yield from places(each, (*path, at))


def changed(body: Json, path: tuple[str | int, ...], value: object) -> Json:
    copy: Any = json.loads(json.dumps(body))
    at = copy
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return cast("Json", copy)


@pytest.mark.bug("K20")
def test_every_change_of_a_question_has_a_key_of_its_own() -> None:
    """Each change of one place, in every place of every endpoint's body, is another key; time and again."""
    keys: set[tuple[str, str]] = set()
    count = 0
    while count < LARGE:
        for endpoint, body in BODIES.items():
            for path in list(places(body))[1:]:
                value: object = f"changed {count}" if count % 2 else count + 10_000
                keys.add(key(codec.encode(changed(body, path, value)), endpoint))
                count += 1
                if path and isinstance(path[-1], str):
                    other = changed(body, (*path[:-1], f"new {count}"), 1)
                    keys.add(key(codec.encode(other), endpoint))
                    count += 1

    assert len(keys) == count


@pytest.mark.bug("K20")
def test_the_place_of_a_field_left_out_counts() -> None:
    body = BODIES["chat"]
    full = key(codec.encode(body))
    without = {key(codec.encode({k: v for k, v in body.items() if k != name})) for name in body}

    assert len(without) == len(body)
    assert full not in without


@pytest.mark.bug("K20")
@pytest.mark.parametrize(
    "of_run",
    [
        {"asked": "n"},
        {"agent": "a"},
        {"passed": ((b"anthropic-beta", b"x"),)},
        {"cache_wish": CacheWish(context=b'[{"a":1},null]')},
    ],
)
def test_what_a_run_says_besides_counts(of_run: Json) -> None:
    body = codec.encode(BODIES["messages"])

    assert key(body, "messages", **of_run) != key(body, "messages")


def test_the_last_text_of_the_user_is_outside_of_the_fingerprint_and_inside_of_the_key() -> None:
    for endpoint, path in (
        ("chat", ("messages", 3, "content")),
        ("messages", ("messages", 0, "content", 1, "text")),
        ("responses", ("input", 0, "content", 0, "text")),
    ):
        one = ask(codec.encode(BODIES[endpoint]), endpoint)
        other = ask(codec.encode(changed(BODIES[endpoint], path, "ho")), endpoint)

        assert (one.asked, other.asked) == ("hi", "ho")
        assert one.fingerprint == other.fingerprint
        assert one.exact != other.exact


def test_a_conversation_is_another_question_than_its_last_turn() -> None:
    turns = [{"role": "user", "content": "yes, cancel it"}]
    one = ask(codec.encode({"messages": [{"role": "assistant", "content": "the order?"}, *turns]}))
    other = ask(
        codec.encode({"messages": [{"role": "assistant", "content": "the flight?"}, *turns]})
    )

    assert one.asked == other.asked
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(("body", "why"), UNPINNED)
def test_what_means_something_else_tomorrow_is_told(body: Json, why: str) -> None:
    assert ask(codec.encode(body)).unpinned == why
