"""A caller's request, read into the neutral form. Nothing is stored, so what needs stored state is refused."""

from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Message, Prompt, Sampling, Text
from gateway.dialects.chat.fields import (
    maybe_count,
    maybe_flag,
    maybe_number,
    maybe_object,
    maybe_text,
    wrong,
)
from gateway.dialects.losses import Notes
from gateway.dialects.responses.items_in import messages_of
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.responses.tools_in import (
    CHOICE,
    LOGPROBS,
    SEALED_REASONING,
    SETTINGS,
    choice_of,
    include_of,
    reasoning_of,
    text_of,
    tools_of,
)
from gateway.dialects.within import strays_of

_KNOWN = frozenset(
    {
        "background",
        "conversation",
        "gateway",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "metadata",
        "model",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
_STATEFUL = {
    "previous_response_id": "answers are not stored here; send the whole history in `input`",
    "conversation": "conversations are not stored here; send the whole history in `input`",
    "prompt": "prompts that a provider stores cannot be used here; send the text itself",
}


def read_request(fields: codec.Fields, notes: Notes) -> Prompt:
    """Read the fields of a request; raises InputError `invalid_request` with the path of what is not valid."""
    said = {name: codec.value_of(raw) for name, raw in fields.items()}
    get = said.get
    _refuse_state(said)
    store = maybe_flag(get("store"), "store")
    if store:
        notes.lost("store_off", "store")
    include = include_of(get("include"))
    choice, own_choice = choice_of(get("tool_choice"))
    form, verbosity = text_of(get("text"))
    user, extra = _user(said)
    own: dict[str, Any] = {
        "tool_choice": own_choice,
        "include": [each for each in include if each not in {LOGPROBS, SEALED_REASONING}] or None,
        "truncation": None if get("truncation") == "disabled" else get("truncation"),
        **{name: value for name, value in said.items() if name not in _KNOWN},
    }
    extra.update((name, value) for name, value in own.items() if value is not None)
    weighed = LOGPROBS in include or get("top_logprobs") is not None
    return Prompt(
        origin=ORIGIN,
        messages=_messages(said, notes),
        tools=tools_of(get("tools")),
        choice=choice,
        parallel=maybe_flag(get("parallel_tool_calls"), "parallel_tool_calls"),
        max_tokens=maybe_count(get("max_output_tokens"), "max_output_tokens"),
        sampling=Sampling(
            temperature=maybe_number(get("temperature"), "temperature"),
            top_p=maybe_number(get("top_p"), "top_p"),
            logprobs=True if weighed else None,
            top_logprobs=maybe_count(get("top_logprobs"), "top_logprobs"),
        ),
        format=form,
        reasoning=reasoning_of(get("reasoning"), sealed=SEALED_REASONING in include),
        verbosity=verbosity,
        stream=maybe_flag(get("stream"), "stream") or False,
        include_usage=True,
        user=user,
        metadata=maybe_object(get("metadata"), "metadata"),
        service_tier=maybe_text(get("service_tier"), "service_tier"),
        store=store,
        cache_key=maybe_text(get("prompt_cache_key"), "prompt_cache_key"),
        extra=extra,
        strays=strays_of(said, {**SETTINGS, **CHOICE} if own_choice is None else SETTINGS),
    )


def _refuse_state(said: dict[str, Any]) -> None:
    for name, why in _STATEFUL.items():
        if said.get(name) is not None:
            raise InputError("invalid_request", f"{name}: {why}", param=name)
    if maybe_flag(said.get("background"), "background"):
        raise InputError(
            "invalid_request",
            "background: answers are not made in the background here; ask without it",
            param="background",
        )
    maybe_object(said.get("stream_options"), "stream_options")


def _messages(said: dict[str, Any], notes: Notes) -> tuple[Message, ...]:
    found: list[Message] = []
    instructions = said.get("instructions")
    if isinstance(instructions, list):  # as a response repeats them
        found += messages_of(cast("object", instructions), notes, "instructions")
    elif maybe_text(instructions, "instructions"):
        found.append(Message("system", (Text(said["instructions"]),)))
    if said.get("input") is not None:
        found += messages_of(said["input"], notes)
    if not found:
        raise wrong("input", "a text or a list of items that is not empty")
    return tuple(found)


def _user(said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return who asks, and the other id for it where two different ones are given."""
    user = maybe_text(said.get("user"), "user")
    newer = maybe_text(said.get("safety_identifier"), "safety_identifier")
    if user and newer and user != newer:
        return user, {"safety_identifier": newer}
    return user or newer, {}
