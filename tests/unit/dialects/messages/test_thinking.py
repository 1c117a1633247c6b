"""How much a model thinks is what was asked, in the way that its family takes, and below the limit of the answer."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.message import Message, Prompt, Reasoning, Sampling, Text, Tool, ToolChoice
from gateway.dialects.losses import Notes
from gateway.dialects.messages.models import traits_of
from gateway.dialects.messages.sides import MessagesTarget
from gateway.dialects.sides import Facts

Json = dict[str, Any]
TARGET = MessagesTarget()
BUDGET, BOTH, ADAPTIVE, ALWAYS = (
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-6",
    "claude-opus-4-7",
    "claude-fable-5",
)


def write(
    reasoning: Reasoning | None,
    model: str,
    *,
    origin: str = "openai_chat",
    most: int | None = 20_000,
    **settings: Any,
) -> tuple[Json, list[str]]:
    prompt = Prompt(origin, (Message("user", (Text("Hello"),)),), reasoning=reasoning, **settings)
    notes = Notes()
    fields = TARGET.write_request(prompt, Facts("anthropic", model, most), notes)
    body: Json = json.loads(codec.join(fields))
    return {k: body.get(k) for k in ("thinking", "output_config", "max_tokens")}, notes.warnings


def enabled(budget: int) -> Json:
    return {"type": "enabled", "budget_tokens": budget}


@pytest.mark.parametrize(
    ("effort", "model", "thinking", "output"),
    [
        ("low", BUDGET, enabled(4000), None),
        ("medium", BUDGET, enabled(10_000), None),
        ("high", BUDGET, enabled(16_000), None),
        ("minimal", BUDGET, enabled(2000), None),
        ("none", BUDGET, {"type": "disabled"}, None),
        ("medium", "claude-opus-4-5", enabled(10_000), {"effort": "medium"}),
        ("low", BOTH, {"type": "adaptive"}, {"effort": "low"}),
        ("xhigh", BOTH, {"type": "adaptive"}, {"effort": "high"}),
        ("minimal", ADAPTIVE, {"type": "adaptive"}, {"effort": "low"}),
        ("xhigh", ADAPTIVE, {"type": "adaptive"}, {"effort": "xhigh"}),
        ("none", ADAPTIVE, None, None),
        ("none", "claude-sonnet-5", {"type": "disabled"}, None),
        ("none", "claude-3-5-haiku-20241022", None, None),
        ("none", ALWAYS, None, None),
        ("high", "claude-3-5-haiku-20241022", None, None),
    ],
)
def test_an_effort_is_told_as_the_family_takes_it(
    effort: str, model: str, thinking: Json | None, output: Json | None
) -> None:
    body, _ = write(Reasoning(effort=effort), model)

    assert (thinking, output) == (body["thinking"], body["output_config"])


@pytest.mark.parametrize(
    ("model", "thinking", "output", "noted"),
    [
        (BUDGET, enabled(5000), None, False),
        (BOTH, enabled(5000), None, False),
        (ADAPTIVE, {"type": "adaptive"}, {"effort": "medium"}, True),
        ("claude-3-haiku-20240307", None, None, True),
    ],
)
def test_a_budget_is_told_as_the_family_takes_it(
    model: str, thinking: Json | None, output: Json | None, noted: bool
) -> None:
    body, warnings = write(Reasoning(enabled=True, budget=5000), model)

    assert (thinking, output) == (body["thinking"], body["output_config"])
    assert noted == bool(warnings)


@pytest.mark.bug("B111")
@pytest.mark.parametrize("budget", [None, 1, 1024, 3000, 100_000])
@pytest.mark.parametrize("asked", [None, 500, 1024, 1025, 4096])
@pytest.mark.parametrize("most", [None, 900, 8192])
def test_the_budget_is_below_the_limit(
    budget: int | None, asked: int | None, most: int | None
) -> None:
    body, warnings = write(
        Reasoning(enabled=True, budget=budget), BUDGET, most=most, max_tokens=asked
    )
    limit, thinking = body["max_tokens"], body["thinking"]

    assert limit <= (most or limit)
    if thinking is None:
        assert limit <= 1024
        assert warnings
    else:
        assert 1024 <= thinking["budget_tokens"] < limit
        assert warnings or budget in {None, thinking["budget_tokens"]}


def test_without_any_limit_there_is_room_for_the_answer() -> None:
    unknown = "some-model"
    body, warnings = write(Reasoning(enabled=True, budget=10_000), unknown, most=None)

    assert (14_096, enabled(10_000), []) == (body["max_tokens"], body["thinking"], warnings)


@pytest.mark.parametrize(
    ("model", "noted"), [("claude-3-5-haiku", 0), (BUDGET, 0), (ADAPTIVE, 0), (ALWAYS, 1)]
)
def test_only_a_model_that_thinks_anyway_is_named(model: str, noted: int) -> None:
    _, warnings = write(Reasoning(enabled=False), model)

    assert noted == len(warnings)


def test_in_this_format_itself_an_effort_is_no_thinking() -> None:
    body, _ = write(Reasoning(effort="low"), BOTH, origin="anthropic_messages")

    assert (None, {"effort": "low"}) == (body["thinking"], body["output_config"])


def test_thinking_as_the_model_sees_fit_stays_so() -> None:
    reasoning = Reasoning(enabled=True, extra={"type": "adaptive", "display": "summarized"})
    body, _ = write(reasoning, BOTH, origin="anthropic_messages")
    assert {"type": "adaptive", "display": "summarized"} == body["thinking"]

    body, _ = write(reasoning, BUDGET, origin="anthropic_messages")
    assert enabled(10_000) == body["thinking"]


def test_a_summary_is_asked_for_where_the_family_can_leave_it_out() -> None:
    body, _ = write(Reasoning(effort="low", summary="auto"), ADAPTIVE)

    assert {"type": "adaptive", "display": "summarized"} == body["thinking"]


@pytest.mark.bug("B103")
def test_a_forced_call_of_a_model_that_thinks_unasked_switches_that_off() -> None:
    forced: Json = {"tools": (Tool("f"),), "choice": ToolChoice("required")}
    off = {"type": "disabled"}
    for reasoning in (None, Reasoning(summary="auto")):
        body, warnings = write(reasoning, "claude-sonnet-5", **forced)
        assert (body["thinking"], warnings) == (off, [])
    asked = Reasoning(effort="max")
    body, warnings = write(asked, "claude-opus-5", origin="anthropic_messages", **forced)
    assert (body["thinking"], body["output_config"]) == (off, {"effort": "high"})
    assert [text.partition(":")[0] for text in warnings] == ["reasoning_effort"]
    for model in (BUDGET, ADAPTIVE, ALWAYS):
        assert write(None, model, **forced)[0]["thinking"] is None
    assert write(None, "claude-sonnet-5", tools=(Tool("f"),))[0]["thinking"] is None


def test_a_forced_call_goes_before_thinking() -> None:
    body, warnings = write(
        Reasoning(effort="high"), BUDGET, tools=(Tool("f"),), choice=ToolChoice("required")
    )

    assert {"type": "disabled"} == body["thinking"]
    assert warnings


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(temperature=0.5, top_p=0.5, top_k=3), set[str]()),
        (Sampling(temperature=1.0, top_p=0.95), {"temperature", "top_p"}),
    ],
)
def test_sampling_beside_thinking_is_what_the_format_takes(
    sampling: Sampling, kept: set[str]
) -> None:
    prompt = Prompt(
        "openai_chat",
        (Message("user", (Text("Hello"),)),),
        reasoning=Reasoning(effort="low"),
        sampling=sampling,
    )
    fields = TARGET.write_request(prompt, Facts("anthropic", BUDGET), Notes())

    assert kept == {"temperature", "top_p", "top_k"} & fields.keys()


@pytest.mark.parametrize(
    ("model", "budget", "adaptive", "efforts", "formats"),
    [
        ("claude-3-5-sonnet-20240620", False, False, 0, False),
        ("claude-3-7-sonnet@20250219", True, False, 0, False),
        ("claude-sonnet-4-0", True, False, 0, False),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", True, False, 0, False),
        ("claude-opus-4-1-20250805", True, False, 0, True),
        ("us.anthropic.claude-haiku-4-5-20251001-v1%3A0", True, False, 0, True),
        ("claude-opus-4-5@20251101", True, False, 3, True),
        ("anthropic/claude-opus-4.6", True, True, 4, True),
        ("claude-opus-4-7", False, True, 5, True),
        ("claude-sonnet-5", False, True, 5, True),
        ("claude-something-new", False, True, 5, True),
        ("kimi-k2", True, False, 0, False),
    ],
)
def test_families_are_known_by_their_names(
    model: str, budget: bool, adaptive: bool, efforts: int, formats: bool
) -> None:
    traits = traits_of(model)

    assert (budget, adaptive, efforts, formats) == (
        traits.budget, traits.adaptive, len(traits.efforts), traits.formats,
    )  # fmt: skip


@pytest.mark.parametrize("asked", ["lowQ", "ultra", "HIGH", " low"])
@pytest.mark.parametrize("model", [BUDGET, BOTH, ADAPTIVE])
@pytest.mark.parametrize("enabled", [None, True])
def test_an_effort_of_an_unknown_word_means_what_no_word_means(
    asked: str, model: str, enabled: bool | None
) -> None:
    plain = write(Reasoning(enabled=enabled), model, most=64_000)
    got, warnings = write(Reasoning(enabled=enabled, effort=asked), model, most=64_000)
    assert (got, warnings) == (
        plain[0],
        [*plain[1], "reasoning_effort: was changed to the nearest that this target takes"],
    )
