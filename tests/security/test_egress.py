"""Where requests go is the configuration's word alone: no redirect, proxy, name or path leads elsewhere (K29, T-1 to T-3)."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from gateway.chain.compile import Compiler
from gateway.chain.layers import known_middleware
from gateway.chain.local import local_door
from gateway.chain.plan import Account
from gateway.cli.commands import known_kinds
from gateway.config.errors import ConfigError
from gateway.config.loader import load
from gateway.config.server import http_url
from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.telemetry.redact import Redactor
from gateway.upstream.client import Client
from gateway.upstream.egress import Origin
from gateway.upstream.health import HealthBook
from gateway.upstream.http1.head import check_target
from gateway.upstream.resolver import Resolver
from tests.support.gateway import KEY as PROCESS_KEY
from tests.support.gateway import bearer, http, run_gateway
from tests.support.outgoing import JSON, client, now, spec
from tests.support.plans import chains
from tests.support.raw_client import RawClient, get
from tests.support.scripted_upstream import ScriptedUpstream, answering, once, upstream
from tests.support.serving import CHAT, KEY, Serving, config_for, serving
from tests.support.surface import calls, sound, surface_config

pytestmark = [pytest.mark.threat("T-1", "T-2", "T-3"), pytest.mark.bug("K29")]

TRANSPORTS = ["fast", "httpx"]


# ---------------------------------------------------------------- redirects


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("http_status", [300, 301, 302, 303, 307, 308])
async def test_a_redirect_is_an_unusable_answer(
    tmp_path: Path, http_status: int, transport: str
) -> None:
    async with upstream(sound()) as elsewhere:
        place = f"http://127.0.0.1:{elsewhere.port}/v1/chat/completions"
        moved = f"HTTP/1.1 {http_status} Moved\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n"
        async with (
            upstream(answering(moved.encode())) as served,
            serving(surface_config(served, provider={"transport": transport}), tmp_path) as gateway,
        ):
            for name in ("chat", "chat stream", "speech", "files", "file content", "upload"):
                answer = await calls("x")[name].send(gateway)
                assert answer.status_code == 502, name
                assert answer.json()["error"]["code"] == "upstream_invalid_response"
                assert "location" not in answer.headers
                assert place not in answer.text

    assert not elsewhere.peers


TARGETS = [
    b"http://127.0.0.1:1/v1", b"//127.0.0.1:1/v1", b"@127.0.0.1:1/", b"v1/chat", b"", b"*", b"/v1/../x", b"/..", b"/.",
    b"/v1/%2e%2e/x", b"/v1/.%2E/x", b"/v1%2f..%2fx", b"/v1/..%5cx", b"/v1\\..\\x", b"/v1 x", b"/v1\tx", b"/v1\r\nx: y",
    b"/v1\x00", b"/v1#x", b"/v1\xc3\xa9", b"/v1 HTTP/1.1\r\nhost: x\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("target", TARGETS)
async def test_a_credential_goes_to_its_own_origin_alone(transport: str, target: bytes) -> None:
    async with upstream(sound()) as served, client() as out:
        endpoint = out.endpoint(spec(served.url, transport))
        with pytest.raises(ValueError):
            await endpoint.send(b"POST", target, JSON, b"{}", now() + 5)

    assert not served.requests


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "name", [b"host", b"Host", b"connection", b"transfer-encoding", b"proxy-authorization"]
)
async def test_an_extra_header_cannot_name_another_host(transport: str, name: bytes) -> None:
    async with upstream(sound()) as served, client() as out:
        endpoint = out.endpoint(spec(served.url, transport))
        with pytest.raises(ValueError):
            await endpoint.send(b"POST", b"/v1", ((name, b"other.example"),), b"{}", now() + 5)

    assert not served.requests


# ---------------------------------------------------------------- the environment


@pytest.mark.slow
@pytest.mark.threat("T-39")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_proxies_of_the_environment_have_no_effect(tmp_path: Path, transport: str) -> None:
    async with upstream(once()) as proxy, upstream(sound()) as served:
        place = f"http://user:stolen@127.0.0.1:{proxy.port}"
        names = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "openai_proxy")
        environ = {case(name): place for name in names for case in (str.lower, str.upper)}
        environ |= {
            "OPENAI_BASE_URL": place, "OPENAI_API_BASE": place, "AZURE_OPENAI_ENDPOINT": place, "HOSTALIASES": "/dev/null",
            "SSL_CERT_FILE": "/nowhere", "SSL_CERT_DIR": "/nowhere", "REQUESTS_CA_BUNDLE": "/nowhere",
            "CURL_CA_BUNDLE": "/nowhere", "SSLKEYLOGFILE": f"{tmp_path}/keylog", "NO_PROXY": "", "NETRC": "/nowhere",
        }  # fmt: skip
        config = config_for(f"http://localhost:{served.port}/v1", provider={"transport": transport})
        config["tenants"]["acme"]["keys"] = [{"id": "k", "secret": PROCESS_KEY}]

        def run() -> list[int]:
            with run_gateway(config, tmp_path, environ=environ) as gateway, http() as caller:
                address = f"{gateway.url}/v1/chat/completions"
                bodies = (CHAT, {**CHAT, "stream": True})
                return [
                    caller.post(address, json=body, headers=bearer()).status_code for body in bodies
                ]

        statuses = await asyncio.to_thread(run)

    assert statuses == [200, 200]
    assert not proxy.peers
    assert len(served.requests) == 2
    assert not (tmp_path / "keylog").exists()


# ---------------------------------------------------------------- names


def compiled(folder: Path, out: Client, provider: dict[str, Any]) -> Account:
    """Return the account of a configuration with one provider."""
    config = config_for("http://unused.example/v1")
    config["providers"]["up"] = {"api_key": "sk-upstream-0123456789abcdef", **provider}
    path = folder / "gateway.yaml"
    path.write_bytes(codec.encode({"stores": {"database": "memory"}, **config}))
    tree = load(path, environ={}, known_kinds=known_kinds(), known_middleware=known_middleware())
    snapshot = Compiler(out, HealthBook(), local_door, Redactor(), chains()).compile(tree, (), 1)
    (principal,) = snapshot.principals.values()
    return principal.models["m"].targets[0].account


@asynccontextmanager
async def resolving(*addresses: str) -> AsyncGenerator[Client]:
    """Make a client for which every name stands for these addresses."""

    def look_up(*_: object, **__: object) -> list[tuple[Any, ...]]:
        return [(2, 1, 6, "", (address, 0)) for address in addresses]

    async with client(Resolver(look_up)) as out:
        yield out


async def refusal_of(account: Account) -> UpstreamError:
    """Return the error that a request of an account ends with."""
    with pytest.raises(UpstreamError) as caught:
        await account.keys[0].door.send(b"POST", b"/v1/x", JSON, b"{}", now() + 5)
    return caught.value


PRIVATE = [
    "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.2.1", "198.18.0.1", "::1",
    "fd00::1", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "::127.0.0.1",
    "fe80::5efe:7f00:1", "2001:0:1::1", "fec0::1",
]  # fmt: skip
NEVER = [
    "169.254.169.254", "169.254.170.2", "0.0.0.0", "224.0.0.1", "::", "ff02::1", "fe80::1", "100.100.100.200",
    "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "168.63.129.16",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["openai", "groq", "mistral", "gemini"])
@pytest.mark.parametrize("address", [*PRIVATE, *NEVER])
async def test_a_public_provider_s_name_leads_to_no_private_address(
    tmp_path: Path, kind: str, address: str
) -> None:
    for found in ((address,), ("1.1.1.1", address)):
        async with resolving(*found) as out:
            error = await refusal_of(compiled(tmp_path, out, {"kind": kind}))

        assert (error.code, error.phase, error.sent) == ("upstream_unavailable", "connect", False)
        assert error.detail.startswith("egress: "), error.detail
        assert address not in error.message


@pytest.mark.parametrize("address", NEVER)
@pytest.mark.parametrize("provider", [{"kind": "vllm"}, {"kind": "openai", "allow_private": True}])
async def test_where_private_addresses_are_allowed_some_are_not(
    tmp_path: Path, provider: dict[str, Any], address: str
) -> None:
    async with resolving(address) as out:
        account = compiled(tmp_path, out, {**provider, "base_url": "https://a.example/v1"})
        error = await refusal_of(account)

    assert error.detail.startswith("egress: ")


async def test_a_written_base_url_may_stand_for_this_machine_and_a_flag_takes_that_back(
    tmp_path: Path,
) -> None:
    async with upstream(sound()) as served, resolving("127.0.0.1") as out:
        base = {"kind": "openai", "base_url": f"http://models.example:{served.port}/v1"}
        account = compiled(tmp_path, out, base)
        answer = await account.keys[0].door.send(b"POST", b"/v1/x", JSON, b"{}", now() + 5)
        await answer.read_all(1000)
        error = await refusal_of(compiled(tmp_path, out, {**base, "allow_private": False}))

    assert answer.status == 200
    assert error.detail.startswith("egress: ")
    assert len(served.requests) == 1


async def test_a_client_is_not_told_why_a_name_was_refused(tmp_path: Path) -> None:
    async with upstream(sound()) as served:
        config = config_for(f"http://localhost:{served.port}/v1", provider={"allow_private": False})
        async with serving(config, tmp_path) as gateway:
            answer = await gateway.post(CHAT)

    assert answer.status_code == 503
    assert "egress" not in answer.text
    assert "127.0.0.1" not in answer.text
    assert not served.peers


# ---------------------------------------------------------------- base URLs

REFUSED_URLS = [
    "http://2130706433/v1", "http://0x7f000001/v1", "http://0x7f.0.0.1/v1", "http://017700000001/v1", "http://127.1/v1",
    "http://127.0.1/v1", "http://0177.0.0.1/v1", "http://127.0.0.01/v1", "http://1.2.3.4.5/v1", "http://1.2.3/v1",
    "http://256.0.0.1/v1", "http://0/v1", "http://[::1/v1", "http://::1/v1", "http://[fe80::1%25eth0]/v1",
    "http://[fe80::1%eth0]/v1", "http://[127.0.0.1]/v1", "http://[v1.x]/v1", "http://[name]/v1", "http://user@h/v1",
    "http://user:secret@h/v1", "http://@h/v1", "http://h:@x/v1", "http://h@127.0.0.1/v1", "http://h#@x/v1",
    "http://h?@x/v1", "http://h/v1?a=b", "http://h/v1?", "http://h/v1#", "http://h/v1#f", "http://h\\@x/v1",
    "http:\\\\h\\v1", "http://h\\v1", "http:/h/v1", "http:h/v1", "//h/v1", "h/v1", "h:80/v1", "/v1", "",
    "https:///v1", "http://", "ftp://h/v1", "file:///etc/passwd", "gopher://h/v1", "unix:///run/x", "javascript:x",
    "http+unix://h/v1", "http://h:0/v1", "http://h:65536/v1", "http://h:-1/v1", "http://h:8a/v1", "http://h:80:80/v1",
    "http://:80/v1", "http://h h/v1", "http://h/v 1", "http://h\t/v1", "http://h\n/v1", "http://h/\x00", "http://h\x7f/v1",
    "http://\uff48/v1", "http://ex\u3002ample/v1", "http://\u2488\u2489/v1", "http://h%2eexample/v1", "http://h%00/v1",
    "http://h%2f@x/v1", "http://h;x/v1", "http://h,x/v1", "http://h'x/v1", "http://-h/v1", "http://h..x/v1",
    "http://.h/v1", "http://h/../v1", "http://h/v1/..", "http://h/./v1", "http://h/v1/.", "http://h/%2e%2e/v1",
    "http://h/.%2E/v1", "http://h/v1%2f..%2fx", "http://h/v1/..%5cx", "http://h//v1", "http://h/v1//x",
    "http://h/v1/%", "http://h/v1/%zz", "http://h/v1;x/../y", "http://h/v1/\u00e9", "http://h/<x>", "http://h/{x}",
    "http://" + "h" * 64 + ".example/v1", "http://" + "h." * 127 + "example/v1",
]  # fmt: skip
TAKEN_URLS = {
    "http://h/v1": ("h", 80),
    "https://api.example/v1/": ("api.example", 443),
    "https://API.Example:8443": ("api.example", 8443),
    "http://127.0.0.1:8000/v1": ("127.0.0.1", 8000),
    "http://[::1]:8000/v1": ("::1", 8000),
    "http://[::ffff:127.0.0.1]/v1": ("::ffff:7f00:1", 80),
    "http://localhost:11434": ("localhost", 11434),
    "http://model_server.ns.svc.cluster.local./v1": ("model_server.ns.svc.cluster.local.", 80),
    "https://xn--bcher-kva.example/a/b/c": ("xn--bcher-kva.example", 443),
    "https://h/a%20b/v1beta/openai": ("h", 443),
}


@pytest.mark.parametrize("url", REFUSED_URLS)
def test_a_base_url_that_programs_read_apart_is_refused_at_check(tmp_path: Path, url: str) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_bytes(codec.encode(config_for(url)))

    with pytest.raises(ConfigError) as caught:
        load(path, environ={}, known_kinds=known_kinds(), known_middleware=known_middleware())

    assert "base_url" in str(caught.value)


@pytest.mark.parametrize("url", TAKEN_URLS)
def test_a_base_url_is_connected_to_as_it_is_written(url: str) -> None:
    origin = Origin.parse(http_url(url))

    host, port = TAKEN_URLS[url]
    assert origin.port == port
    assert origin.host == host or str(origin.literal) in {host, host.replace("7f00:1", "127.0.0.1")}


_HOSTS = st.one_of(
    st.text("a-_.0xX123F:[]%@\\/;,~!$&'()*+= \t\x00\u00e9", max_size=14),
    st.lists(st.integers(0, 300).map(str) | st.sampled_from(["0x7f", "017", "a"]), max_size=5).map(
        ".".join
    ),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
)
_PATHS = st.lists(st.text("a.%2eEfF5cC/\\;:@~?# \u00e9", max_size=8), max_size=3).map("/".join)


@given(_HOSTS, st.sampled_from(["", ":80", ":0", ":99999", ":x", ":"]), _PATHS)
@example("1.2.3.4", "", "..")
@example("h", ":", "")
@example("_/", "", "")
@example("_:", "", "")
def test_what_is_taken_at_check_is_taken_by_the_client_and_nothing_else(
    host: str, port: str, path: str
) -> None:
    url = f"http://{host}{port}/{path}"
    try:
        taken = http_url(url)
    except PydanticCustomError:
        return
    origin = Origin.parse(taken)
    below = taken.partition("//")[2].partition("/")[2]

    check_target(f"/{below}/chat/completions".replace("//", "/").encode())
    authority = host.partition("/")[0]
    written = (
        (authority if authority[:1] == "[" else authority.partition(":")[0]).strip("[]").lower()
    )
    assert origin.host == written or origin.literal is not None
    assert ".." not in unquote(taken).split("/")


# ---------------------------------------------------------------- paths


@asynccontextmanager
async def wildcards(folder: Path) -> AsyncGenerator[tuple[Serving, ScriptedUpstream]]:
    """Serve patterns whose star becomes a deployment of Azure or a model's name."""
    async with upstream(sound()) as served:
        config = surface_config(served)
        config["providers"]["az"] = {
            "kind": "azure",
            "base_url": f"http://127.0.0.1:{served.port}",
            "api_key": "azure-0123456789abcdef",
            "api_version": "2024-10-21",
        }
        for pattern, provider, model in (
            ("az/*", "az", "*"), ("pre-*", "az", "x-*"), ("*-post", "az", "*-y"), ("plain/*", "up", "*"),
        ):  # fmt: skip
            config["models"][pattern] = {"targets": [{"provider": provider, "model": model}]}
        config["tenants"]["acme"]["models"] = ["*"]
        async with serving(config, folder) as gateway:
            yield gateway, served


NAMES = [
    "..", ".", "../..", "../../x", "a/../b", "a/..", "../a", "./a", "a/./b", "%2e%2e", "%2E%2e/x", ".%2e", "%2e",
    "a%2f..%2fb", "a%2F..", "..%2fa", "..%5ca", "a\\..\\b", "..\\", "..;/a", "..;", "a/b/c", "a//b", "/a", "//a", "a/",
    "a?b=c", "a#b", "a&b", "a;b", "a:b", "a@b", "a b", "a+b", "a%b", "a%20b", "a%00b", "%", "%%", "%zz", "a\x00b", "a\nb",
    "a\r\nhost: x", "a\tb", "\u00e9", "\u6a21\u578b", "\uff0e\uff0e", "\u2024\u2024/x", "a\u2028b", "a\u200bb", "\U0001f600",
    "...", "a..b", "..a", "a..", ".a", "a" * 255, "a" * 300, "a" * 70_000, "http://127.0.0.1:1/", "*", "**", "{x}", "$(x)",
    "%252e%252e%252f", "..%252fa", "..%c0%afa", "%c0%ae%c0%ae",
]  # fmt: skip
_TARGET = re.compile(
    rb"/openai/deployments/[A-Za-z0-9._~%-]+/chat/completions\?api-version=2024-10-21\Z"
)


def inside(target: bytes, name: str) -> None:
    """Check that a model's name stayed one segment of the address."""
    if name.startswith("plain/"):
        assert target == b"/v1/chat/completions"
        return
    assert _TARGET.match(target), target
    segment = target.split(b"/")[3].decode()
    assert unquote(segment).isprintable()
    for _ in range(3):
        assert not {".", ".."} & set(re.split(r"[/\\;]", segment)), target
        segment = unquote(segment)


@pytest.mark.parametrize("shape", ["az/{}", "pre-{}", "{}-post", "plain/{}", "plain/{}/x"])
async def test_a_model_s_name_cannot_leave_its_place_in_an_address(
    tmp_path: Path, shape: str
) -> None:
    async with wildcards(tmp_path) as (gateway, served):
        reached = 0
        for each in NAMES:
            name = shape.format(each)
            before = len(served.requests)
            answer = await gateway.post({**CHAT, "model": name})
            assert answer.status_code in {200, 400, 404}, (name[:80], answer.text)
            for request in served.requests[before:]:
                inside(request.target, name)
                reached += 1
            if answer.status_code == 200 and name.startswith("plain/"):
                sent = codec.decode(served.requests[-1].body)["model"]
                assert sent == name.removeprefix("plain/")

    assert reached > 15


@pytest.mark.parametrize("each", ["a%20b", "%C3%A9", "a:b", "a+b", "ft:x:y", "a~b"])
async def test_a_deployment_in_an_address_is_one_segment_upstream(
    tmp_path: Path, each: str
) -> None:
    async with wildcards(tmp_path) as (gateway, served):
        body = codec.encode(CHAT)
        answer = await gateway.client.post(
            f"/openai/deployments/pre-{each}/chat/completions", content=body
        )
        targets = [request.target for request in served.requests]

    assert answer.status_code == 200
    for target in targets:
        inside(target, "az")
        assert unquote(target.decode().split("/")[3]) == "x-" + unquote(each)


IDS = [
    "..",
    ".",
    "%2e%2e",
    "a%2fb",
    "a%2f..",
    "..%2f..",
    "a;b",
    "a.b",
    "a%20b",
    "a%00",
    "%C3%A9",
    "a" * 129,
    "a:b",
    "*",
]


@pytest.mark.parametrize(
    "path", ["files/{}", "files/{}/content", "batches/{}", "batches/{}/cancel"]
)
async def test_an_object_s_id_is_plain_or_refused(tmp_path: Path, path: str) -> None:
    async with wildcards(tmp_path) as (gateway, served):
        for each in IDS:
            lines = (f"Authorization: Bearer {KEY}", "x-gateway-provider: up", "Connection: close")
            request = get(f"/v1/{path.format(each)}", *lines)

            def ask(request: bytes = request) -> int:
                with RawClient(("127.0.0.1", gateway.port)) as caller:
                    return caller.send(request).read_answer().status

            assert await asyncio.to_thread(ask) in {400, 404}, each

    assert not served.requests
