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

import httpx2
import pytest

from gateway.version import VERSION
from tests.support.gateway import (
    KEY,
    START_S,
    Gateway,
    bearer,
    clean_environ,
    http,
    ports,
    run_cli,
    run_gateway,
    start,
    wait_for,
)

USER = [{"role": "user", "content": "Hello"}]
CANARY = "sk-canary-0123456789abcdef"
NEW_S = 5.0
ALONE = {"GATEWAY_SERVER__PORT": "0", "GATEWAY_SERVER__ADMIN__PORT": "0"}
_KEY = re.compile(r"^  key: +(gw-\S+) +\(shown once", re.MULTILINE)
_MUTE = re.compile(r"standard output cannot be written: ready at (\S+), admin at")
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


def configuration(database: str = "memory") -> dict[str, Any]:
    return {
        "stores": {"database": database},
        "providers": {
            "echo": {"kind": "echo"},
            "far": {"kind": "openai", "api_key": CANARY},
        },
        "models": {
            "echo": {"targets": [{"provider": "echo", "model": "echo"}]},
            "far": {"targets": [{"provider": "far", "model": "gpt-4o-mini", "weight": 3}]},
        },
        "tenants": {
            "team": {"keys": [{"id": "own", "secret": KEY}], "models": ["echo", "far"]},
            "other": {"models": ["echo"]},
        },
    }


def written(folder: Path, config: dict[str, Any] | str, name: str = "config.yaml") -> str:
    path = folder / name
    text = config if isinstance(config, str) else json.dumps(ports(config))
    path.write_text(text, encoding="utf-8")
    return str(path)


def ask(gateway: Gateway, key: str, model: str = "echo") -> httpx2.Response:
    with http() as client:
        return client.post(
            f"{gateway.url}/v1/chat/completions",
            headers=bearer(key),
            json={"model": model, "messages": USER},
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


@pytest.mark.parametrize("kind", ["budget", "limits", "guardrail", "tool_approval", "idempotency"])
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
    assert "3 x far/gpt-4o-mini" in text.stdout
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


@pytest.mark.parametrize("workers", [1, 2])
def test_a_taken_port_is_told(workers: int, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = {**configuration(), "server": {"workers": workers}}
        path = written(tmp_path, config)
        done = run_cli("serve", "--config", path, "--port", str(port), folder=tmp_path)

    assert done.returncode == 1
    assert f"port {port}: " in done.stderr
    assert "Change server.port, or set GATEWAY_SERVER__PORT." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_taken_admin_port_is_told(workers: int, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = written(tmp_path, {**configuration(), "server": {"workers": workers}})
        environ = {"GATEWAY_SERVER__ADMIN__PORT": str(port)}
        done = run_cli("serve", "--config", path, folder=tmp_path, environ=environ)

    assert done.returncode == 1
    assert f"port {port}: " in done.stderr
    assert "Change server.admin.port, or set GATEWAY_SERVER__ADMIN__PORT." in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_of_another_machine_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, configuration())

    done = run_cli("serve", "--config", path, "--host", "192.0.2.1", folder=tmp_path)

    assert done.returncode == 1
    assert "Change server.host, or set GATEWAY_SERVER__HOST." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
def test_an_output_that_cannot_be_written_prevents_no_start(
    output: str, unbuffered: str, tmp_path: Path
) -> None:
    environ = clean_environ(tmp_path, {**ALONE, "PYTHONUNBUFFERED": unbuffered})
    mute = ("sh", "-c", f'exec "$@" {output}', "sh")
    line = ("-m", "gateway", "serve")
    with start(line, tmp_path, environ, "mute", prefix=mute) as process:
        ready = wait_for(lambda: _MUTE.search(process.err), START_S, "the line in the log")
        with http() as client:
            assert client.get(f"{ready.group(1)}/livez").status_code == 200
        wait_for(lambda: "the first key could not be shown and is revoked" in process.err)
        assert process.stop() == 0
        assert "gw-" not in process.err
        assert "Traceback" not in process.err

    assert "first\t" in (listed := run_cli("keys", "list", folder=tmp_path).stdout)
    assert "revoked" in listed
    made = run_cli("keys", "new", folder=tmp_path).stdout.strip()
    with run_gateway(None, tmp_path, environ=ALONE, name="again") as gateway:
        assert ask(gateway, made).status_code == 200


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_first_key_that_neither_works_nor_is_shown_is_revoked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-m", "gateway", "serve"],
            check=False,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=clean_environ(tmp_path, {**ALONE, "GATEWAY_SERVER__PORT": port}),
            timeout=START_S,
        )

    assert done.returncode == 1
    assert "the first key could not be shown and is revoked" in done.stderr
    assert "gw-" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_first_key_is_not_lost_when_the_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_cli("serve", "--port", port, folder=tmp_path, environ=ALONE)
    key = done.stdout.split()[-1]

    with run_gateway(None, tmp_path, environ=ALONE) as gateway:
        assert ask(gateway, key).status_code == 200


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


# ---------------------------------------------------------------- keys


def test_keys_count_in_a_running_gateway_within_seconds(tmp_path: Path) -> None:
    config = configuration(f"sqlite:{tmp_path}/keys.db")
    with run_gateway(config, tmp_path) as gateway:
        place = ("--config", str(tmp_path / "gateway.yaml"))
        made = run_cli("keys", "new", "--tenant", "other", "--id", "ci", *place, folder=tmp_path)
        key = made.stdout.strip()
        wait_for(lambda: ask(gateway, key).status_code == 200, NEW_S, "the new key to work")

        listed = run_cli("keys", "list", *place, folder=tmp_path).stdout
        assert "other\tci" in listed
        assert "in force" in listed
        assert key not in listed
        assert key not in gateway.process.out + gateway.process.err

        run_cli("keys", "revoke", "ci", "--tenant", "other", *place, folder=tmp_path)
        wait_for(lambda: ask(gateway, key).status_code == 401, NEW_S, "the revoked key to fail")
        assert "revoked" in run_cli("keys", "list", *place, folder=tmp_path).stdout


def test_a_key_may_be_narrowed_to_models_and_time(tmp_path: Path) -> None:
    config = configuration(f"sqlite:{tmp_path}/keys.db")
    place = ("--config", written(tmp_path, config))

    def new(*options: str) -> str:
        done = run_cli("keys", "new", "--tenant", "team", *options, *place, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    far_alone = new("--id", "a", "--models", "far")
    over = new("--id", "b", "--expires", "2020-01-01")
    lasting = new("--id", "c", "--expires", "2999-01-01")
    with run_gateway(config, tmp_path) as gateway:
        assert ask(gateway, far_alone).status_code == 404
        assert ask(gateway, over).status_code == 401
        assert ask(gateway, lasting).status_code == 200


def test_a_hash_in_the_configuration_stands_for_its_key(tmp_path: Path) -> None:
    hashed = run_cli("keys", "hash", folder=tmp_path, given=f"{CANARY}\n").stdout.strip()
    config = configuration()
    config["tenants"]["other"]["keys"] = [{"id": "by-hash", "hash": hashed}]

    with run_gateway(config, tmp_path) as gateway:
        assert ask(gateway, CANARY).status_code == 200
        assert ask(gateway, hashed).status_code == 401


@pytest.mark.parametrize(
    "arguments",
    [
        ("new", "--tenant", "nobody"),
        ("new", "--tenant", "team", "--expires", "someday"),
        ("revoke", "nothing", "--tenant", "team"),
        ("hash",),
    ],
)
def test_mistakes_with_keys_are_told(arguments: tuple[str, ...], tmp_path: Path) -> None:
    config = configuration(f"sqlite:{tmp_path}/keys.db")
    place = () if arguments == ("hash",) else ("--config", written(tmp_path, config))

    done = run_cli("keys", *arguments, *place, folder=tmp_path)

    assert done.returncode == 1
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


def test_a_key_is_made_once_under_an_id(tmp_path: Path) -> None:
    place = ("--config", written(tmp_path, configuration(f"sqlite:{tmp_path}/keys.db")))
    same = ("keys", "new", "--tenant", "team", "--id", "same", *place)

    assert run_cli(*same, folder=tmp_path).returncode == 0
    done = run_cli(*same, folder=tmp_path)

    assert done.returncode == 1
    assert "same" in done.stderr
    assert not done.stdout
