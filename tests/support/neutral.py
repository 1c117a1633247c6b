"""Random requests, answers and streams in the neutral form, within what one dialect can express.

Everything is drawn from a `random.Random`: seed it for fast loops, or hand over Hypothesis's `randoms()`.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Began,
    Choice,
    Cited,
    Counted,
    Delta,
    Ended,
    Event,
    Finish,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
    Weighed,
)
from gateway.core.message import (
    Format,
    Message,
    Part,
    Prompt,
    Reasoning,
    Refusal,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.core.usage import Usage
from tests.support.neutral_parts import (
    FINISHES,
    PARTS,
    SAMPLING,
    SETTINGS,
    Can,
    arguments,
    mark,
    parts,
    said,
    text,
    value,
    word,
)

__all__ = [
    "FINISHES", "PARTS", "SAMPLING", "SETTINGS", "Can", "answer", "arguments", "cuts", "events", "finish_of",
    "messages", "parts", "prompt", "said", "sampling", "text", "usage", "value", "word",
]  # fmt: skip
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def _results(rng: Random, can: Can, calls: Sequence[ToolCall]) -> Message:
    return Message(
        "tool",
        tuple(
            ToolResult(
                call.id,
                parts(rng, can, can.tool),
                is_error=can.errors and rng.random() < 0.3,
                custom=call.custom,
                cache=mark(rng, can, "result"),
            )
            for call in calls
        ),
    )


def messages(rng: Random, can: Can) -> tuple[Message, ...]:
    """Return a valid history: every call is answered, the last word is the user's or a tool's."""
    found: list[Message] = []
    for _ in range(rng.randrange(3)):
        found.append(Message(rng.choice(can.roles), parts(rng, can, can.system)))
    for turn in range(1 + rng.randrange(3)):
        if turn and can.inline and rng.random() < 0.2:
            found.append(Message(rng.choice(can.roles), parts(rng, can, can.system)))
        name = word(rng) if can.names and rng.random() < 0.3 else ""
        found.append(Message("user", parts(rng, can, can.user), name=name))
        for _ in range(rng.randrange(3)):
            model = Message("assistant", said(rng, can, can.assistant))
            found.append(model)
            calls = [part for part in model.parts if isinstance(part, ToolCall)]
            if not calls:
                break
            found.append(_results(rng, can, calls))
    if found[-1].role == "assistant":
        found.append(Message("user", parts(rng, can, can.user)))
    return tuple(_joined(found)) if can.alternates else tuple(found)


def _joined(found: Sequence[Message]) -> Iterator[Message]:
    """Yield messages of which no neighbours share a role: the later of two is left out."""
    last: Role | None = None
    for message in found:
        if message.role != last or message.role == "tool":
            yield message
        last = message.role


def _tool(rng: Random, can: Can) -> Tool:
    if "custom_tools" in can.settings and rng.random() < 0.3:
        return Tool(word(rng), text(rng, can), custom=True)
    return Tool(
        word(rng),
        text(rng, can),
        rng.choice((None, {}, _SCHEMA)),
        strict=rng.choice((None, True, False)) if "strict" in can.settings else None,
        cache=mark(rng, can, "tool"),
    )


def _choice(rng: Random, can: Can, tools: Sequence[Tool]) -> ToolChoice | None:
    if "choice" not in can.settings or rng.random() < 0.4:
        return None
    plain = [tool for tool in tools if not tool.custom]
    if plain and rng.random() < 0.4:
        return ToolChoice("named", (rng.choice(plain).name,))
    if plain and "allowed" in can.settings and rng.random() < 0.4:
        return ToolChoice(rng.choice(("auto", "required")), tuple(tool.name for tool in plain))
    return ToolChoice(rng.choice(("auto", "none", "required")))


def sampling(rng: Random, can: Can) -> Sampling:
    """Return settings of which each is there or not."""
    drawn: dict[str, Any] = {
        "temperature": rng.choice((0.0, 0.5, 1.0)),
        "top_p": rng.choice((0.0, 0.9, 1.0)),
        "top_k": rng.randrange(1, 100),
        "seed": rng.randrange(2**31),
        "presence_penalty": rng.choice((-2.0, 0.0, 0.5)),
        "frequency_penalty": rng.choice((0.0, 1.5)),
        "logit_bias": {"50256": -100},
        "logprobs": True,
        "top_logprobs": rng.randrange(1, 5),
        "n": rng.randrange(1, 4),
        "stop": tuple(word(rng, 3) for _ in range(1 + rng.randrange(3))),
    }
    if "logprobs" not in can.settings:
        drawn.pop("top_logprobs")
    kept = {k: v for k, v in drawn.items() if k in can.settings and rng.random() < 0.4}
    if "top_logprobs" in kept:
        kept["logprobs"] = True
    return Sampling(**kept)


def _format(rng: Random, can: Can) -> Format | None:
    kinds = [kind for kind in ("json", "schema") if kind in can.settings]
    if not kinds or rng.random() < 0.6:
        return None
    if rng.choice(kinds) == "json":
        return Format("json")
    strict = rng.choice((None, True)) if "strict" in can.settings else None
    return Format("schema", word(rng), _SCHEMA, strict)


def _reasoning(rng: Random, can: Can) -> Reasoning | None:
    kinds = [kind for kind in ("budget", "disabled", "effort") if kind in can.settings]
    if not kinds or rng.random() < 0.5:
        return None
    match rng.choice(kinds):
        case "budget":
            return Reasoning(enabled=True, budget=rng.randrange(1024, 9000))
        case "disabled":
            return Reasoning(enabled=False)
        case _:
            summary = "auto" if "summary" in can.settings and rng.random() < 0.5 else ""
            return Reasoning(effort=rng.choice(("low", "medium", "high")), summary=summary)


def prompt(rng: Random, can: Can) -> Prompt:
    """Return a valid request in the form that readers of `can.origin` give it."""
    tools: tuple[Tool, ...] = ()
    if "tools" in can.settings:
        tools = tuple(_tool(rng, can) for _ in range(rng.randrange(3)))
    stream = "stream" in can.settings and rng.random() < 0.5
    drawn: dict[str, Any] = {
        "parallel": rng.choice((True, False)) if tools else None,
        "max_tokens": rng.randrange(10_000, 20_000),
        "verbosity": rng.choice(("low", "high")),
        "user": word(rng),
        "metadata": {word(rng): word(rng)},
        "service_tier": "flex",
        "store": rng.choice((True, False)),
        "cache_key": word(rng),
        "include_usage": stream,
    }
    kept = {k: v for k, v in drawn.items() if k in can.settings and rng.random() < 0.4}
    return Prompt(
        origin=can.origin,
        messages=messages(rng, can),
        tools=tools,
        choice=_choice(rng, can, tools) if tools else None,
        sampling=sampling(rng, can),
        format=_format(rng, can),
        reasoning=_reasoning(rng, can),
        stream=stream,
        **kept,
    )


def usage(rng: Random, can: Can) -> Usage:
    """Return counts whose parts are never more than their totals; some are not told, some are 0."""
    input_, output = rng.randrange(1000), rng.randrange(1000)
    parts_of = {
        "cached": input_ // 3,
        "cache_write": input_ // 3,
        "audio_input": 1 + input_ // 4,
        "reasoning": output // 2,
        "audio_output": 1 + output // 4,
    }
    told = {k: v for k, v in parts_of.items() if k in can.usage and rng.random() < 0.5}
    return Usage(input_, output, **told)


def _weights(rng: Random) -> tuple[Any, ...]:
    return tuple(
        {"token": word(rng, 2), "logprob": -rng.random(), "bytes": None, "top_logprobs": []}
        for _ in range(1 + rng.randrange(3))
    )


def finish_of(rng: Random, can: Can, found: Sequence[Part]) -> Finish:
    """Return an end that is true for these parts (K35)."""
    if any(isinstance(part, ToolCall) for part in found):
        return "tool_calls"
    if any(isinstance(part, Refusal) for part in found):
        return "refusal" if "refusal" in can.finishes else "content_filter"
    return rng.choice([finish for finish in can.finishes if finish != "refusal"])


def answer(rng: Random, can: Can) -> Answer:
    """Return an answer in the form that readers of `can.origin` give it; `native` is left empty."""
    choices: list[Choice] = []
    for index in range(1 + rng.randrange(can.most_choices)):
        found = said(rng, can, can.answer, least=0)
        finish = finish_of(rng, can, found)
        stop = word(rng, 3) if finish == "stop_sequence" else ""
        weights = _weights(rng) if can.logprobs and rng.random() < 0.3 else ()
        choices.append(Choice(index, found, finish, "", stop, weights))
    counts = usage(rng, can) if rng.random() < 0.9 else None
    return Answer(can.origin, f"id_{word(rng)}", word(rng), tuple(choices), counts, 1_750_000_000)


def _pieces(rng: Random, said: str) -> list[str]:
    """Cut a text into deltas; some may be empty."""
    pieces: list[str] = []
    while said:
        size = rng.choice((0, 1, 2, 5, len(said)))
        pieces.append(said[:size])
        said = said[size:]
    return pieces


def _told(rng: Random, choice: int, at: int, part: Part) -> list[Event]:
    """Return the events of one part."""
    match part:
        case Text(text=said) | Thinking(text=said) | Refusal(text=said):
            bare = codec.replace(part, text="")
        case ToolCall(arguments=said):
            bare = codec.replace(part, arguments="")
        case _:
            return [PartBegan(choice, at, part), PartEnded(choice, at)]
    middle: list[Event] = []
    if isinstance(part, Text):
        middle += (Cited(choice, at, citation) for citation in part.citations)
        bare = codec.replace(bare, citations=())
    seal: list[Event] = []
    if isinstance(part, Thinking) and part.signature and rng.random() < 0.7:
        bare = codec.replace(bare, signature="", maker="")
        seal = [Sealed(choice, at, part.signature, part.maker)]
    deltas: list[Event] = [Delta(choice, at, piece) for piece in _pieces(rng, said)]
    return [
        PartBegan(choice, at, bare),
        *_mixed(rng, (deltas, middle)),
        *seal,
        PartEnded(choice, at),
    ]


def events(rng: Random, whole: Answer, *, overlap: bool = True) -> list[Event]:
    """Return a stream that tells an answer: choices interleaved; with `overlap`, parts from the first call on too."""
    lines: list[list[Event]] = []
    for choice in whole.choices:
        told = [_told(rng, choice.index, at, part) for at, part in enumerate(choice.parts)]
        first = next(
            (at for at, p in enumerate(choice.parts) if isinstance(p, ToolCall)), len(told)
        )
        line = [event for part in told[:first] for event in part]
        line += _mixed(rng, told[first:]) if overlap else [e for p in told[first:] for e in p]
        for weight in choice.logprobs:
            line.insert(_behind_last_weight(rng, line), Weighed(choice.index, (weight,)))
        end = Finished(choice.index, choice.finish, choice.native, choice.stop_sequence)
        lines.append([*line, end])
    found: list[Event] = [Began(whole.id, whole.model, whole.created), *_mixed(rng, lines)]
    if whole.usage is not None:
        if rng.random() < 0.3:
            found.insert(rng.randrange(1, len(found) + 1), Counted(Usage(1, 1)))
        found.append(Counted(whole.usage))
    return [*found, Ended()]


def _behind_last_weight(rng: Random, line: Sequence[Event]) -> int:
    weighed = [at for at, event in enumerate(line) if isinstance(event, Weighed)]
    return rng.randrange(weighed[-1] + 1 if weighed else 0, len(line) + 1)


def _mixed(rng: Random, lines: Sequence[Sequence[Event]]) -> list[Event]:
    """Merge several sequences, each of which keeps its own order; parts begin in the order they are given."""
    rest = [list(line) for line in lines if line]
    begun = 1
    found: list[Event] = []
    while rest:
        at = rng.randrange(min(begun, len(rest)))
        found.append(rest[at].pop(0))
        if rest[at]:
            begun = max(begun, at + 2)
        else:
            del rest[at]
            begun = max(1, begun - 1) if at < begun - 1 else begun
    return found


def cuts(rng: Random, data: bytes) -> list[bytes]:
    """Cut bytes anywhere."""
    pieces: list[bytes] = []
    while data:
        size = rng.choice((1, 2, 7, 50, 400))
        pieces.append(data[:size])
        data = data[size:]
    return pieces
