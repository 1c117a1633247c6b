"""What a start without configuration loads: nothing that only a configuration asks for."""

import subprocess
import sys

import pytest

from tests.support.shared import ROOT

ASKED_FOR = {
    "asyncpg", "botocore", "genai_prices", "google", "h2", "hiredis", "httpcore2", "httpx2", "jsonschema", "numpy",
    "presidio_analyzer", "pydantic_settings", "re2", "redis", "usearch",
    "gateway.middleware.guardrail.checks.pii", "gateway.middleware.semantic_cache.layer", "gateway.stores.postgres.driver",
    "gateway.stores.redis.address", "gateway.stores.vectors", "gateway.upstream.client_httpx",
}  # fmt: skip


@pytest.mark.slow
def test_a_start_loads_nothing_that_only_a_configuration_asks_for() -> None:
    program = "import sys, gateway.app, gateway.worker; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    loaded = set(done.stdout.split())

    assert "gateway.app" in loaded
    assert sorted(ASKED_FOR & loaded) == []
