"""`gateway cache`: shows, explains and forgets kept answers of a running gateway, by its admin listener."""

import argparse
import asyncio
import sys
from typing import Any
from urllib.parse import urlencode

from gateway.config.references import Secret
from gateway.config.schema import Tree
from gateway.config.server import Admin
from gateway.core import clock, codec
from gateway.core.errors import UpstreamError
from gateway.lifecycle.inflight import InFlight
from gateway.upstream.client import Client, EndpointSpec, Timeouts

_FINE, _MISTAKE, _DOWN = 0, 1, 3
_GOOD = 200
_WAIT_S = 15.0
_MAX_BYTES = 16 << 20
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  where a listener on all addresses answers here
_SELECTS = ("id", "session", "namespace", "tag", "model", "agent")


def run_cache(options: argparse.Namespace, tree: Tree) -> int:
    """Run one `gateway cache` action against the admin listener of a configuration."""
    url = options.admin or _url(tree.server.admin)
    try:
        status, said = asyncio.run(_ask(url, tree.server.admin.key, *_request(options)))
    except UpstreamError as error:
        print(f"no gateway answers at {url}: {error.message}", file=sys.stderr)
        return _DOWN
    except codec.JSONError as error:
        print(f"the body is no JSON object: {error}", file=sys.stderr)
        return _MISTAKE
    if status != _GOOD:
        print(said.get("detail", said), file=sys.stderr)
        return _MISTAKE
    if options.action == "explain" and not options.json:
        _print_steps(said)
    else:
        print(codec.indented(said), end="")
    return _FINE


def _request(options: argparse.Namespace) -> tuple[bytes, str, dict[str, Any] | None]:
    """Return method, address and body; raises JSONError."""
    if options.action == "stats":
        return b"GET", "/stats?" + urlencode({"tenant": options.tenant}), None
    if options.action == "purge":
        chosen = {name: given for name in _SELECTS if (given := getattr(options, name))}
        if options.everything:
            chosen["everything"] = "true"
        return b"DELETE", "/entries?" + urlencode({"tenant": options.tenant, **chosen}), None
    asked = {
        "tenant": options.tenant,
        "path": options.path,
        "session": options.session or "",
        "body": _body(options),
    }
    return b"POST", "/explain", asked


def _body(options: argparse.Namespace) -> dict[str, Any]:
    if options.question is not None:
        messages = [{"role": "user", "content": options.question}]
        return {"model": options.model, "messages": messages}
    body = codec.as_object(codec.decode(sys.stdin.buffer.read()))
    if body is None:
        raise codec.JSONError("give one on standard input, or --model and a question")
    return body


def _url(admin: Admin) -> str:
    host = _EVERYWHERE.get(admin.host, admin.host)
    return f"http://[{host}]:{admin.port}" if ":" in host else f"http://{host}:{admin.port}"


async def _ask(
    url: str, key: Secret | None, method: bytes, path: str, body: dict[str, Any] | None
) -> tuple[int, dict[str, Any]]:
    """Return status and answer; raises UpstreamError where nobody answers."""
    inflight = InFlight()
    client = Client(spawn=inflight.spawn)
    try:
        timeouts = Timeouts(first_byte_s=_WAIT_S, idle_s=_WAIT_S)
        endpoint = client.endpoint(EndpointSpec(base_url=url, timeouts=timeouts))
        headers = [(b"content-type", b"application/json")]
        if key is not None:
            headers.append((b"authorization", b"Bearer " + key.reveal().encode()))
        target = b"/admin/cache" + path.encode()
        deadline = clock.monotonic() + _WAIT_S
        sent = None if body is None else codec.encode(body)
        answer = await endpoint.send(method, target, tuple(headers), sent, deadline)
        said = await answer.read_all(_MAX_BYTES)
    finally:
        await client.aclose()
        await inflight.stop_background()
    try:
        found = codec.as_object(codec.decode(said)) or {}
    except codec.JSONError:
        found = {"detail": said.decode(errors="replace")}
    return answer.status, found


def _print_steps(said: dict[str, Any]) -> None:
    for cache in said["caches"]:
        print(cache["id"])
        for step in cache["steps"]:
            print(f"  {step['tier']}: {step['said']}")
