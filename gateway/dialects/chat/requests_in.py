"""A caller's request, read into the neutral form: every documented field, and what others send too."""

from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.message import Prompt, Sampling
from gateway.dialects.chat.fields import (
    a_list,
    a_text,
    maybe_count,
    maybe_flag,
    maybe_number,
    maybe_object,
    maybe_text,
    wrong,
)
from gateway.dialects.chat.messages_in import messages_of
from gateway.dialects.chat.tools_in import (
    SETTINGS,
    choice_of,
    format_of,
    function_choice_of,
    functions_of,
    reasoning_of,
    tools_of,
)
from gateway.dialects.within import strays_of

_KNOWN = frozenset(
    {
        "frequency_penalty",
        "function_call",
        "functions",
        "gateway",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
    }
)
_THOUGHT = frozenset({"reasoning", "reasoning_effort", "thinking"})
_STREAM_OPTIONS = frozenset({"include_usage", "include_obfuscation"})


def read_request(fields: codec.Fields) -> Prompt:
    """Read the fields of a request; raises InputError `invalid_request` with the path of what is not valid."""
    said = {name: codec.value_of(raw) for name, raw in fields.items()}
    get = said.get
    tools = tools_of(said["tools"]) if get("tools") is not None else ()
    if get("functions") is not None:
        tools = (*tools, *functions_of(said["functions"]))
    choice = choice_of(said["tool_choice"]) if get("tool_choice") is not None else None
    if choice is None and get("function_call") is not None:
        choice = function_choice_of(said["function_call"])
    limit = maybe_count(get("max_tokens"), "max_tokens")
    newer = maybe_count(get("max_completion_tokens"), "max_completion_tokens")
    user, extra = _user(said)
    include_usage = False
    if "stream_options" in said:
        include_usage, options = _stream_options(said["stream_options"])
        if options:
            extra["stream_options"] = options
    extra.update((k, v) for k, v in said.items() if k not in _KNOWN and v is not None)
    if extra.get("modalities") == ["text"]:
        del extra["modalities"]
    return Prompt(
        origin="openai_chat",
        messages=messages_of(get("messages")),
        tools=tools,
        choice=choice,
        parallel=maybe_flag(get("parallel_tool_calls"), "parallel_tool_calls"),
        max_tokens=limit if newer is None else newer,
        sampling=_sampling(said),
        format=format_of(said["response_format"]) if get("response_format") is not None else None,
        reasoning=None
        if _THOUGHT.isdisjoint(said)
        else reasoning_of(get("reasoning_effort"), get("reasoning"), get("thinking")),
        verbosity=maybe_text(get("verbosity"), "verbosity"),
        stream=maybe_flag(get("stream"), "stream") or False,
        include_usage=include_usage,
        user=user,
        metadata=maybe_object(get("metadata"), "metadata"),
        service_tier=maybe_text(get("service_tier"), "service_tier"),
        store=maybe_flag(get("store"), "store"),
        cache_key=maybe_text(get("prompt_cache_key"), "prompt_cache_key"),
        extra=extra,
        strays=strays_of(said, SETTINGS),
    )


def _sampling(said: Mapping[str, Any]) -> Sampling:
    get = said.get
    return Sampling(
        temperature=maybe_number(get("temperature"), "temperature"),
        top_p=maybe_number(get("top_p"), "top_p"),
        top_k=maybe_count(get("top_k"), "top_k"),
        seed=_seed(get("seed")),
        presence_penalty=maybe_number(get("presence_penalty"), "presence_penalty"),
        frequency_penalty=maybe_number(get("frequency_penalty"), "frequency_penalty"),
        logit_bias=_bias(get("logit_bias")),
        logprobs=maybe_flag(get("logprobs"), "logprobs"),
        top_logprobs=maybe_count(get("top_logprobs"), "top_logprobs"),
        n=maybe_count(get("n"), "n", 1),
        stop=_stop(get("stop")),
    )


def _seed(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise wrong("seed", "a whole number")


def _bias(value: object) -> Mapping[str, Any] | None:
    bias = maybe_object(value, "logit_bias")
    for token, weight in (bias or {}).items():
        maybe_number(weight, f"logit_bias.{token}")
    return bias


def _stop(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    listed = a_list(value, "stop")
    return tuple(a_text(item, f"stop[{place}]") for place, item in enumerate(listed))


def _user(said: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return who asks, and the other id for it where two different ones are given."""
    user = maybe_text(said.get("user"), "user")
    newer = maybe_text(said.get("safety_identifier"), "safety_identifier")
    if user and newer and user != newer:
        return user, {"safety_identifier": newer}
    return user or newer, {}


def _stream_options(value: object) -> tuple[bool, dict[str, Any]]:
    """Return whether the usage chunk is asked for, and what else is; padding is the gateway's own affair."""
    options = maybe_object(value, "stream_options") or {}
    asked = maybe_flag(options.get("include_usage"), "stream_options.include_usage") or False
    return asked, {k: v for k, v in options.items() if k not in _STREAM_OPTIONS}
