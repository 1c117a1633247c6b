import copy
import json
import logging
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config.loader import load
from gateway.config.references import MAX_FILE_BYTES, MaskedUrl, Secret, Unresolved, resolve
from gateway.config.schema import Tree

CANARY = "canary-J8sKq2Lw9Xz4"


def resolved(text: str, environ: dict[str, str] | None = None, folder: Path = Path()) -> str | None:
    secret = resolve(text, environ or {}, folder)
    return None if secret is None else secret.reveal()


@pytest.mark.parametrize("text", ["plain", "environment:X", "env", "file:", "http://env:X"])
def test_other_texts_are_no_references(text: str) -> None:
    assert resolved(text) is None


def test_reads_variables_and_their_defaults() -> None:
    assert resolved("env:A", {"A": "x"}) == "x"
    assert resolved("env:A?d", {"A": "x"}) == "x"
    assert resolved("env:A?d", {}) == "d"
    assert resolved("env:A?d", {"A": ""}) == "d"
    assert resolved("env:A?a?b", {}) == "a?b"
    assert resolved("env:A?", {}) == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "env:ACME_KEY",
            'the environment variable ACME_KEY is not set (did you mean "ACME_KEYS"?)',
        ),
        ("env:EMPTY", "the environment variable EMPTY is empty"),
        ("env:", "is not a reference: write env:NAME or env:NAME?default"),
        ("env:A B", "is not a reference: write env:NAME or env:NAME?default"),
    ],
)
def test_says_what_is_not_there(text: str, message: str) -> None:
    with pytest.raises(Unresolved) as caught:
        resolve(text, {"ACME_KEYS": CANARY, "EMPTY": ""}, Path())

    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("data", "text"), [(b"s3\n", "s3"), (b"s3\r\n", "s3"), (b"s3", "s3"), (b"a\nb\n", "a\nb")]
)
def test_reads_files_without_their_last_line_end(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "key").write_bytes(data)

    assert resolved("file:key", folder=tmp_path) == text
    assert resolved(f"file:{tmp_path}/key") == text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff", "is not UTF-8 text"),
        (b"x" * (MAX_FILE_BYTES + 1), f"is larger than {MAX_FILE_BYTES} bytes"),
    ],
)
def test_refuses_files_that_hold_no_secret(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "key").write_bytes(data)

    with pytest.raises(Unresolved, match=message):
        resolve("file:key", {}, tmp_path)


@pytest.mark.threat("T-39")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing", "No such file"),
        (".", "is not a regular file"),
        ("/dev/zero", "is not a regular file"),
        ("a\0b", "not a path"),
    ],
)
def test_refuses_what_is_no_file(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(Unresolved, match=message):
        resolve(f"file:{path}", {}, tmp_path)


@pytest.mark.threat("T-12")
@pytest.mark.bug("K28")
def test_a_secret_never_prints() -> None:
    secret = Secret(CANARY)
    shown = [
        str(secret),
        repr(secret),
        f"{secret} {secret!r} {secret:>40}",
        "%s %r" % (secret, secret),  # noqa: UP031  the old way must not leak either
        str([secret]),
        str({"key": secret}),
        repr(vars(Secret)),
        logging.LogRecord("n", 20, "f", 1, "%s", (secret,), None).getMessage(),
        repr(copy.deepcopy(secret)),
    ]

    assert CANARY not in "".join(shown)
    assert secret.reveal() == CANARY
    for leak in (json.dumps, pickle.dumps, len, list):
        with pytest.raises(TypeError) as caught:
            leak(secret)  # type: ignore[operator]  that is the point
        assert CANARY not in str(caught.value)


def test_secrets_compare_by_what_they_hold() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert not Secret("")


@pytest.mark.threat("T-12")
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory", "memory"),
        ("sqlite:gateway.db", "sqlite:gateway.db"),
        (f"redis://:{CANARY}@host:6379/0", "redis://host:6379/0"),
        (
            f"postgres://user:{CANARY}@host/db?sslmode=require&password={CANARY}",
            "postgres://host/db",
        ),
    ],
)
def test_a_url_prints_without_its_password(url: str, shown: str) -> None:
    assert str(MaskedUrl(url)) == shown
    assert CANARY not in repr(MaskedUrl(url))
    assert CANARY not in f"{MaskedUrl(url)}"


@pytest.mark.threat("T-12")
@pytest.mark.bug("K28")
def test_a_tree_prints_no_secret_and_knows_all_of_them(load_text: Callable[..., Tree]) -> None:
    slots = [f"{CANARY}-{n}" for n in range(9)]
    tree = load_text(
        """
        server: {admin: {key: env:S0}}
        providers:
          a: {kind: openai, api_key: env:S2, headers: {x-team: blue, x-api-key: env:S3, x-any: env:S8}}
          b: {kind: openai, api_keys: [env:S4], proxy: "env:S5", transport: httpx}
          c: {kind: openai, proxy: "env:S1", transport: httpx}
        models: {m: {targets: [{provider: a, model: m}]}}
        tenants:
          t:
            keys: [{id: k, secret: env:S6}]
            models: [m]
            chain: [{guardrail: {input: [{kind: http, token: env:S7}]}}]
        """,
        **{f"S{n}": slot for n, slot in enumerate(slots)}
        | {"S1": f"http://:{slots[1]}@proxy:3128", "S5": f"http://user:{slots[5]}@proxy:3128"},
    )
    printed = f"{tree} {tree!r} {tree.model_dump()} {tree.providers['a'].model_dump_json()} {tree.chain_of('t')}"

    assert CANARY not in printed
    assert set(slots) <= set(tree.secrets())
    assert "blue" not in tree.secrets()
    with pytest.raises(TypeError):
        pickle.dumps(tree)


@pytest.mark.threat("T-12")
def test_no_mistake_repeats_what_a_reference_stands_for(tmp_path: Path) -> None:
    from gateway.config.loader import check

    file = tmp_path / "c.yaml"
    file.write_text(
        """
        server: {port: env:S, host: [env:S], admin: {key: env:S, port: env:S}, workers: env:S}
        stores: {state: env:S, database: env:S, on_state_down: env:S}
        telemetry: {log_level: env:S, otlp_endpoint: env:S, log_bodies: env:S}
        providers:
          a: {kind: env:S, api_key: [env:S], base_url: env:S, ca_file: env:S, status_map: {404: env:S}}
          b: {kind: openai, api_key: {x: env:S}, headers: env:S, timeout: {idle_s: env:S}}
          c: env:S
        models: {m: {balance: env:S, targets: [{provider: env:S, model: env:S, weight: env:S}]}}
        prices: {a/b: {input: env:S, output: env:S, from: env:S}, b/c: env:S}
        tenants:
          t:
            keys: [{id: env:S, secret: env:S, hash: env:S, models: [env:S, env:S], expires: env:S}, env:S]
            models: [env:S, env:S]
            providers: [env:S, env:S]
            chain: [env:S, {env: env:S}, {stack: env:S}, {retry: {mode: env:S, id: env:S, when: env:S}}]
            agents: {x: {model: env:S, chain: env:S, tools: env:S}}
          u: {keys: [{id: k, secret: env:S}]}
        """,
        encoding="utf-8",
    )

    found = check(file, environ={"S": CANARY}, known_kinds={"openai": ()})

    assert len(found) > 30
    assert CANARY not in "".join(map(str, found))


def test_references_take_the_type_of_their_field(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    (tmp_path / "port").write_text("4321\n")
    file.write_text(
        "server: {host: env:HOST, port: file:port, drain_s: env:DRAIN?1.5}\n"
        "telemetry: {log_bodies: env:BODIES}\n"
        "providers: {a: {kind: openai, base_url: env:URL, project: env:NUMBER}}\n"
        "models: {m: {targets: [{provider: a, model: m, weight: env:NUMBER, params: {top_k: env:NUMBER}}]}}\n"
    )
    environ = {
        "HOST": "::1",
        "BODIES": "true",
        "URL": "http://h/v1/",
        "NUMBER": "12",
        "HOME": "/nowhere",
    }

    tree = load(file, environ=environ, known_kinds={"openai": ()})

    assert (tree.server.host, tree.server.port, tree.server.drain_s) == ("::1", 4321, 1.5)
    assert tree.telemetry.log_bodies is True
    assert tree.providers["a"].base_url == "http://h/v1"
    assert tree.providers["a"].project == "12"
    assert tree.models["m"].targets[0].weight == 12
    assert tree.models["m"].targets[0].params == {"top_k": 12}
