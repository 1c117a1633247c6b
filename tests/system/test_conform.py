"""`gateway conform` against a running gateway: all is well with the built-in provider, and what is not makes it fail."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import KEY, Gateway, run_cli, run_gateway

CONFIG: dict[str, Any] = {
    "providers": {"echo": {"kind": "echo"}},
    "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
    "tenants": {"looked-at": {"keys": [{"id": "k", "secret": KEY}], "models": ["echo"]}},
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    with run_gateway(CONFIG, tmp_path_factory.mktemp("conform")) as gateway:
        yield gateway


def test_this_gateway_passes_every_check_on_the_built_in_provider(
    gateway: Gateway, tmp_path: Path
) -> None:
    done = run_cli("conform", "--against", gateway.url, "--key", KEY, folder=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "34 pass, 0 fail, 0 not offered" in done.stdout


def test_a_base_url_and_a_key_of_the_environment_do_too(gateway: Gateway, tmp_path: Path) -> None:
    line = ("conform", "--against", f"{gateway.url}/v1", "--model", "echo=messages", "--json")
    done = run_cli(*line, folder=tmp_path, environ={"GATEWAY_KEY": KEY})

    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)
    assert {row["caller"] for row in rows} == {"messages"}
    assert {row["outcome"] for row in rows} == {"pass"}
    assert "count_tokens" in {row["check"] for row in rows}


def test_a_check_that_fails_makes_the_command_fail(gateway: Gateway, tmp_path: Path) -> None:
    line = ("conform", "--against", gateway.url, "--key", KEY, "--model", "absent=chat")
    done = run_cli(*line, folder=tmp_path)

    assert done.returncode == 1
    assert "fail: chat, text: status 404" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--against", "http://127.0.0.1:9", "--key", KEY, "--model", "echo"), 3),
        (("--against", "nowhere", "--key", KEY, "--model", "echo"), 2),
        (("--against", "http://127.0.0.1:9", "--key", KEY, "--model", "echo=morse"), 2),
        (("--key", KEY), 2),
    ],
)
def test_what_cannot_be_looked_at_is_told_by_the_exit_code(
    arguments: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    done = run_cli("conform", *arguments, folder=tmp_path)

    assert done.returncode == code, done.stderr
    assert done.stderr
    assert "Traceback" not in done.stderr
