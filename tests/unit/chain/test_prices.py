"""A price comes from the operator first, then from the bundled table, and is looked up once."""

import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from gateway.chain.prices import NO_TARIFF, Tariff, uses_table
from gateway.config.models import LongContext
from gateway.config.models import Price as Row
from gateway.core.money import FREE, Price, cost, worst
from gateway.core.usage import Usage
from tests.support.plans import account, model, target


def row(usd: str, **more: Any) -> Row:
    return Row(input=Decimal(usd), output=Decimal(usd), **more)


def test_the_operators_price_is_taken_before_the_table() -> None:
    tariff = Tariff("openai", "openai", "", {"openai/gpt-4o-mini": (row("7"),)})

    assert tariff.price("gpt-4o-mini") == Price(7_000_000, 7_000_000)
    assert tariff.price("gpt-4o") not in (None, Price(7_000_000, 7_000_000))


def test_a_written_number_is_read_exactly() -> None:
    written = Row(
        input=Decimal("0.15"),
        output=Decimal("0.60"),
        cache_read=Decimal("0.075"),
        long_context=(
            LongContext(above_tokens=200_000, input=Decimal("0.3"), output=Decimal("1.2")),
            LongContext(above_tokens=100_000, input=Decimal("0.2"), output=Decimal(1)),
        ),
    )
    price = Tariff("a", "openai_compatible", "", {"a/m": (written,)}).price("m")

    assert price is not None
    assert price[:4] == (150_000, 600_000, 75_000, None)
    assert [(tier.above, tier.input) for tier in price.tiers] == [
        (100_000, 200_000),
        (200_000, 300_000),
    ]


@pytest.mark.bug("K16")
def test_a_table_price_knows_cache_and_long_context() -> None:
    price = Tariff("google", "gemini", "").price("gemini-2.5-pro")

    assert price is not None
    assert price.cache_read is not None
    assert price.cache_read < price.input
    (tier,) = price.tiers
    assert tier.above == 200_000
    assert cost(price, Usage(200_001, 0)) > 1.5 * cost(price, Usage(200_000, 0))
    assert cost(price, Usage(200_001, 9)) <= worst(price, 300_000, 9)


@pytest.mark.parametrize(
    ("kind", "served"),
    [
        ("openai", "gpt-4o-mini"), ("openai", "text-embedding-3-small"), ("groq", "llama-3.3-70b-versatile"),
        ("mistral", "mistral-large-latest"), ("xai", "grok-4"), ("deepseek", "deepseek-chat"),
        ("perplexity", "sonar"), ("cohere", "command-r"), ("azure", "gpt-4o"),
    ],
)  # fmt: skip
def test_usual_models_have_a_price(kind: str, served: str) -> None:
    price = Tariff("p", kind, "").price(served)

    assert price is not None
    assert price.input > 0


@pytest.mark.bug("K16")
@pytest.mark.parametrize("kind", ["openai", "vllm", "openai_compatible", "nvidia"])
def test_an_unknown_model_has_no_price_rather_than_none_to_pay(kind: str) -> None:
    assert Tariff("p", kind, "http://127.0.0.1:8000/v1").price("my-own-model") is None
    assert NO_TARIFF.price("gpt-4o") is None


def test_a_compatible_server_is_found_by_its_address() -> None:
    known = Tariff("p", "openai_compatible", "https://api.deepseek.com/v1").price("deepseek-chat")

    assert known == Tariff("d", "deepseek", "").price("deepseek-chat")
    assert Tariff("p", "openai_compatible", "http://127.0.0.1/v1").price("deepseek-chat") is None


def test_the_built_in_provider_is_free() -> None:
    assert Tariff("echo", "echo", "").price("echo") == FREE


def test_a_pattern_prices_all_models_of_a_provider_and_a_name_is_nearer() -> None:
    rows = {"a/*": (row("1"),), "a/big-*": (row("2"),), "a/big-one": (row("3"),)}
    tariff = Tariff("a", "openai_compatible", "", rows)

    found = [tariff.price(name) for name in ("small", "big-two", "big-one")]
    assert [price.input for price in found if price] == [1_000_000, 2_000_000, 3_000_000]


def test_the_latest_row_that_has_begun_counts() -> None:
    rows = (
        row("1"),
        row("2", **{"from": "2020-01-01"}),
        row("3", **{"from": "2024-01-01"}),
        row("4", **{"from": "2999-01-01"}),
    )
    tariff = Tariff("a", "openai_compatible", "", {"a/m": rows})

    assert tariff.price("m") == Price(3_000_000, 3_000_000)
    future = Tariff("a", "openai_compatible", "", {"a/m": rows[3:]})
    assert future.price("m") is None


@pytest.mark.slow
def test_a_price_is_looked_up_once_and_names_of_clients_are_kept_in_bounded_number() -> None:
    tariff = Tariff("openai", "openai", "")

    assert tariff.price("gpt-4o") is tariff.price("gpt-4o")
    for number in range(5000):
        tariff.price(f"name-{number}")
    assert len(tariff._known) <= 4096


def test_a_model_tells_the_price_at_each_target() -> None:
    priced = replace(account("a"), tariff=Tariff("a", "openai", "", {"a/x": (row("1"),)}))
    known = replace(target("*", name="a"), account=priced)
    named = model("a/*", (known, target("y")))

    assert named.prices("a/x") == (Price(1_000_000, 1_000_000), None)


@pytest.mark.slow
def test_the_table_is_not_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, gateway.app;"
        "from gateway.chain.prices import Tariff;"
        "Tariff('e', 'echo', '').price('echo'); Tariff('v', 'vllm', '').price('m');"
        "sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_known_kinds_ask_the_table() -> None:
    assert uses_table(["echo", "openai"])
    assert not uses_table(["echo", "vllm", "ollama"])
