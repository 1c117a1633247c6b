"""Settings become Converse's own words, the model's fields, a note or a refusal."""

import json
from typing import Any

import pytest

from gateway.core.errors import InputError
from gateway.core.message import (
    Format,
    Reasoning,
    Sampling,
)
from gateway.dialects.losses import Notes
from tests.support.bedrock_written import (
    CLAUDE,
    GPT,
    LLAMA,
    NEWEST,
    NOVA,
    OLD,
    OPAQUE,
    asked,
    lost,
    written,
)


@pytest.mark.bug("K34")
def test_the_form_of_the_answer_is_a_schema_in_a_text() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    form = Format("schema", "number", schema, description="A number")
    notes = Notes()
    body = written(asked(format=form), notes=notes)["outputConfig"]["textFormat"]

    told = body["structure"]["jsonSchema"]
    assert ("json_schema", "number", "A number") == (
        body["type"],
        told["name"],
        told["description"],
    )
    assert {**schema, "additionalProperties": False} == json.loads(told["schema"])
    assert [] == lost(notes)
    with pytest.raises(InputError, match="response_format: is a form of answers"):
        written(asked(format=Format("json")))
    assert "outputConfig" not in written(asked(format=Format("text")))


@pytest.mark.bug("K34")
def test_sampling_is_said_where_it_is_taken() -> None:
    sampling = Sampling(temperature=1.5, top_p=0.5, top_k=7, stop=("END",), seed=1, logprobs=True)
    notes = Notes()
    body = written(asked(sampling=sampling, max_tokens=9), OLD, notes)

    wanted = {"maxTokens": 9, "temperature": 1, "topP": 0.5, "stopSequences": ["END"]}
    assert wanted == body["inferenceConfig"]
    assert {"top_k": 7} == body["additionalModelRequestFields"]
    assert ["/stop_sequence"] == body["additionalModelResponseFieldPaths"]
    assert ["seed", "logprobs", "temperature"] == lost(notes)


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("model", "inference", "fields", "noted"),
    [
        (CLAUDE, {"temperature": 0.5}, {"top_k": 7}, ["top_p"]),
        (NEWEST, None, None, ["temperature", "top_p", "top_k"]),
        (NOVA, {"temperature": 0.5, "topP": 0.5}, {"inferenceConfig": {"topK": 7}}, []),
        ("mistral.mistral-large-2407-v1:0", {"temperature": 0.5, "topP": 0.5}, {"top_k": 7}, []),
        ("cohere.command-r-v1:0", {"temperature": 0.5, "topP": 0.5}, {"k": 7}, []),
        (LLAMA, {"temperature": 0.5, "topP": 0.5}, None, ["top_k"]),
    ],
)
def test_sampling_is_what_the_family_takes(
    model: str, inference: Any, fields: Any, noted: list[str]
) -> None:
    notes = Notes()
    body = written(asked(sampling=Sampling(temperature=0.5, top_p=0.5, top_k=7)), model, notes)

    assert inference == body.get("inferenceConfig")
    assert fields == body.get("additionalModelRequestFields")
    assert noted == lost(notes)


@pytest.mark.bug("K34")
def test_more_than_one_answer_is_refused() -> None:
    with pytest.raises(InputError):
        written(asked(sampling=Sampling(n=2)))
    assert written(asked(sampling=Sampling(n=1)))


ADAPTIVE = {"thinking": {"type": "adaptive"}}


@pytest.mark.bug("K34", "B111")
@pytest.mark.parametrize(
    ("model", "reasoning", "fields", "effort", "noted"),
    [
        (
            CLAUDE,
            Reasoning(enabled=True, budget=2000),
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            None,
            [],
        ),
        (NEWEST, Reasoning(effort="high"), ADAPTIVE, "high", []),
        (NEWEST, Reasoning(enabled=False), None, None, []),
        (OLD, Reasoning(effort="high"), None, None, ["reasoning"]),
        (OLD, Reasoning(enabled=False), None, None, []),
        (GPT, Reasoning(effort="xhigh"), {"reasoning_effort": "high"}, None, ["reasoning_effort"]),
        (GPT, Reasoning(enabled=True), {"reasoning_effort": "medium"}, None, []),
        (
            GPT,
            Reasoning(enabled=True, budget=1024),
            {"reasoning_effort": "low"},
            None,
            ["reasoning_effort"],
        ),
        (GPT, Reasoning(effort="none"), None, None, []),
        (
            NOVA,
            Reasoning(effort="low"),
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}},
            None,
            [],
        ),
        (LLAMA, Reasoning(effort="low"), None, None, ["reasoning_effort"]),
        (LLAMA, Reasoning(summary="auto"), None, None, []),
        (OPAQUE, Reasoning(effort="low"), None, None, ["reasoning_effort"]),
    ],
)
def test_each_family_is_told_in_its_words_how_much_to_think(
    model: str, reasoning: Reasoning, fields: Any, effort: str | None, noted: list[str]
) -> None:
    notes = Notes()
    body = written(asked(reasoning=reasoning, max_tokens=9000), model, notes)

    assert fields == body.get("additionalModelRequestFields")
    assert effort == body.get("outputConfig", {}).get("effort")
    assert noted == lost(notes)


def test_nova_thinks_hardest_only_without_limits() -> None:
    notes = Notes()
    free = written(asked(reasoning=Reasoning(effort="high")), NOVA, notes)
    bound = written(asked(reasoning=Reasoning(effort="high"), max_tokens=5), NOVA, notes)

    efforts = [
        body["additionalModelRequestFields"]["reasoningConfig"]["maxReasoningEffort"]
        for body in (free, bound)
    ]
    assert ["high", "medium"] == efforts
    assert ["reasoning_effort"] == lost(notes)


@pytest.mark.bug("B111")
def test_a_limit_is_said_where_thinking_needs_one_and_else_left_to_the_model() -> None:
    assert "inferenceConfig" not in written(asked())
    body = written(asked(reasoning=Reasoning(enabled=True, budget=2000)))
    assert 64_000 == body["inferenceConfig"]["maxTokens"]


def test_thinking_is_drawn_at_one() -> None:
    notes = Notes()
    prompt = asked(reasoning=Reasoning(enabled=True, budget=2000), sampling=Sampling(0.5, top_k=3))
    body = written(prompt, notes=notes)

    assert "temperature" not in body["inferenceConfig"]
    assert {"thinking"} == body["additionalModelRequestFields"].keys()
    assert ["temperature", "top_k"] == lost(notes)


@pytest.mark.bug("K34")
def test_what_concerns_the_account_is_said_or_noted() -> None:
    notes = Notes()
    metadata = {"team": "a b", "bad": "ü", "number": 5, **{f"k{n}": "v" for n in range(20)}}
    body = written(
        asked(
            metadata=metadata,
            service_tier="flex",
            user="u",
            store=True,
            cache_key="k",
            verbosity="low",
        ),
        notes=notes,
    )

    assert {"type": "flex"} == body["serviceTier"]
    assert 16 == len(body["requestMetadata"])
    assert "a b" == body["requestMetadata"]["team"]
    assert {
        "user",
        "store",
        "prompt_cache_key",
        "verbosity",
        "metadata.bad",
        "metadata.number",
    } < set(lost(notes))
    for tier, wanted, noted in (
        ("auto", None, []),
        ("default", {"type": "default"}, []),
        ("standard_only", {"type": "default"}, ["service_tier"]),
        ("scale", None, ["service_tier"]),
    ):
        notes = Notes()
        assert wanted == written(asked(service_tier=tier), notes=notes).get("serviceTier")
        assert noted == lost(notes)


@pytest.mark.bug("K34")
def test_fields_of_converse_itself_go_on_and_unknown_ones_are_noted() -> None:
    guardrail = {"guardrailIdentifier": "g", "guardrailVersion": "1"}
    extra = {
        "guardrailConfig": guardrail,
        "performanceConfig": {"latency": "optimized"},
        "additionalModelRequestFields": {"top_k": 9, "x": 1},
        "anthropic_beta": ["b"],
        "odd": 1,
    }
    notes = Notes()
    body = written(asked(extra=extra, sampling=Sampling(top_k=3)), notes=notes)

    assert guardrail == body["guardrailConfig"]
    assert {"latency": "optimized"} == body["performanceConfig"]
    assert {"top_k": 9, "x": 1, "anthropic_beta": ["b"]} == body["additionalModelRequestFields"]
    assert ["odd"] == lost(notes)
    notes = Notes()
    written(asked(extra={"anthropic_beta": ["b"]}), NOVA, notes)
    assert ["anthropic_beta"] == lost(notes)
