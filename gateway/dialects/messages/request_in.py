"""Reads a Messages request; order is kept, and what only this format knows goes into bags."""

from collections.abc import Iterator
from typing import Any

from gateway.core import codec
from gateway.core.message import (
    NO_BAG,
    Bag,
    Message,
    Part,
    Prompt,
    Sampling,
    Text,
    ToolResult,
)
from gateway.dialects.messages.blocks_in import DIALECT, read_blocks
from gateway.dialects.messages.fields import (
    Block,
    flag_at,
    invalid,
    list_at,
    number_at,
    object_at,
    optional_text,
    text_at,
    whole_at,
)
from gateway.dialects.messages.settings_in import (
    read_choice,
    read_output,
    read_reasoning,
    read_tools,
    strays_in,
)
from gateway.dialects.within import Shape, rest_of

_KNOWN = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "output_format",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)

_MESSAGE = Shape("role", "content")
_METADATA = Shape("user_id")
_SAMPLING = frozenset({"stop_sequences", "temperature", "top_k", "top_p"})
_USUAL = Sampling()


def read_request(fields: codec.Fields) -> Prompt:
    """Read the fields of a request.

    A request without `max_tokens` is taken: the target's own limit stands in for it (B111).
    Raises InputError `invalid_request` with the place at fault.
    """
    value: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, raw in fields.items():
        (value if name in _KNOWN else extra)[name] = codec.value_of(raw)
    output = read_output(value.get("output_config"), value.get("output_format"))
    if output.rest:
        extra["output_config"] = output.rest
    user, metadata = _read_metadata(value.get("metadata"))
    choice, parallel = read_choice(value.get("tool_choice"))
    return Prompt(
        origin=DIALECT,
        messages=tuple(_read_messages(value)),
        tools=read_tools(value.get("tools")),
        choice=choice,
        parallel=parallel,
        max_tokens=whole_at(value.get("max_tokens"), "max_tokens", least=0),
        sampling=_read_sampling(value),
        format=output.format,
        reasoning=read_reasoning(value.get("thinking"), output.effort),
        stream=flag_at(value.get("stream"), "stream") or False,
        user=user,
        metadata=metadata,
        service_tier=optional_text(value.get("service_tier"), "service_tier"),
        extra=extra,
        strays=strays_in(value),
    )


def _read_sampling(value: Block) -> Sampling:
    if _SAMPLING.isdisjoint(value):
        return _USUAL
    stops = value.get("stop_sequences")
    listed = list_at(stops, "stop_sequences") if stops is not None else ()
    return Sampling(
        temperature=number_at(value.get("temperature"), "temperature"),
        top_p=number_at(value.get("top_p"), "top_p"),
        top_k=whole_at(value.get("top_k"), "top_k"),
        stop=tuple(text_at(stop, f"stop_sequences.{at}") for at, stop in enumerate(listed)),
    )


def _read_metadata(value: object) -> tuple[str, dict[str, Any] | None]:
    """Return the id of the user, and what else stands there."""
    if value is None:
        return "", None
    metadata = object_at(value, "metadata")
    user = optional_text(metadata.get("user_id"), "metadata.user_id")
    return user, dict(rest_of(metadata, _METADATA)) or None


def _read_messages(value: Block) -> Iterator[Message]:
    system = value.get("system")
    if system is not None:
        yield Message("system", read_blocks(system, "system"))
    results: list[Part] = []
    beside = NO_BAG
    for at, each in enumerate(list_at(value.get("messages"), "messages")):
        place = f"messages.{at}"
        entry = object_at(each, place)
        role = text_at(entry.get("role"), f"{place}.role")
        parts = read_blocks(entry.get("content"), f"{place}.content")
        extra = rest_of(entry, _MESSAGE)
        found, others = _apart(parts) if role == "user" else ((), parts)
        results += found
        if found and not others:
            beside = {**beside, **extra} if extra else beside
            continue
        if results:
            yield Message("tool", tuple(results), extra=beside)
            results, beside = [], NO_BAG
        yield _message(role, others, extra, place)
    if results:
        yield Message("tool", tuple(results), extra=beside)


def _message(role: str, parts: tuple[Part, ...], extra: Bag, place: str) -> Message:
    match role:
        case "user":
            return Message("user", parts, extra=extra)
        case "assistant":
            return Message("assistant", parts, extra=extra)
        case "system":
            if not all(isinstance(part, Text) for part in parts):
                raise invalid(f"{place}.content", "must hold text alone in a system message")
            return Message("system", parts, extra=extra)
        case _:
            raise invalid(f"{place}.role", "must be user, assistant or system")


def _apart(parts: tuple[Part, ...]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return the results of tools, and what the user says besides."""
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    if not results:
        return (), parts
    return results, tuple(part for part in parts if not isinstance(part, ToolResult))
