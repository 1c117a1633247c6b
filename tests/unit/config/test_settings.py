from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config.errors import ConfigError
from gateway.config.loader import check, load
from gateway.config.schema import Tree
from gateway.config.server import STATE_SCHEMES

LoadText = Callable[..., Tree]
CheckText = Callable[..., list[str]]
TEXT = "server: {port: 7000}\n"
STATES = ", ".join(STATE_SCHEMES)


def test_variables_override_the_file(load_text: LoadText) -> None:
    tree = load_text(
        TEXT,
        GATEWAY_SERVER__PORT="8080",
        GATEWAY_SERVER__HOST="0.0.0.0",
        GATEWAY_SERVER__ADMIN__PORT="8081",
        GATEWAY_SERVER__DRAIN_S="2.5",
        GATEWAY_STORES__DATABASE="sqlite:/data/keys.db",
        GATEWAY_TELEMETRY__LOG_BODIES="true",
        GATEWAY_TELEMETRY__LOG_LEVEL="debug",
    )

    assert (tree.server.host, tree.server.port, tree.server.drain_s) == ("0.0.0.0", 8080, 2.5)
    assert tree.server.admin.port == 8081
    assert tree.stores.database.reveal() == "sqlite:/data/keys.db"
    assert (tree.telemetry.log_bodies, tree.telemetry.log_level) == (True, "debug")


def test_a_whole_block_may_be_json(load_text: LoadText) -> None:
    tree = load_text(TEXT, GATEWAY_SERVER__ADMIN='{"port": 8081, "host": "127.0.0.2"}')

    assert (tree.server.admin.host, tree.server.admin.port) == ("127.0.0.2", 8081)


@pytest.mark.bug("K41")
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GATEWAY_SERVR__PORT", "1", 'GATEWAY_SERVR__PORT: this variable is not known (did you mean "GATEWAY_SERVER__PORT"?)'),
        ("GATEWAY_SERVER_PORT", "1", 'GATEWAY_SERVER_PORT: this variable is not known (did you mean "GATEWAY_SERVER__PORT"?)'),
        ("GATEWAY_SERVER__PRT", "1", 'GATEWAY_SERVER__PRT: server: unknown key "prt" (did you mean "port"?)'),
        ("GATEWAY_SERVER__PORT", "x", "GATEWAY_SERVER__PORT: server.port: must be a whole number"),
        ("GATEWAY_SERVER__PORT", "70000", "GATEWAY_SERVER__PORT: server.port: must be at most 65535"),
        ("GATEWAY_SERVER__PORT", "", "GATEWAY_SERVER__PORT: is empty: give it a value or unset it"),
        ("GATEWAY_SERVER__PORT__X", "1", "GATEWAY_SERVER__PORT__X: server.port: must be a whole number"),
        ("GATEWAY_SERVER__ADMIN", "x", "GATEWAY_SERVER__ADMIN: is not readable: a block must be JSON"),
        ("GATEWAY_SERVER__ADMIN__KEY", "changeme", "GATEWAY_SERVER__ADMIN__KEY: server.admin.key: is a placeholder, not a secret"),
        ("GATEWAY_ADMIN_KEY", "short", "GATEWAY_ADMIN_KEY: server.admin.key: is too short: 16 characters or more"),
        ("GATEWAY_PROVIDERS__X__KIND", "openai", "GATEWAY_PROVIDERS__X__KIND: this variable is not known"),
        ("GATEWAY_TELEMETRY__LOG_BODIES", "yes", "GATEWAY_TELEMETRY__LOG_BODIES: telemetry.log_bodies: must be true or false"),
        ("GATEWAY_STORES__STATE", "memcached://h/1", "GATEWAY_STORES__STATE: stores.state: must begin with one of: " + STATES),
        ("GATEWAY_STORES__STATE", "localhost:6379", "GATEWAY_STORES__STATE: stores.state: must begin with one of: " + STATES),
        ("GATEWAY_STORES__DATABASE", "mysql://h/d", "GATEWAY_STORES__DATABASE: stores.database: must begin with one of: memory, sqlite, postgres, postgresql"),
        ("DATABASE_URL", "sqlite:///x", "DATABASE_URL: stores.database: must be sqlite:FILE, a path without //"),
    ],
)  # fmt: skip
def test_a_wrong_variable_is_named(
    check_text: CheckText, name: str, value: str, expected: str
) -> None:
    assert [expected] == check_text(TEXT, **{name: value})


@pytest.mark.threat("T-12")
def test_no_value_of_a_variable_is_repeated(check_text: CheckText) -> None:
    canary = "canary-J8sKq2Lw"
    found = check_text(
        TEXT,
        **{
            f"GATEWAY_{name}": canary
            for name in (
                "SERVER__PORT",
                "SERVER__X",
                "X",
                "STORES__STATE",
                "SERVER__ADMIN",
                "TELEMETRY",
            )
        },
    )

    assert len(found) >= 4
    assert canary not in "".join(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GATEWAY_SERVICE_HOST", "10.0.0.1"),
        ("GATEWAY_SERVICE_PORT", "4000"),
        ("GATEWAY_SERVICE_PORT_HTTP", "4000"),
        ("GATEWAY_PORT", "tcp://10.0.0.1:4000"),
        ("GATEWAY_PORT_4000_TCP", "tcp://10.0.0.1:4000"),
        ("GATEWAY_PORT_4000_TCP_ADDR", "10.0.0.1"),
        ("GATEWAY_ADMIN_SERVICE_HOST", "10.0.0.1"),
    ],
)
def test_variables_that_kubernetes_sets_do_not_count(
    check_text: CheckText, name: str, value: str
) -> None:
    assert check_text(TEXT, **{name: value}) == []


def test_a_variable_that_a_reference_asks_for_is_known(load_text: LoadText) -> None:
    assert (
        load_text("server: {port: env:GATEWAY_MY_PORT}\n", GATEWAY_MY_PORT="7001").server.port
        == 7001
    )


def test_usual_variables_count_where_nothing_is_written(load_text: LoadText) -> None:
    usual = {
        "REDIS_URL": "memory",
        "DATABASE_URL": "sqlite:/data/keys.db",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318",
        "GATEWAY_ADMIN_KEY": "ad-H2kLz8QpXn5TgYv1MbWc7RdS",
    }

    tree = load_text(TEXT, **usual)
    written = load_text(
        "stores: {state: memory, database: memory}\n"
        "telemetry: {otlp_endpoint: 'http://other'}\n"
        "server: {admin: {key: zz-H2kLz8QpXn5TgYv1MbWc7RdS}}\n",
        **usual,
    )

    assert tree.stores.database.reveal() == "sqlite:/data/keys.db"
    assert not any("left aside" in each for each in tree.notes)
    assert tree.telemetry.otlp_endpoint == "http://h:4318"
    assert tree.server.admin.key is not None
    assert written.stores.state.reveal() == written.stores.database.reveal() == "memory"
    assert written.telemetry.otlp_endpoint == "http://other"
    assert written.server.admin.key is not None
    assert written.server.admin.key.reveal().startswith("zz-")


@pytest.mark.threat("T-12")
@pytest.mark.parametrize(
    ("name", "value", "note"),
    [
        ("REDIS_URL", "fakeredis://:canary-J8sKq2Lw@h/0", "REDIS_URL is left aside: stores.state takes " + " or ".join(STATE_SCHEMES) + " in this version."),
        ("DATABASE_URL", "mysql+x://canary-J8sKq2Lw@h/d", "DATABASE_URL is left aside: stores.database takes memory or sqlite or postgres or postgresql in this version."),
    ],
)  # fmt: skip
def test_a_variable_of_other_programs_stops_nothing_and_is_told(
    load_text: LoadText, tmp_path: Path, name: str, value: str, note: str
) -> None:
    written = load_text(TEXT, **{name: value})
    alone = load(None, environ={name: value, "XDG_DATA_HOME": str(tmp_path)}, known_kinds={})

    assert written.notes[-1] == alone.notes[-1] == note
    assert written.stores.state.reveal() == "memory"
    assert written.stores.database.reveal().startswith("sqlite:")
    kept = load_text("stores: {state: memory, database: memory}\n", **{name: value})
    assert not any(name in each for each in kept.notes)


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u@h/d",
        "postgresql://u:p%40ss%2F@db.example.com:5432/gateway?sslmode=require",
        "postgres://u@h1:1,h2:2/d?target_session_attrs=read-write",
        "postgres://u@[::1]:5432/d",
        "postgres://u@/d?host=/var/run/postgresql",
    ],
)
def test_addresses_of_postgres_are_taken(load_text: LoadText, url: str) -> None:
    written = load_text(TEXT, DATABASE_URL=url)

    assert written.stores.database.reveal() == url


@pytest.mark.threat("T-12")
@pytest.mark.parametrize(
    "url",
    [
        "postgres:",
        "postgres:d",
        "postgres:///d",
        "postgres://u:canary-J8sKq2Lw#x@h/d",
        "postgres://u:canary/J8sKq2Lw@h/d",
        "postgres://u:canary@J8sKq2Lw@h/d",
        "postgres://u:canary:J8sKq2Lw@h/d",
        "postgres://h:canary-J8sKq2Lw/d",
        "postgres://u@h /d",
        "postgres://h/d",
        "postgres://u@h",
        "postgres://u@h/",
        "postgres://u@/d",
        "postgres://u@h/d?password=canary-J8sKq2Lw",
        "postgres://u@h/d?sslmode=require&passfile=canary-J8sKq2Lw",
        "postgres://u@h/d?service=canary-J8sKq2Lw",
    ],
)
def test_an_address_of_postgres_that_readers_disagree_on_is_refused_without_its_words(
    load_text: LoadText, url: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(TEXT, DATABASE_URL=url)

    assert "must be postgres://USER:PASSWORD@HOST:PORT/DATABASE" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert "J8sKq2Lw" not in str(caught.value)


def test_options_win_over_variables_and_files(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(TEXT)
    environ = {"GATEWAY_SERVER__PORT": "8080", "HOME": "/nowhere"}

    tree = load(file, environ=environ, known_kinds={}, overrides={"server.port": 9090})
    found = check(file, environ=environ, known_kinds={}, overrides={"server.port": -1})

    assert tree.server.port == 9090
    assert [str(each) for each in found] == ["option server.port: server.port: must be at least 0"]


@pytest.mark.threat("T-39")
def test_no_other_variable_has_an_effect(load_text: LoadText) -> None:
    noise = {
        "HTTP_PROXY": "http://evil:1",
        "HTTPS_PROXY": "http://evil:1",
        "REQUESTS_CA_BUNDLE": "/tmp/evil",
        "PORT": "1",
        "HOST": "evil",
        "SERVER__PORT": "1",
        "gateway_server__port": "1",
        "PYTHONPATH": "/tmp/evil",
    }

    assert load_text(TEXT, **noise).model_dump() == load_text(TEXT).model_dump()


def test_no_dotenv_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("GATEWAY_SERVER__PORT=1\n")
    (tmp_path / "c.yaml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)

    assert load(Path("c.yaml"), environ={"HOME": "/nowhere"}, known_kinds={}).server.port == 7000
