"""A member that no format knows, in any object of a request: carried to the target, named, or refused (K34)."""

import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, cast

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.dialects.chat import messages_in, parts_in, reasoning, requests_in, seal, tools_in
from gateway.dialects.losses import Notes
from gateway.dialects.messages import blocks_in, request_in, settings_in
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.responses import items_in as responses_items
from gateway.dialects.responses import parts_in as responses_parts
from gateway.dialects.responses import tools_in as responses_tools
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write
from gateway.dialects.within import Shape
from tests.support.planted import VALUE, cases, names

Json = dict[str, Any]
FACTS = {
    "openai_chat": Facts("openai", "gpt-4.1"),
    "openrouter": Facts("openrouter", "a/b"),
    "mistral": Facts("mistral", "m"),
    "anthropic_messages": Facts("anthropic", "claude-sonnet-4-5", 64_000),
    "bedrock_anthropic": Facts("bedrock", "anthropic.claude-opus-4-6-v1", 64_000),
    "vertex_anthropic": Facts("vertex", "claude-opus-4-6", 64_000),
    "bedrock_converse": Facts("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000),
    "nova": Facts("bedrock", "amazon.nova-pro-v1:0", 5_000),
    "cohere_v2": Facts("cohere", "command-a"),
    "gemini": Facts("gemini", "gemini-3-pro-preview"),
    "vertex": Facts("vertex", "gemini-2.5-flash"),
    "ollama": Facts("ollama", "llama4"),
    "openai_responses": Facts("openai", "gpt-5"),
}
WIRES = {"openrouter": "openai_chat", "mistral": "openai_chat", "nova": "bedrock_converse"}

READERS: dict[str, tuple[ModuleType, ...]] = {
    "anthropic_messages": (blocks_in, request_in, settings_in),
    "openai_chat": (messages_in, parts_in, reasoning, requests_in, seal, tools_in),
    "openai_responses": (responses_items, responses_parts, responses_tools),
}
"""Where the shapes of each caller's format stand, and the tables of its kinds of parts and items."""

UNSEEN = {"anthropic", "azure", "bedrock", "gemini", "openai", "xai"}
"""Makers whose seals stand as those of Google do."""
UNREAD = {"item_reference"}
"""Kinds that are refused by their name."""

REFUSED = {"conversation", "prompt", "prompt.variables", "input[0]"}
"""Objects that every target refuses: what is stored elsewhere, and an item that is only named."""

pytestmark = [pytest.mark.bug("K34"), pytest.mark.slow]


def sent(caller: str, aim: str, body: Json) -> tuple[str, list[str]] | None:
    """Return the body for a target and what its caller is told; None where it is refused."""
    notes, side, facts = Notes(), TARGETS[WIRES.get(aim, aim)], FACTS[aim]
    fields = {name: codec.raw(value) for name, value in body.items()}
    try:
        prompt = CALLERS[caller].read_request(fields, notes)
        told = Told("req_1", "m", 0, prompt)
        out = write(prompt, CALLERS[caller], side, facts, side.grammar(facts), told, notes)
    except InputError:
        return None
    return codec.join(out.fields).decode(), notes.warnings


@cache
def outcome(caller: str, aim: str) -> tuple[list[str], frozenset[object]]:
    """Return the places where a member is lost without a word, and the kinds of all places that were looked at."""
    silent: list[str] = []
    seen: set[object] = set()
    for request, spots in cases(caller):
        new = [spot for spot in spots if spot.kinds not in seen]
        if not new or sent(caller, aim, request) is None:
            continue
        for spot in new:
            seen.add(spot.kinds)
            found = sent(caller, aim, spot.plant(request))
            if found is None or VALUE in found[0]:
                continue
            if not any(names(warning, spot.path) for warning in found[1]):
                silent.append(f"{spot.path}: {found[1]}")
    return silent, frozenset(seen)


@pytest.mark.parametrize("aim", FACTS)
@pytest.mark.parametrize("caller", CALLERS)
def test_no_member_is_lost_without_a_word(caller: str, aim: str) -> None:
    silent, seen = outcome(caller, aim)

    assert silent == []
    assert len(seen) > 2 * len({spot.kinds for _, spots in cases(caller) for spot in spots}) / 3


@pytest.mark.parametrize("caller", CALLERS)
def test_every_object_is_planted_where_some_target_takes_it(caller: str) -> None:
    taken = frozenset[object]().union(*(outcome(caller, aim)[1] for aim in FACTS))
    never = {spot.path for _, spots in cases(caller) for spot in spots if spot.kinds not in taken}

    assert never <= REFUSED


def shapes_in(value: object) -> Iterator[Shape]:
    """Yield the shapes of a table, with those inside of them."""
    if isinstance(value, Shape):
        yield value
        yield from shapes_in(value.inner)
    elif isinstance(value, dict):
        for each in cast("dict[object, object]", value).values():
            yield from shapes_in(each)


@pytest.mark.parametrize("caller", CALLERS)
def test_every_object_that_a_reader_knows_is_planted(caller: str) -> None:
    paths = " ".join(spot.path for _, spots in cases(caller) for spot in spots)
    bodies = " ".join(codec.encode(request).decode() for request, _ in cases(caller))

    for module in READERS[caller]:
        for name, table in vars(module).items():
            known = {inner for shape in shapes_in(table) for inner in shape.inner}
            missing = {each for each in known if not re.search(rf"\b{each}(\[|\.| |$)", paths)}
            assert missing <= UNSEEN, (module.__name__, name)
        for kind in getattr(module, "_READERS", {}):
            assert f'"{kind}"' in bodies or kind in UNREAD, kind
