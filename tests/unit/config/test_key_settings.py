from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config.errors import ConfigError
from gateway.config.key_settings import KeySettings, load_key_settings

Write = Callable[[str, str], Path]
KINDS = {"openai": ("OPENAI_API_KEY",), "echo": ()}
TEXT = """\
server: {port: env:UNSET_PORT, admin: {key: env:UNSET_ADMIN}}
stores: {database: "env:WHERE"}
telemetry: {log_level: env:UNSET_LEVEL}
providers:
  far: {kind: openai, api_key: env:GATEWAY_FAR_KEY, ca_file: file:nowhere}
models:
  fast: {targets: [{provider: far, model: gpt, params: {user: env:UNSET_USER}}]}
  "far/*": {targets: [{provider: far, model: "*"}]}
tenants:
  acme: {keys: [{id: web, secret: env:UNSET_WEB}], models: [fast, "far/*"], chain: [retry]}
  none: {keys: [{id: web, secret: file:nowhere}]}
"""


def read(path: Path | None, **environ: str) -> KeySettings:
    return load_key_settings(path, environ={"HOME": "/nowhere", **environ}, known_kinds=KINDS)


def test_secrets_of_providers_and_tenants_need_not_be_set(write: Write) -> None:
    settings = read(write("gateway.yaml", TEXT), WHERE="sqlite:/data/keys.db")

    assert settings.database == "sqlite:/data/keys.db"
    assert settings.tenants == {"acme": ("fast", "far/*"), "none": ()}
    assert settings.models == ("fast", "far/*")


def test_a_variable_that_another_section_asks_for_is_known(write: Write) -> None:
    environ = {"WHERE": "memory", "GATEWAY_FAR_KEY": "sk-0vTq7pLx2mYc9RbN4wKd"}

    assert read(write("gateway.yaml", TEXT), **environ).database == "memory"


def test_a_variable_says_where_the_store_is(write: Write) -> None:
    path = write("gateway.yaml", "tenants: {acme: {models: []}}")

    assert read(path, GATEWAY_STORES__DATABASE="sqlite:/a.db").database == "sqlite:/a.db"
    assert read(path, DATABASE_URL="sqlite:/b.db").database == "sqlite:/b.db"
    assert read(path, XDG_DATA_HOME="/tmp").database == "sqlite:/tmp/llm-gateway/gateway.db"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, "2:20: stores.database: the environment variable WHERE is not set"),
        ("stores: {database: 'postgres:///d'}", "1:20: stores.database: must be postgres://"),
        ("tenants: {acme: {models: fast}}", "1:26: tenants.acme.models: must be a list"),
        ("tenants: {acme: {}}\ntenants: {}", "2:1: "),
        ("tenants: {", ""),
    ],
)
def test_mistakes_in_what_is_needed_are_told(write: Write, text: str, expected: str) -> None:
    path = write("gateway.yaml", text)

    with pytest.raises(ConfigError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{expected}")
    assert len(caught.value.mistakes) == 1


def test_without_a_file_there_is_one_tenant() -> None:
    settings = read(None, OPENAI_API_KEY="sk-0vTq7pLx2mYc9RbN4wKd", XDG_DATA_HOME="/tmp")

    assert settings.tenants == {"default": ("echo", "openai/*")}
    assert set(settings.models) == {"echo", "openai/*"}
