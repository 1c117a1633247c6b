"""Requests planned for targets of other formats: what of a caller's headers goes on, and where the work is done."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.call import Run
from gateway.dialects.registry import DIALECTS
from gateway.engine import translating
from gateway.engine.outgoing import JsonOriginal, Outgoing
from gateway.providers.registry import PROVIDERS
from gateway.stores.opaque import MemoryOpaque
from tests.support import plans

VERSION = (b"anthropic-version", b"2023-06-01")
BETAS = (b"anthropic-beta", b"context-management-2025-06-27, claude-code-20250219")
SESSION = (b"x-claude-code-session-id", b"s")
CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
Json = dict[str, Any]


class Watched(dict[str, codec.Raw]):
    """Fields that know which threads read them."""

    def __init__(self) -> None:
        super().__init__()
        self.readers: set[int] = set()

    def items(self) -> Any:
        """Note who reads them."""
        self.readers.add(threading.get_ident())
        return super().items()


async def planned(wire: str, kind: str, model: str, **more: Any) -> tuple[Run, Outgoing]:
    """Plan a request of Messages with betas to a target that speaks `wire`."""
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], **more}
    fields = {name: codec.raw(value) for name, value in body.items()}
    return await planned_of(fields, wire, kind, model)


async def planned_of(
    fields: codec.Fields, wire: str, kind: str, model: str
) -> tuple[Run, Outgoing]:
    """Plan a request of these fields."""
    run = Run("req_1", "messages", 0.0, 60.0)
    run.dialect = DIALECTS["anthropic_messages"]
    run.passed = (VERSION, BETAS, SESSION)
    account = replace(plans.account(kind="openai"), row=PROVIDERS[kind])
    target = replace(plans.target(model), account=account)
    original = JsonOriginal(b"/messages", fields, watched=True)
    found = await translating.plan(
        run, plans.model("m", [target]), target, original, wire, MemoryOpaque()
    )
    return run, found


def body_of(found: Outgoing) -> Json:
    """Return the body that goes out."""
    body: Json = json.loads(found.body if isinstance(found.body, bytes) else b"")
    return body


async def test_bedrock_gets_the_betas_that_it_knows_in_the_fields_of_the_model() -> None:
    editing = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    run, found = await planned("bedrock_converse", "bedrock", CLAUDE, context_management=editing)

    assert body_of(found)["additionalModelRequestFields"] == {
        "context_management": editing,
        "anthropic_beta": ["context-management-2025-06-27"],
    }
    assert [text.partition(":")[0] for text in run.warnings] == [
        "anthropic-beta claude-code-20250219"
    ]


async def test_betas_in_the_body_go_before_those_of_the_header() -> None:
    _, found = await planned("bedrock_converse", "bedrock", CLAUDE, anthropic_beta=["own"])

    assert body_of(found)["additionalModelRequestFields"] == {"anthropic_beta": ["own"]}


@pytest.mark.parametrize(
    ("wire", "kind", "headers"),
    [
        ("bedrock_anthropic", "bedrock", set[tuple[bytes, bytes]]()),
        ("bedrock_converse", "bedrock", set[tuple[bytes, bytes]]()),
        ("vertex_anthropic", "vertex", {(BETAS[0], b"context-management-2025-06-27")}),
        ("openai_chat", "openai", set[tuple[bytes, bytes]]()),
        ("anthropic_messages", "anthropic", {VERSION, BETAS, SESSION}),
    ],
)
async def test_headers_of_anthropic_go_where_they_are_known(
    wire: str, kind: str, headers: set[tuple[bytes, bytes]]
) -> None:
    _, found = await planned(wire, kind, CLAUDE)

    said = [each for each in found.headers if each[0] != b"content-type"]
    assert headers == set(said)
    assert len(headers) == len(said)


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("wire", "kind", "is_noted"),
    [
        ("openai_chat", "openai", True),
        ("openai_responses", "openai", True),
        ("gemini", "gemini", True),
        ("anthropic_messages", "anthropic", False),
    ],
)
async def test_betas_that_a_format_does_not_know_are_noted(
    wire: str, kind: str, is_noted: bool
) -> None:
    run, _ = await planned(wire, kind, "m")

    assert any(text.startswith("anthropic-beta: is not known") for text in run.warnings) is is_noted


@pytest.mark.parametrize("length", [100, 300_000])
async def test_large_requests_are_read_beside_the_loop(length: int) -> None:
    said = Watched()
    said["max_tokens"] = codec.raw(9)
    said["messages"] = codec.raw([{"role": "user", "content": "x" * length}])
    _, found = await planned_of(said, "openai_chat", "openai", "gpt-5")

    assert body_of(found)["messages"] == [{"role": "user", "content": "x" * length}]
    assert (threading.get_ident() in said.readers) is (length < 1 << 18)
