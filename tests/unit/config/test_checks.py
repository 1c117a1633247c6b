"""What must agree between sections, and what stops the start with its place."""

from collections.abc import Callable

import pytest

Check = Callable[..., list[str]]

GOOD = """\
providers:
  a: {kind: openai, api_key: env:OPENAI_KEY}
  b: {kind: openai_compatible, base_url: "http://127.0.0.1:8000/v1"}
models:
  fast: {targets: [{provider: a, model: gpt}, {provider: b, model: llama, weight: 2}]}
  "claude-*": {targets: [{provider: a, model: "*"}]}
tenants:
  acme: {models: [fast, "claude-*", claude-haiku], keys: [{id: web, secret: env:ACME_KEY}]}
"""


def test_a_good_tree_has_no_mistakes(check_text: Check) -> None:
    assert check_text(GOOD) == []


@pytest.mark.bug("K41")
@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        ("kind: openai,", "kind: opanai,", "opanai", 'providers.a.kind: there is no provider kind "opanai" (did you mean "openai"?)'),
        ("api_key:", "api_kye:", "api_kye", 'providers.a: unknown key "api_kye" (did you mean "api_key"?)'),
        ("provider: b,", "provider: bb,", "bb,", 'models.fast.targets[1].provider: there is no provider "bb" (did you mean "b"?)'),
        ("weight: 2", "weight: 0", "0}", "models.fast.targets[1].weight: must be at least 1"),
        ("weight: 2", "weight: -1", "-1}", "models.fast.targets[1].weight: must be at least 1"),
        ("weight: 2", "wweight: 2", "wweight", 'models.fast.targets[1]: unknown key "wweight" (did you mean "weight"?)'),
        ("model: gpt}", "}", "{provider: a, }", 'models.fast.targets[0]: the key "model" is missing'),
        ('"claude-*": {', '"*laude-*": {', '"*laude', 'models.*laude-*: the name "*laude-*" has more than one star'),
        ("model: gpt}", 'model: "g-*"}', '"g-*"', 'models.fast.targets[0].model: has a star, but the name "fast" has none'),
        ("[fast,", "[fats,", "fats", 'tenants.acme.models[0]: there is no model "fats" (did you mean "fast"?)'),
        ("[fast,", '["gpt-*",', '"gpt-*"', 'tenants.acme.models[0]: there is no model "gpt-*"'),
        ("claude-haiku]", "fast]", "fast]", 'tenants.acme.models[2]: "fast" is already listed at'),
        ("id: web,", "id: web, models: [slow],", "slow", 'tenants.acme.keys[0].models[0]: "slow" is no model of this tenant'),
        ("id: web,", "id: web, models: [],", "[],", "tenants.acme.keys[0].models: must not be empty"),
        ("secret: env:ACME_KEY", "secret: env:ACME_KYE", "env:ACME_KYE", "tenants.acme.keys[0].secret: the environment variable ACME_KYE is not set"),
        ("secret: env:ACME_KEY", "hash: sha256:12", "sha256:12", "tenants.acme.keys[0].hash: must be what `gateway keys hash` prints for a key"),
        ("secret: env:ACME_KEY", "expires: 2027-01-01", "{id: web", "tenants.acme.keys[0]: needs either secret or hash"),
        ("secret: env:ACME_KEY", "secret: env:ACME_KEY, expires: 1.1.2027", "1.1.2027", "tenants.acme.keys[0].expires: must be a day or a time"),
        ("models: [fast", "modelss: [fast", "modelss", 'tenants.acme: unknown key "modelss" (did you mean "models"?)'),
        ("tenants:", "tenant:", "tenant:", 'unknown section "tenant" (did you mean "tenants"?)'),
    ],
)  # fmt: skip
def test_names_the_place_and_the_nearest_name(
    check_text: Check, old: str, new: str, at: str, message: str
) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    before = text[: text.index(at)]
    place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"

    found = check_text(text)

    assert any(each.startswith(f"{place}: {message}") for each in found), (place, found)


@pytest.mark.bug("K41")
def test_reports_every_mistake_at_once_in_the_order_of_places(check_text: Check) -> None:
    found = check_text(
        """\
        server: {prot: 1, workers: 0, admin: {port: 70000}}
        stores: {state: memcached, on_state_down: opeen}
        providers:
          a: {kind: opanai, timeout: {conect_s: 1, idle_s: "5"}}
          b: {kind: openai, api_key: env:UNSET}
        models:
          fast: {targets: [{provider: c, model: gpt}]}
        tenants:
          acme: {models: [slow], keys: [{id: web, secret: short}]}
        tenants: {}
        """
    )

    assert [int(each.split(":")[0]) for each in found] == [1, 1, 1, 2, 2, 4, 4, 4, 5, 7, 9, 9, 10]


@pytest.mark.threat("T-36")
@pytest.mark.bug("K31")
@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        ("short-key", "is too short: 16 characters or more"),
        ("changeme", "is a placeholder"),
        ("CHANGE_ME_PLEASE", ""),
        ("change-me-change-me-change-me", "is a placeholder"),
        ("xxxxxxxxxxxxxxxxxxxxxxxx", "is a placeholder"),
        ("your-api-key-here", "is a placeholder"),
        ("<your secret key>", ""),
        ("${ACME_WEB_SECRET}", "is a placeholder"),
        ("sk-1234567890", "is a placeholder"),
        ("password12345678", "is a placeholder"),
        ("replace-me-with-secret", ""),
        ("abababababababababab", "repeats too few characters"),
        ("with spaces in the middle", "must be printable ASCII characters, no spaces"),
        ("kéy-kéy-kéy-kéy-kéy", "must be printable ASCII characters, no spaces"),
        ("x1y2z3" * 100, "is longer than 512 characters"),
        (" " * 20, "is empty"),
    ],
)
def test_refuses_keys_that_protect_nothing(check_text: Check, secret: str, reason: str) -> None:
    for text in (GOOD, GOOD + "server: {admin: {key: env:ACME_KEY}}\n"):
        found = check_text(text, ACME_KEY=secret)

        if reason:
            assert any(reason in each for each in found), found
            assert secret.strip() == "" or secret not in "".join(found)


@pytest.mark.bug("K31")
@pytest.mark.parametrize("where", ["file", "literal"])
def test_an_empty_secret_stops_the_start(check_text: Check, where: str) -> None:
    text = GOOD.replace(
        "secret: env:ACME_KEY", 'secret: ""' if where == "literal" else "secret: env:E"
    )

    [mistake] = check_text(text, E="")

    assert "empty" in mistake


@pytest.mark.parametrize("key", ["none", "dummy", "EMPTY", "x9"])
def test_local_servers_may_have_any_key(check_text: Check, key: str) -> None:
    assert check_text(GOOD, OPENAI_KEY=key) == []


@pytest.mark.parametrize("key", ["changeme", "your-api-key", "sk-xxxx", "<key>", "line\nbreak"])
def test_a_provider_key_is_no_placeholder(check_text: Check, key: str) -> None:
    [mistake] = check_text(GOOD, OPENAI_KEY=key)

    assert mistake.startswith("2:30: providers.a.api_key: ")


@pytest.mark.bug("K31")
def test_one_key_opens_one_door(check_text: Check) -> None:
    digest = "sha256:7b4f2e3c8d9f0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abcdef0123"
    text = (
        GOOD
        + f"  globex: {{models: [fast], keys: [{{id: a, secret: env:ACME_KEY}}, {{id: b, hash: '{digest}'}}]}}\n"
    )
    text += f"  initech: {{models: [fast], keys: [{{id: a, hash: '{digest}'}}, {{id: a, secret: aRt7-kQ92-mnvB-44}}]}}\n"

    found = check_text(text + "server: {admin: {key: env:ACME_KEY}}\n")

    assert [each.split(": ")[1] for each in found] == [
        "tenants.globex.keys[0].secret",
        "tenants.initech.keys[0].hash",
        "tenants.initech.keys[1].id",
        "server.admin.key",
    ]


def test_the_hash_of_a_listed_secret_is_the_same_key(check_text: Check) -> None:
    from gateway.config.keys import hash_key

    text = GOOD + "  globex: {models: [fast], keys: [{id: a, hash: env:HASH}]}\n"

    [mistake] = check_text(text, HASH=hash_key("gw-F3kLz8QpXn5TgYv1MbWc7RdS"))

    assert "is the same key as at" in mistake


@pytest.mark.bug("K30", "K41")
def test_an_account_is_relayed_to_one_tenant(check_text: Check) -> None:
    text = GOOD.replace("{models: [fast,", "{providers: [a], models: [fast,")
    assert check_text(text) == []

    [mistake] = check_text(text + "  globex: {models: [fast], providers: [a]}\n")

    assert mistake.startswith(
        '9:40: tenants.globex.providers[0]: "a" is already open to another tenant'
    )


@pytest.mark.bug("K41")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("prices:", "9:1: prices: is empty"),
        ("prices: {}", "9:9: prices: is empty"),
        ("prices: null", "9:9: prices: must be a block of keys"),
        ("prices: [1]", "9:9: prices: must be a block of keys"),
        ("server: {admin: {}}", "9:17: server.admin: is empty"),
        ("server: {admin: }", "9:10: server.admin: is empty"),
        ("server: {admin: {key: }}", "9:18: server.admin.key: is empty"),
        ("server: {host: ''}", "9:16: server.host: is empty"),
        ("server: {host: 'http://0.0.0.0'}", "9:16: server.host: has characters that are not allowed here"),
        ("server: {port: '4000'}", "9:16: server.port: must be a whole number"),
        ("server: {port: 4000.0}", "9:16: server.port: must be a whole number"),
        ("server: {port: true}", "9:16: server.port: must be a whole number"),
        ("server: {port: -1}", "9:16: server.port: must be at least 0"),
        ("server: {port: 65536}", "9:16: server.port: must be at most 65535"),
        ("server: {port: 4001}", "9:16: server.port: the two listeners need two ports"),
        ("server: {workers: 0}", "9:19: server.workers: must be at least 1"),
        ("server: {drain_s: .inf}", "9:19: server.drain_s: must be a number"),
        ("server: {head_timeout_s: 0}", "9:26: server.head_timeout_s: must be greater than 0"),
        ("telemetry: {log_bodies: yes}", "9:25: telemetry.log_bodies: must be true or false"),
        ("telemetry: {log_level: inof}", "9:24: telemetry.log_level: must be one of: 'debug', 'info', 'warning' or 'error' (did you mean \"info\"?)"),
        ("telemetry: {otlp_endpoint: localhost:4317}", "9:28: telemetry.otlp_endpoint: must be a URL"),
        ("telemetry: {otlp_endpoint: 'http://u:p@h'}", "9:28: telemetry.otlp_endpoint: must not hold a user or password"),
        ("stores: {database: 'sqlite:'}", "9:20: stores.database: must be sqlite:FILE"),
        ("stores: {database: 'sqlite:///x'}", "9:20: stores.database: must be sqlite:FILE"),
        ("stores: {database: 'mysql://h/d'}", "9:20: stores.database: must begin with one of: memory, sqlite"),
        ("stores: {database: 'postgres:///d'}", "9:20: stores.database: must be postgres://"),
        ("stores: {state: 'memcached://h/0'}", "9:17: stores.state: must begin with one of: memory, redis"),
        ("stores: {cache: 'sqlite:x'}", "9:17: stores.cache: must begin with one of: memory, redis"),
        ("stores: {cache: 'postgres:///d'}", "9:17: stores.cache: must be postgres://"),
        ("stores: {cache: 'redis://h/a/b'}", "9:17: stores.cache: must be redis://"),
        ("stores: {state: 'memory:x'}", "9:17: stores.state: memory takes no address"),
        ("defaults: {chain: retry}", "9:19: defaults.chain: must be a list"),
        ("prices: {gpt: {input: 1, output: 1}}", '9:10: prices.gpt: the name "gpt" must be provider/model'),
        ("prices: {c/gpt: {input: 1, output: 1}}", '9:10: prices.c/gpt: there is no provider "c"'),
        ("prices: {a/gpt: {input: 1}}", '9:10: prices.a/gpt: the key "output" is missing'),
        ("prices: {a/gpt: {input: -1, output: 1}}", "9:25: prices.a/gpt.input: must be at least 0"),
        ("prices: {a/gpt: {input: 1, output: 1, from: soon}}", "9:45: prices.a/gpt.from: must be a day"),
        ("prices: {a/gpt: [{input: 1, output: 1}, {input: 2, output: 2}]}", "9:41: prices.a/gpt[1]: a second row from the beginning"),
        ("prices: {a/gpt: []}", "9:17: prices.a/gpt: is an empty list"),
    ],
)  # fmt: skip
def test_refuses_wrong_values_with_their_place(check_text: Check, line: str, expected: str) -> None:
    found = check_text(GOOD + line + "\n")

    assert [each for each in found if each.startswith(expected)], found
    assert len(found) == 1


@pytest.mark.bug("K41")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{kind: openai, api_key: a8f7s6, api_keys: [b8d7f6]}", "providers.c: has api_key and api_keys"),
        ("{kind: openai, api_keys: [a8f7s6, b8d7f6, a8f7s6]}", "providers.c.api_keys[2]: is the same credential as at"),
        ("{kind: openai, headers: {x-mode: env:PLACEHOLDER}}", "providers.c.headers.x-mode: is a placeholder"),
        ("{kind: openai, base_url: 'http://bücher/v1'}", "providers.c.base_url: must be a URL"),
        ("{kind: openai, api_keys: []}", "providers.c.api_keys: is an empty list"),
        ("{kind: openai, http2: true}", "providers.c: proxy and http2 need transport: httpx"),
        ("{kind: openai, base_url: 'https://u:p@h/v1'}", "providers.c.base_url: must not hold a user or password"),
        ("{kind: openai, base_url: 'https://h/v1?key=1'}", "providers.c.base_url: must not hold a query"),
        ("{kind: openai, base_url: 'ftp://h'}", "providers.c.base_url: must be a URL"),
        ("{kind: openai, base_url: 'http://[::1'}", "providers.c.base_url: must be a URL"),
        ("{kind: openai, base_url: 'http://h:99999'}", "providers.c.base_url: must be a URL"),
        ("{kind: openai, base_url: 'http://169.254.169.254/v1'}", "providers.c.base_url: must not be a metadata service"),
        ("{kind: openai, base_url: 'http://169.254.169.254/v1', allow_private: true}", "providers.c.base_url: must not be a metadata service"),
        ("{kind: openai, base_url: 'http://[fd00:ec2::254]:80'}", "providers.c.base_url: must not be a metadata service"),
        ("{kind: openai, base_url: 'http://Metadata.Google.Internal./v1'}", "providers.c.base_url: must not be a metadata service"),
        ("{kind: openai, headers: {Host: x}}", 'providers.c.headers: the name "Host" is a header that the gateway sets itself'),
        ("{kind: openai, headers: {'a b': x}}", 'providers.c.headers: the name "a b" has characters'),
        ('{kind: openai, headers: {a: "x\\ny"}}', "providers.c.headers.a: must be one line"),
        ("{kind: openai, status_map: {404: NOTFOUND}}", "providers.c.status_map.404: must be one of"),
        ("{kind: openai, status_map: {200: NOT_FOUND}}", 'providers.c.status_map: the name "200" must be a status of an error'),
        ("{kind: openai, timeout: 5}", "providers.c.timeout: must be a block of keys"),
        ("{kind: openai, transport: fats}", "providers.c.transport: must be one of: 'fast' or 'httpx' (did you mean \"fast\"?)"),
        ("{}", "providers.c: is empty"),
        ("openai", "providers.c: must be a block of keys"),
        ("{api_key: a8f7s6}", 'providers.c: the key "kind" is missing'),
    ],
)  # fmt: skip
def test_refuses_providers_that_cannot_work(check_text: Check, line: str, expected: str) -> None:
    text = GOOD.replace("models:\n", f"  c: {line}\nmodels:\n", 1)

    found = check_text(text, PLACEHOLDER="changeme")

    assert [each for each in found if each.split(": ", 1)[1].startswith(expected)], found
    assert all(each.startswith("4:") for each in found)


def test_a_header_in_place_may_say_anything_but_a_second_line(check_text: Check) -> None:
    text = GOOD.replace("kind: openai,", "kind: openai, headers: {x-mode: default, x-env: test},")

    assert check_text(text) == []


@pytest.mark.bug("K41")
def test_patterns_between_which_nothing_decides_are_refused(check_text: Check) -> None:
    text = "  {name}: {{targets: [{{provider: a, model: x}}]}}\n"
    names = ["'*-mini'", "'gpt-*'", "'gpt-4*'", "'*-fast-mini'", "'*'", "'o-*-x'", "'o-*-y'"]
    models = "".join(text.format(name=name) for name in names)

    found = check_text(GOOD.replace("models:\n", f"models:\n{models}", 1))

    assert [each.split(" at ")[0] for each in found] == [
        '8:3: models.*-fast-mini: "*-fast-mini" fits names that "*-mini"',
        '9:3: models.*: "*" fits names that "*-fast-mini"',
        '9:3: models.*: "*" fits names that "*-mini"',
    ]


def test_bad_names_are_refused_where_they_stand(check_text: Check) -> None:
    text = (
        GOOD.replace("  acme:", '  "ac me":')
        .replace("  b:", "  b/c:")
        .replace("er: b,", "er: b/c,")
    )

    found = [each.split(" has")[0] for each in check_text(text)]

    assert found[0] == '3:3: providers: the name "b/c"'
    assert found[1].endswith("models.fast.targets[1].provider:")
    assert found[2] == '8:3: tenants: the name "ac me"'
