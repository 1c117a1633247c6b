"""How kinds of providers that speak chat completions differ, as data: what requests may hold and how it is said."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from gateway.dialects.grammar import Grammar, NameRules

Fields = frozenset[str]
_SAID = frozenset(
    {
        "temperature",
        "top_p",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "n",
        "stop",
        "parallel_tool_calls",
    }
)
"""What every provider may be asked; `providers.edit` takes out what one of them refuses."""
_WIDE = _SAID | {"metadata", "prompt_cache_key", "service_tier", "store", "user", "verbosity"}
_OPEN = _SAID | {"top_k", "user"}


_BASE = Grammar(
    results_together=True,
    results_complete=True,
    results_text_only=True,
    object_arguments=True,
    open_thinking=True,
    audio=False,
    files=False,
    file_urls=False,
    text_files=False,
    file_ids=frozenset({"openai_chat", "openai_responses"}),
    items=frozenset({"openai_chat"}),
)
"""Calls are answered at once and completely, as all of them want it."""


@dataclass(frozen=True, slots=True)
class Manner:
    """One kind of provider.

    `fields`: settings that it knows. `openai`: it knows custom tools and choices among some tools; `developer`: it
    knows developer messages. `thinking`: where reasoning of the history stands: a member of that name,
    reasoning_details, `parts` of the content (Mistral), or nowhere; `wants_thinking`: with reasoning on, calls of
    the history must come with it, be it empty; models of `quiet` do not think. `reasoning`: how its amount is said:
    effort (`reasoning_effort`), object (OpenRouter), switch (`thinking`, beside an effort), either (one of both),
    flags (Alibaba). `null_content`: a message of calls alone has null content, else an empty text. `documents`:
    how a document is written: file, address (Mistral), or not at all. `strict`: it refuses members that it does
    not know (Mistral); a last message of the model is marked to be gone on with, and one of the model stands
    between results and the user. `refused`: members of messages that OpenAI takes and gives, and this kind
    refuses. `held`: relays keep the rules of this kind as well (`chat.history_rules`); not where whoever runs
    the server decides on them.
    """

    fields: Fields = _OPEN
    openai: bool = False
    developer: bool = False
    wants_thinking: bool = False
    quiet: frozenset[str] = frozenset()
    thinking: Literal["", "reasoning", "reasoning_content", "reasoning_details", "parts"] = (
        "reasoning_content"
    )
    reasoning: Literal["effort", "object", "switch", "either", "flags"] = "effort"
    null_content: bool = False
    documents: Literal["", "file", "address"] = ""
    strict: bool = False
    refused: Fields = frozenset()
    held: bool = True
    grammar: Grammar = _BASE


_OPENAI = Manner(
    fields=_WIDE,
    openai=True,
    developer=True,
    thinking="",
    null_content=True,
    documents="file",
    grammar=replace(
        _BASE,
        object_arguments=False,
        open_thinking=False,
        audio=True,
        files=True,
        call_ids=NameRules(r"[ -~]+", 40),
        custom_tools=True,
    ),
)
_ROUTER = Manner(
    fields=_WIDE | {"top_k"},
    held=False,
    developer=True,
    thinking="reasoning_details",
    reasoning="object",
    documents="file",
    grammar=replace(
        _BASE,
        cache_marks=4,
        makers=frozenset({"openrouter"}),
        empty_text=False,
        audio=True,
        files=True,
        file_urls=True,
        results_text_only=False,
    ),
)
_OF_ANSWERS = frozenset({"annotations", "audio", "refusal"})
"""Members that clients send back with the message of an answer."""
_PLAIN = Manner(grammar=_BASE)
_HEARING = Manner(held=False, grammar=replace(_BASE, audio=True))
_REASONING = Manner(thinking="reasoning", held=False, grammar=_BASE)
MANNERS: Mapping[str, Manner] = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    "openai_compatible": Manner(
        fields=_WIDE | {"top_k"},
        documents="file",
        held=False,
        grammar=replace(_BASE, audio=True, files=True),
    ),
    "openrouter": _ROUTER,
    "vercel": _ROUTER,
    "mistral": Manner(
        fields=_SAID | {"metadata"},
        thinking="parts",
        documents="address",
        strict=True,
        refused=_OF_ANSWERS | {"cache_control", "function_call", "name"},
        grammar=replace(
            _BASE,
            system="leading",
            empty_text=False,
            audio=True,
            files=True,
            file_urls=True,
            results_text_only=False,
            call_ids=NameRules(r"[a-zA-Z0-9]{9}", 9),
        ),
    ),
    "groq": Manner(
        fields=_SAID | {"service_tier", "user"},
        thinking="reasoning",
        refused=_OF_ANSWERS | {"cache_control"},
        grammar=_BASE,
    ),
    "cerebras": Manner(
        fields=_SAID | {"service_tier", "user"},
        thinking="reasoning",
        refused=_OF_ANSWERS | {"cache_control"},
        grammar=replace(_BASE, image_urls=False, image_data=False),
    ),
    "xai": Manner(fields=_SAID | {"user"}, held=False, grammar=_BASE),
    "deepseek": Manner(
        fields=_SAID,
        wants_thinking=True,
        quiet=frozenset({"deepseek-chat"}),
        reasoning="switch",
        grammar=replace(
            _BASE,
            image_urls=False,
            image_data=False,
            forms=frozenset({"text", "json"}),
            forced="quiet",
        ),
    ),
    "zai": Manner(fields=_SAID | {"user"}, reasoning="either", grammar=_BASE),
    "moonshot": Manner(
        fields=_SAID | {"prompt_cache_key", "user"},
        wants_thinking=True,
        reasoning="switch",
        grammar=replace(_BASE, image_urls=False, empty_text=False),
    ),
    "alibaba": Manner(reasoning="flags", grammar=replace(_BASE, cache_marks=4, audio=True)),
    "perplexity": Manner(
        fields=_SAID | {"top_k"},
        thinking="",
        grammar=replace(
            _BASE,
            open_thinking=False,
            alternates=True,
            first_user=True,
            system="leading",
            empty_text=False,
            prefill=False,
            forms=frozenset({"text", "schema"}),
            forced="never",
        ),
    ),
    "gemini_compatible": Manner(
        fields=_SAID,
        thinking="",
        grammar=replace(
            _BASE,
            makers=frozenset({"gemini"}),
            open_thinking=False,
            empty_text=False,
            audio=True,
            image_urls=False,
        ),
    ),
    "cohere_compatible": Manner(
        fields=_SAID, thinking="", grammar=replace(_BASE, open_thinking=False, empty_text=False)
    ),
    "ollama": Manner(
        thinking="reasoning",
        held=False,
        grammar=replace(_BASE, image_urls=False, results_text_only=False),
    ),
    "vllm": Manner(thinking="reasoning", held=False, grammar=replace(_BASE, audio=True)),
    "llamacpp": _HEARING,
    "sglang": _HEARING,
    "huggingface": _REASONING,
}
"""What differs; any other kind is like `OTHERS`."""
OTHERS = _PLAIN


def manner_of(kind: str) -> Manner:
    """Return how a kind of provider takes requests."""
    return MANNERS.get(kind, OTHERS)


@cache
def grammar_of(kind: str, *, prefill: bool = True, stops: bool = True) -> Grammar:
    """Return what a history must be for a kind of provider.

    `prefill`: its model goes on with an answer; `stops`: it takes stop sequences, else the gateway ends answers.
    """
    grammar = manner_of(kind).grammar
    if prefill and stops:
        return grammar
    return replace(grammar, prefill=prefill, most_stops=grammar.most_stops if stops else 0)
