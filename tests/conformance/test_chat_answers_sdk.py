"""OpenAI's own client reads whatever a translation writes for callers of chat completions (K02)."""

from random import Random
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from gateway.core import codec
from gateway.core.message import Citation, Prompt, Text, ToolCall
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Told
from tests.support.neutral import Can, answer, events

CAN = Can(
    "openai_chat",
    answer=frozenset(
        {"text", "cited", "thinking", "sealed", "redacted", "refusal", "call", "sealed_call"}
    ),
    finishes=("stop", "length", "content_filter", "refusal"),
    most_choices=3,
    logprobs=True,
    citation=lambda rng: Citation("x", {}, url=f"https://a.b/{rng.random()}", title="A"),
)
TOLD = Told("req_0123", "m", 1, Prompt("openai_chat", (), include_usage=True))


@pytest.mark.bug("K02")
def test_the_client_reads_every_whole_answer() -> None:
    for seed in range(200):
        whole = answer(Random(seed), CAN)

        read = ChatCompletion.model_validate_json(
            ChatSide().write_answer(whole, TOLD, Notes()), strict=True
        )

        for said, choice in zip(read.choices, whole.choices, strict=True):
            texts = [part.text for part in choice.parts if isinstance(part, Text)]
            calls = [part for part in choice.parts if isinstance(part, ToolCall)]
            assert (said.message.content or "") == "".join(texts)
            assert [call.id for call in said.message.tool_calls or ()] == [c.id for c in calls]


@pytest.mark.bug("K02", "K03")
def test_the_client_puts_every_stream_together() -> None:
    for seed in range(60):
        rng = Random(seed)
        whole = answer(rng, CAN)
        body = ChatSide().writer(TOLD, Notes()).write(events(rng, whole))
        state = ChatCompletionStreamState()
        for line in body.split(b"\n\n"):
            if line.startswith(b"data: {"):
                data = codec.decode(line.removeprefix(b"data: "))
                state.handle_chunk(ChatCompletionChunk.model_validate(data))

        plain = ChatCompletion.model_validate_json(ChatSide().write_answer(whole, TOLD, Notes()))
        read = state.current_completion_snapshot
        for said, choice in zip(read.choices, plain.choices, strict=True):
            assert said.finish_reason == choice.finish_reason
            assert (said.message.content or "") == (choice.message.content or "")
            assert (said.message.refusal or "") == (choice.message.refusal or "")
            assert words(said.message.tool_calls) == words(choice.message.tool_calls)
        assert read.usage == plain.usage


def words(calls: Any) -> list[tuple[str, str, str]]:
    return [(each.id, each.function.name, each.function.arguments) for each in calls or ()]
