"""The commands as a user meets them: what they print, how they end, what a running gateway makes of it."""

import json
import re
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.version import VERSION
from tests.support.gateway import (
    KEY,
    clean_environ,
    run_cli,
    run_gateway,
)
from tests.support.team import CANARY, ask, configuration, written

ALONE = {"GATEWAY_SERVER__PORT": "0", "GATEWAY_SERVER__ADMIN__PORT": "0"}
_KEY = re.compile(r"^  key: +(gw-\S+) +\(shown once", re.MULTILINE)
_CURL = re.compile(r"^Try it:\n  (curl .+)$", re.MULTILINE)
_SNIPPET = re.compile(r"^With the OpenAI SDK:\n((?:  .+\n)+)", re.MULTILINE)
MISTAKEN = """\
server: {prot: 4000}
providers:
  one: {kind: opnai, api_key: env:NO_SUCH_VARIABLE}
  one: {kind: echo}
models:
  m: {targets: [{provider: tow, model: x}]}
tenants:
  t: {keys: [{id: k, secret: "sk-test-0123456789abcdef"}], models: [n]}
"""
MISTAKES = (
    (1, 10, "prot", "port"),
    (3, 15, "opnai", "openai"),
    (3, 31, "NO_SUCH_VARIABLE", ""),
    (4, 3, "already defined", ""),
    (6, 28, "tow", ""),
    (8, 69, '"n"', ""),
)


# ---------------------------------------------------------------- usage


def test_version_is_printed(tmp_path: Path) -> None:
    assert run_cli("version", folder=tmp_path).stdout.strip() == VERSION
    assert VERSION in run_cli("--version", folder=tmp_path).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("serve", "--nonsense"),
        ("serve", "--port", "many"),
        ("check",),
        ("keys",),
        ("keys", "nonsense"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run_cli(*arguments, folder=tmp_path)

    assert done.returncode == 2
    assert "usage: gateway" in done.stderr
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- check and explain


def test_check_accepts_a_good_configuration(tmp_path: Path) -> None:
    done = run_cli("check", written(tmp_path, configuration()), folder=tmp_path)

    assert (done.returncode, done.stdout.strip()) == (0, "no mistakes")


def test_check_warns_of_what_is_likely_not_meant(tmp_path: Path) -> None:
    path = written(tmp_path, {**configuration(), "defaults": {"chain": [{"budget": {}}]}})

    done = run_cli("check", path, folder=tmp_path)

    *warnings, last = done.stdout.splitlines()
    assert (done.returncode, last) == (0, "no mistakes")
    assert warnings
    for line in warnings:
        assert line.startswith("warning: tenant ")
        assert "budget does nothing: give it limits" in line


def test_check_warns_of_models_that_their_provider_will_not_serve(tmp_path: Path) -> None:
    config = configuration()
    config["models"]["far"]["retires"] = "2020-01-01"

    done = run_cli("check", written(tmp_path, config), folder=tmp_path)

    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "warning: models.far: far/gpt-6-luna is served no more since 2020-01-01",
        "no mistakes",
    ]


def test_serve_tells_at_its_start_what_is_likely_not_meant(tmp_path: Path) -> None:
    config: dict[str, Any] = {**configuration(), "defaults": {"chain": [{"budget": {}}]}}

    with run_gateway(config, tmp_path) as gateway:
        shown = gateway.process.out

    assert "  note: tenant " in shown
    assert "budget does nothing: give it limits" in shown


@pytest.mark.parametrize("command", ["check", "serve"])
def test_every_mistake_is_told_with_its_place(command: str, tmp_path: Path) -> None:
    path = written(tmp_path, MISTAKEN)
    arguments = ("check", path) if command == "check" else ("serve", "--config", path)

    done = run_cli(*arguments, folder=tmp_path)

    assert done.returncode == 1
    told = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(path)]
    for line, (row, column, wrong, right) in zip(told, MISTAKES, strict=True):
        assert line.startswith(f"{path}:{row}:{column}: ")
        assert wrong in line
        assert right in line
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["tool_approval"])
def test_what_would_protect_somebody_is_refused_as_such(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, {**configuration(), "defaults": {"chain": [kind, "retri"]}})

    done = run_cli("check", path, folder=tmp_path)

    assert done.returncode == 1
    absent, unknown = done.stdout.splitlines()
    assert f'"{kind}" is not in this version: it protects somebody' in absent
    assert 'there is no middleware "retri" (did you mean "retry"?)' in unknown


def test_mistakes_of_a_folder_name_their_files(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    for name in ("one.yaml", "two.yaml"):
        written(folder, "providers: {echo: {kind: echo}}\n", name)

    done = run_cli("check", str(folder), folder=tmp_path)

    assert done.returncode == 1
    assert f"{folder}/one.yaml:1:13" in done.stdout
    assert f"{folder}/two.yaml:1:13" in done.stdout


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    for arguments in (("check", "nothing.yaml"), ("serve", "--config", "nothing.yaml")):
        done = run_cli(*arguments, folder=tmp_path)
        assert done.returncode == 1
        assert "nothing.yaml" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_explain_tells_the_plan_and_no_secret(tmp_path: Path) -> None:
    path = written(tmp_path, configuration())

    text = run_cli("explain", path, folder=tmp_path)
    data = run_cli("explain", path, "--json", folder=tmp_path)

    assert text.returncode == data.returncode == 0
    assert "3 x far/gpt-6-luna" in text.stdout
    plan = json.loads(data.stdout)
    assert plan["models"]["far"]["targets"][0]["weight"] == 3
    assert plan["tenants"]["team"]["models"] == ["echo", "far"]
    for secret in (CANARY, KEY):
        assert secret not in text.stdout + text.stderr + data.stdout + data.stderr


def test_explain_can_be_narrowed(tmp_path: Path) -> None:
    path = written(tmp_path, configuration())

    done = run_cli(
        "explain", path, "--tenant", "other", "--model", "echo", "--json", folder=tmp_path
    )
    plan = json.loads(done.stdout)

    assert list(plan["tenants"]) == ["other"]
    assert list(plan["models"]) == ["echo"]
    for option in ("--tenant", "--model"):
        done = run_cli("explain", path, option, "nothing", folder=tmp_path)
        assert done.returncode == 1
        assert "nothing" in done.stderr


# ---------------------------------------------------------------- serve


def test_the_first_start_prints_a_key_and_lines_that_work(tmp_path: Path) -> None:
    with run_gateway(None, tmp_path, environ=ALONE) as gateway:
        shown = gateway.process.out
        key, curl, snippet = (found.search(shown) for found in (_KEY, _CURL, _SNIPPET))
        assert key is not None
        assert curl is not None
        assert snippet is not None
        lines = snippet.group(1).replace("\n  ", "\n").strip()
        ran = subprocess.run(
            [sys.executable, "-c", lines],
            check=True,
            capture_output=True,
            text=True,
            env=clean_environ(tmp_path),
        )
        assert ran.stdout.strip().endswith("You said: Hello")
        if shutil.which("curl"):
            ran = subprocess.run(
                ["sh", "-c", curl.group(1)], check=True, capture_output=True, text=True
            )
            answer = json.loads(ran.stdout)
            assert answer["choices"][0]["message"]["content"].endswith("You said: Hello")
        assert key.group(1) not in gateway.process.err

    with run_gateway(None, tmp_path, environ=ALONE, name="again") as gateway:
        assert _KEY.search(gateway.process.out) is None
        assert "$GATEWAY_KEY" in gateway.process.out
        assert ask(gateway, key.group(1)).status_code == 200


def test_the_keys_file_is_its_owners_alone(tmp_path: Path) -> None:
    with run_gateway(None, tmp_path, environ=ALONE):
        (file,) = tmp_path.rglob("gateway.db")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_providers_with_a_usual_variable_are_served(tmp_path: Path) -> None:
    environ = {**ALONE, "GROQ_API_KEY": CANARY, "OPENAI_API_KEY": "your-key-here"}
    with run_gateway(None, tmp_path, environ=environ) as gateway:
        assert "groq/*" in gateway.process.out
        assert "openai/*" not in gateway.process.out
        assert "OPENAI_API_KEY" in gateway.process.out
        assert CANARY not in gateway.process.out + gateway.process.err


def test_a_store_that_is_down_ends_with_3(tmp_path: Path) -> None:
    config = configuration(f"sqlite:{tmp_path}/no/such/folder\0.db".replace("\0", ""))
    (tmp_path / "no").write_text("a file where a folder should be")
    path = written(tmp_path, config)

    for arguments in (("serve", "--config", path), ("keys", "list", "--config", path)):
        done = run_cli(*arguments, folder=tmp_path)
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr


def test_options_of_the_line_win_over_the_environment_and_the_file(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environ = {"GATEWAY_SERVER__PORT": str(port)}
    with run_gateway(configuration(), tmp_path, environ=environ) as gateway:
        assert gateway.url.endswith(f":{port}")
    with run_gateway(
        configuration(), tmp_path, environ=environ, arguments=("--port", "0"), name="again"
    ) as gateway:
        assert not gateway.url.endswith(f":{port}")


def test_a_terminated_gateway_ends_well(tmp_path: Path) -> None:
    with run_gateway(configuration(), tmp_path) as gateway:
        assert gateway.process.stop() == 0
