"""Warnings and errors name fields and places as the caller wrote them, whatever a history was read into (K33)."""

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.dialects.fit.naming import in_words
from gateway.dialects.fit.prompt import fit
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write

pytestmark = pytest.mark.bug("K33", "K34")
Json = dict[str, Any]
PNG: Json = {"type": "base64", "media_type": "image/png", "data": "aGk="}
ZIP: Json = {"type": "base64", "media_type": "application/zip", "data": "aGk="}
PICTURE: Json = {"type": "image", "source": PNG}
CALL: Json = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
NO_PICTURES = Grammar(image_urls=False, image_data=False)


def history(*of_user: Json) -> Json:
    """Return a request of Messages whose last message has these blocks."""
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": list(of_user)},
    ]
    return {"system": [{"type": "text", "text": "s"}], "max_tokens": 9, "messages": said}


def result(*parts: Json, **more: Any) -> Json:
    """Return the result of the call."""
    return {"type": "tool_result", "tool_use_id": "t1", "content": list(parts), **more}


TEXT: Json = {"type": "text", "text": "so"}


@pytest.mark.parametrize(
    ("blocks", "place"),
    [
        ((result(TEXT, PICTURE),), "messages[2].content[0].content[1] (image)"),
        ((result(TEXT), TEXT, PICTURE), "messages[2].content[2] (image)"),
    ],
)
def test_pictures_are_named_where_the_caller_put_them(blocks: tuple[Json, ...], place: str) -> None:
    fields = {name: codec.raw(value) for name, value in history(*blocks).items()}
    prompt = CALLERS["anthropic_messages"].read_request(fields, Notes())

    with pytest.raises(InputError) as caught:
        fit(prompt, NO_PICTURES, Notes())

    assert caught.value.message.startswith(f"{place}: ")
    assert caught.value.param == place.removesuffix(" (image)")


def written(target: str, body: Json, caller: str = "anthropic_messages") -> Notes:
    """Write a request for a target, and return what was noted."""
    notes, side = Notes(), TARGETS[target]
    fields = {name: codec.raw(value) for name, value in body.items()}
    prompt = CALLERS[caller].read_request(fields, notes)
    facts = Facts("x", "anthropic.claude-sonnet-4-5-20250929-v1:0", 64)
    told = Told("r", "m", 0, prompt)
    write(prompt, CALLERS[caller], side, facts, side.grammar(facts), told, notes)
    return notes


@pytest.mark.parametrize("target", ["bedrock_converse", "cohere_v2", "ollama", "openai_chat"])
def test_files_that_a_writer_refuses_are_named_where_the_caller_put_them(target: str) -> None:
    document = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}

    with pytest.raises(InputError) as caught:
        written(target, history(result(TEXT), TEXT, document))

    assert caught.value.message.startswith("messages[2].content[2] (file)")
    assert caught.value.param == "messages[2].content[2]"


def test_results_of_tools_that_failed_are_named_by_their_call() -> None:
    notes = written("openai_chat", history(result(TEXT, is_error=True)))

    assert [note.partition(":")[0] for note in notes.warnings] == ["is_error (tool call t1)"]


@pytest.mark.parametrize(
    ("fields", "text", "told"),
    [
        ({"max_tokens"}, "max_output_tokens: x", "max_tokens: x"),
        ({"max_output_tokens"}, "max_tokens: x", "max_output_tokens: x"),
        ({"max_tokens"}, "max_tokens: x", "max_tokens: x"),
        ({"metadata"}, "user: x", "metadata.user_id: x"),
        ({"stop_sequences"}, "stop: x", "stop_sequences: x"),
        ({"thinking"}, "reasoning_effort: x", "thinking: x"),
        ({"reasoning"}, "reasoning_effort: x", "reasoning.effort: x"),
        ({"thinking"}, "reasoning budget: x", "thinking.budget_tokens: x"),
        ({"reasoning_effort"}, "reasoning: x", "reasoning_effort: x"),
        ({"text"}, "response_format.description: x", "text.format.description: x"),
        ({"tool_choice"}, "parallel_tool_calls: x", "tool_choice.disable_parallel_tool_use: x"),
        ({"max_tokens"}, "seed: x", "seed: x"),
        (set[str](), "user: x", "user: x"),
        ({"user"}, "no name", "no name"),
        ({"metadata"}, "dropped user: x", "dropped metadata.user_id: x"),
        ({"user"}, "dropped user: x", "dropped user: x"),
    ],
)
def test_fields_have_the_names_that_the_caller_gave_them(
    fields: set[str], text: str, told: str
) -> None:
    assert in_words(fields, text) == told


INPUT_PICTURE: Json = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}


def test_items_of_responses_are_named_by_their_index() -> None:
    thought: Json = {"type": "reasoning", "id": "rs_1", "summary": []}
    thought["encrypted_content"] = "seal"
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    own = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    said: list[Json] = [{"role": "user", "content": "Hi"}, thought, own, call]
    said.append({"type": "function_call_output", "call_id": "c", "output": "x"})
    notes = written("gemini", {"input": said}, "openai_responses")

    places = [note.partition(": ")[0] for note in notes.warnings]
    assert places[:2] == ["input[1] (reasoning)", "input[2] (web_search_call)"]


@pytest.mark.parametrize(
    ("item", "place"),
    [
        (
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, INPUT_PICTURE]},
            "content",
        ),
        ({"type": "function_call_output", "call_id": "c", "output": [INPUT_PICTURE]}, "output"),
    ],
)
def test_pictures_of_responses_are_named_by_item_and_index(item: Json, place: str) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    fields = {"input": codec.raw([{"role": "user", "content": "Hi"}, call, item])}
    notes = Notes()
    prompt = CALLERS["openai_responses"].read_request(fields, notes)

    with pytest.raises(InputError) as caught:
        fit(prompt, NO_PICTURES, notes)

    at = 1 if place == "content" else 0
    assert caught.value.message.startswith(f"input[2].{place}[{at}] (input_image): ")
    assert caught.value.param == f"input[2].{place}[{at}]"


def _thoughts(count: int) -> tuple[str, Json]:
    thought = {"type": "thinking", "thinking": "hm", "signature": "gw1.gemini.s"}
    turn = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [thought, TEXT]}]
    return "anthropic_messages", {"max_tokens": 9, "messages": turn * count}


def _reasoning(count: int) -> tuple[str, Json]:
    thought: Json = {"type": "reasoning", "summary": [], "encrypted_content": "seal"}
    said: list[Json] = [{"role": "user", "content": "Hi"}, thought]
    said.append({"role": "assistant", "content": "Yes"})
    return "openai_responses", {"input": said * count}


def _unanswered(count: int) -> tuple[str, Json]:
    said: list[Json] = []
    for at in range(count):
        function = {"name": "f", "arguments": "{}"}
        call = {"id": f"call_{at}", "type": "function", "function": function}
        said += [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}]
    return "openai_chat", {"messages": said}


def _members(count: int) -> tuple[str, Json]:
    calls = [
        {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": "f", "arguments": "{}"},
            f"x{at}": 1,
        }
        for at in range(count)
    ]
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": calls}]
    results = [{"role": "tool", "tool_call_id": f"c{at}", "content": "x"} for at in range(count)]
    return "openai_chat", {"messages": [*said, *results]}


def _systems(count: int) -> tuple[str, Json]:
    turn = [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Now"}]
    return "openai_chat", {"messages": turn * count}


@pytest.mark.slow
@pytest.mark.bug("K38")
@pytest.mark.parametrize("lossy", [_thoughts, _reasoning, _unanswered, _members, _systems])
def test_what_a_long_history_loses_is_named_in_time_that_grows_with_its_length(
    lossy: Callable[[int], tuple[str, Json]],
) -> None:
    def cost(count: int) -> float:
        caller, body = lossy(count)
        return min(_timed(caller, body) for _ in range(3))

    small, large = cost(250), cost(2000)
    caller, body = lossy(500)
    notes = written("bedrock_converse", body, caller)

    assert large < small * 30  # eight times the length; what looks back each time takes sixty-four
    assert 2 < len(notes.warnings) < 100
    assert any(note.startswith(("and others: ", "messages.(others)")) for note in notes.warnings)


def _timed(caller: str, body: Json) -> float:
    """Return the seconds of processor time that this takes here, without those of the collector."""
    gc.disable()
    try:
        began = time.thread_time()
        written("bedrock_converse", body, caller)
        return time.thread_time() - began
    finally:
        gc.enable()
