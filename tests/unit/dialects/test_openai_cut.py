"""A stream that is ended before its time ends like one whose length was the limit, and says why."""

import json
from typing import Any

import pytest

from gateway.dialects.base import StreamRules
from gateway.dialects.registry import DIALECTS

DIALECT = DIALECTS["openai_chat"]
RULES = StreamRules(hide_usage=False, done_required=True)


def event(**fields: object) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def chunk(index: int, finish: str | None = None) -> bytes:
    choice = {"index": index, "delta": {"content": "a"}, "finish_reason": finish}
    return event(id="c-1", object="chat.completion.chunk", created=7, model="m", choices=[choice])


def read(stream: bytes) -> list[dict[str, Any]]:
    lines = stream.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


@pytest.mark.fault("S-16")
@pytest.mark.bug("K02")
def test_each_open_choice_gets_its_end_and_the_reason() -> None:
    watcher = DIALECT.watch("chat", RULES)
    began = watcher.feed(chunk(0) + chunk(1) + chunk(2, "stop"))

    ends = read(DIALECT.cut_short("chat", began, watcher.open_choices, "no more"))

    assert [each["choices"] for each in ends] == [
        [{"index": index, "delta": {}, "finish_reason": "length"}] for index in (0, 1)
    ]
    for each in ends:
        assert (each["id"], each["object"], each["created"], each["model"]) == (
            "c-1", "chat.completion.chunk", 7, "m",
        )  # fmt: skip
        assert each["gateway"] == {"warnings": ["no more"]}


def test_completions_end_with_their_own_shape() -> None:
    (end,) = read(DIALECT.cut_short("completions", b"", (), "no more"))

    assert end["object"] == "text_completion"
    assert end["choices"] == [{"index": 0, "text": "", "finish_reason": "length"}]


@pytest.mark.parametrize("began", [b"", b": ping\n\n", b"data: nonsense\n\n", b"data: [1]\n\n"])
def test_whatever_it_began_with_it_ends_well(began: bytes) -> None:
    (end,) = read(DIALECT.cut_short("chat", began, (0,), "no more"))

    assert end["object"] == "chat.completion.chunk"
