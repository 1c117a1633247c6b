"""No output of a running gateway, no file of it, no command shows a marked secret (K28)."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gateway.core import codec
from tests.support.canaries import (
    ADMIN,
    HEADER,
    PROMPT,
    PROVIDER,
    PROXY,
    SECRETS,
    STATE,
    found,
)
from tests.support.gateway import bearer, http, run_cli, run_gateway
from tests.support.serving import KEY
from tests.support.surface import calls

pytestmark = [pytest.mark.bug("K28"), pytest.mark.threat("T-12"), pytest.mark.contract("G-23")]


@pytest.mark.slow
def test_no_output_of_a_running_gateway_shows_a_secret(tmp_path: Path) -> None:
    names = {f"CANARY_{number}": value for number, value in enumerate((*PROVIDER, HEADER, ADMIN))}
    config: dict[str, Any] = {
        "server": {"admin": {"port": 0, "key": "env:CANARY_4"}, "workers": 2},
        "stores": {"database": f"sqlite:{tmp_path}/keys.db", "state": "memory"},
        "telemetry": {"log_level": "debug"},
        "providers": {
            "up": {
                "kind": "openai_compatible",
                "base_url": "http://127.0.0.1:9/v1",
                "api_keys": ["env:CANARY_0", "env:CANARY_1", "env:CANARY_2"],
                "headers": {"x-plain": "env:CANARY_3"},
            },
            "far": {
                "kind": "openai_compatible",
                "base_url": "http://127.0.0.1:9/v1",
                "transport": "httpx",
                "proxy": f"http://user:{PROXY}@127.0.0.1:9",
            },
        },
        "models": {"m": {"targets": [{"provider": "up", "model": "x"}]}},
        "tenants": {"acme": {"keys": [{"id": "k", "secret": KEY}], "models": ["m"]}},
    }
    path = tmp_path / "gateway.yaml"
    path.write_bytes(codec.encode(config))
    made = run_cli(
        "keys", "new", "--config", str(path), "--tenant", "acme", folder=tmp_path, environ=names
    )
    fresh = made.stdout.strip()
    assert fresh, made.stderr
    secrets = (*SECRETS, fresh)
    shown = [made.stderr]
    for words in (
        ("check", str(path)),
        ("explain", str(path)),
        ("explain", "--json", str(path)),
        ("keys", "list", "--config", str(path)),
    ):
        done = run_cli(*words, folder=tmp_path, environ=names)
        assert done.returncode == 0, done.stderr
        shown += [done.stdout, done.stderr]
    with run_gateway(config, tmp_path, environ=names) as gateway, http() as client:
        for call in calls(PROMPT).values():
            client.request(
                call.method, gateway.url + call.path, content=call.content,
                headers={**call.headers, **bearer(fresh)},
            )  # fmt: skip
        for place in ("/metrics", "/admin/config", "/docs", "/openapi.json", "/livez", "/none"):
            for headers in ({}, bearer(ADMIN), bearer(f"{ADMIN}x")):
                answer = client.get(gateway.admin + place, headers=headers)
                shown += [answer.text, str(answer.headers.raw)]
        shown += _command_lines(gateway.process.popen.pid)
    shown += [gateway.process.out, gateway.process.err]
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("keys.db*"))

    assert stored
    assert sqlite3.connect(tmp_path / "keys.db").execute(
        "select count(*) from keys"
    ).fetchone() == (1,)
    assert found("\n".join(shown), *secrets, PROMPT) == []
    assert found(stored, *secrets, PROMPT) == []


def _command_lines(pid: int) -> list[str]:
    """Return the command lines of a process and its children."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(listed) == 2
    return [Path(f"/proc/{each}/cmdline").read_bytes().decode() for each in (pid, *listed)]


SLOTS: dict[str, Any] = {
    "provider key with a line end": {"providers": {"up": {"kind": "openai", "api_key": f"{HEADER}\n"}}},
    "provider keys twice": {
        "providers": {"up": {"kind": "openai", "api_key": HEADER, "api_keys": [PROVIDER[0]]}}
    },
    "provider key of another type": {"providers": {"up": {"kind": "openai", "api_key": [HEADER]}}},
    "provider key under a wrong name": {"providers": {"up": {"kind": "openai", "apikey": HEADER}}},
    "header with a line end": {
        "providers": {"up": {"kind": "openai", "api_key": PROVIDER[0], "headers": {"x": f"{HEADER}\r"}}}
    },
    "header of the gateway": {
        "providers": {"up": {"kind": "openai", "api_key": PROVIDER[0], "headers": {"host": HEADER}}}
    },
    "proxy without httpx": {
        "providers": {"up": {"kind": "openai", "api_key": HEADER, "proxy": f"http://u:{PROXY}@h:1"}}
    },
    "proxy of another type": {"providers": {"up": {"kind": "openai", "proxy": {"u": PROXY}}}},
    "user in a base URL": {"providers": {"up": {"kind": "vllm", "base_url": f"http://u:{PROXY}@h/v1"}}},
    "query in a base URL": {"providers": {"up": {"kind": "vllm", "base_url": f"http://h/v1?k={PROXY}"}}},
    "key with blanks": {"tenants": {"a": {"keys": [{"id": "k", "secret": f"a {KEY}"}]}}},
    "key both ways": {
        "tenants": {"a": {"keys": [{"id": "k", "secret": KEY, "hash": "sha256:" + "0" * 64}]}}
    },
    "key as hash": {"tenants": {"a": {"keys": [{"id": "k", "hash": KEY}]}}},
    "admin key with blanks": {"server": {"admin": {"key": f"{ADMIN} x"}}},
    "admin key as list": {"server": {"admin": {"key": [ADMIN]}}},
    "database of another scheme": {"stores": {"database": f"mysql://u:{STATE}@h/x"}},
    "database without a host": {"stores": {"database": f"postgres://u:{STATE}@/x"}},
    "state of another scheme": {"stores": {"state": f"http://:{STATE}@h"}},
    "trace address with a user": {"telemetry": {"otlp_endpoint": f"http://u:{STATE}@h"}},
}  # fmt: skip


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("command", ["check", "explain"])
def test_what_is_wrong_with_a_secret_is_told_without_it(
    tmp_path: Path, slot: str, command: str
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_bytes(codec.encode(SLOTS[slot]))

    done = run_cli(command, str(path), folder=tmp_path)

    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    assert found(done.stdout + done.stderr, *SECRETS) == []
