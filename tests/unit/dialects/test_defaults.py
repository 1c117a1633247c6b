"""Defaults of targets in common names."""

from gateway.core import codec
from gateway.core.message import Message, Prompt, Reasoning, Sampling, Text
from gateway.dialects.defaults import split_params, with_defaults

PROMPT = Prompt("openai_chat", (Message("user", (Text("Hi"),)),))


def test_common_names_are_told_from_a_targets_own() -> None:
    params = {"temperature": codec.raw(0.5), "safetySettings": codec.raw([])}

    common, own = split_params(params)

    assert common == {"temperature": 0.5}
    assert own == {"safetySettings": codec.raw([])}


def test_defaults_count_where_the_caller_said_nothing() -> None:
    common = {"temperature": 0.5, "max_tokens": 9, "stop": "END", "reasoning_effort": "low"}

    filled = with_defaults(PROMPT, common)

    assert filled.sampling == Sampling(temperature=0.5, stop=("END",))
    assert filled.max_tokens == 9
    assert filled.reasoning == Reasoning(effort="low")


def test_what_the_caller_said_is_kept() -> None:
    said = codec.replace(PROMPT, sampling=Sampling(temperature=0.0), max_tokens=1)

    filled = with_defaults(said, {"temperature": 0.5, "max_tokens": 9})

    assert filled == said


def test_nothing_is_built_without_defaults() -> None:
    assert with_defaults(PROMPT, {}) is PROMPT
