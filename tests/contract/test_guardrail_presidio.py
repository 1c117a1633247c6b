"""Personal data found by Presidio, where it is installed; nothing is fetched for it, and no model is needed for forms."""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.registry import load_check
from tests.support.models import ask, chained, said
from tests.support.shared import lacking

FORMS = ["EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "US_SSN", "IP_ADDRESS"]
TEXT = "Write to bob@example.org, card 4111 1111 1111 1111, from 192.168.17.34."

pytestmark = [pytest.mark.timeout(120), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def installed() -> None:
    """Go on where the extra is installed."""
    if find_spec("presidio_analyzer") is None:
        lacking("presidio-analyzer")


def models() -> Sequence[str]:
    """Return the models of spaCy that are installed for English."""
    names: Sequence[str] = cast("Any", import_module("spacy.util")).get_installed_models()
    return [name for name in names if name.startswith("en_")]


def check(**options: Any) -> dict[str, Any]:
    """Return a check by Presidio."""
    return {"kind": "pii", "engine": "presidio", "action": "redact", **options}


def made(**options: Any) -> None:
    """Build a check alone."""
    row = load_check("pii")
    build = cast("Build", SimpleNamespace(id="g"))
    row(row.options.model_validate(check(**options)), build)


async def test_forms_are_found_without_a_model(tmp_path: Path) -> None:
    rail = {"guardrail": {"input": [check(entities=FORMS, restore=True)], "timeout_ms": 30_000}}
    messages = [{"role": "user", "content": TEXT}]
    answer = said("sent to [email_address_1]")
    async with chained(tmp_path, [rail], m1=[answer]) as (gateway, models):
        got, *_ = await asyncio.gather(*(gateway.post(ask(messages=messages)) for _ in range(12)))

    sent = models.asked[0].body["messages"][0]["content"]
    assert sent == "Write to [email_address_1], card [credit_card_2], from [ip_address_3]."
    assert got.json()["choices"][0]["message"]["content"] == "sent to bob@example.org"


async def test_names_are_found_by_a_model(tmp_path: Path) -> None:
    if not models():
        lacking("a model of spaCy for English")
    rail = {"guardrail": {"input": [check(entities=["PERSON"])], "timeout_ms": 30_000}}
    messages = [{"role": "user", "content": "My name is John Smith and I have a question."}]
    async with chained(tmp_path, [rail], m1=[said()]) as (gateway, upstream):
        await gateway.post(ask(messages=messages))

    sent = upstream.asked[0].body["messages"][0]["content"]
    assert sent == "My name is [person] and I have a question."


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"entities": ["PERSON"], "language": "de"}, "language"),
        ({"language": "de"}, "language"),
        ({"entities": ["NOBODY_KNOWS"]}, "entities"),
        ({"language": "no language"}, "language"),
    ],
)
def test_what_cannot_be_found_is_refused_at_load(options: dict[str, Any], field: str) -> None:
    """Never by asking somewhere for a model."""
    with pytest.raises(OptionError) as caught:
        made(**options)

    assert caught.value.field == field
