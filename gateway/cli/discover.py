"""`--discover`: asks the usual loopback ports of model servers for their models, and nothing else."""

import asyncio
from collections.abc import Collection

from gateway.core import clock, codec
from gateway.core.errors import UpstreamError
from gateway.providers.base import Provider
from gateway.providers.registry import PROVIDERS
from gateway.upstream.client import Client, EndpointSpec, Timeouts

_WAIT_S = 0.5
_MAX_BYTES = 1 << 20
_LOOPBACK = "http://127.0.0.1:"
LOCAL = tuple(
    row
    for row in PROVIDERS.values()
    if "models" in row.endpoints and row.base_url.startswith(_LOOPBACK)
)
"""The kinds of providers that run on the machine of the gateway."""


def discover() -> Collection[str]:
    """Return the kinds of providers whose server answers on this machine."""
    return asyncio.run(_discover())


async def _discover() -> Collection[str]:
    client = Client()
    try:
        answers = await asyncio.gather(*(_answers(client, row) for row in LOCAL))
    finally:
        await client.aclose()
    return [row.kind for row, is_there in zip(LOCAL, answers, strict=True) if is_there]


async def _answers(client: Client, row: Provider) -> bool:
    timeouts = Timeouts(connect_s=_WAIT_S, pool_s=_WAIT_S, first_byte_s=_WAIT_S, idle_s=_WAIT_S)
    endpoint = client.endpoint(EndpointSpec(base_url=row.base_url, timeouts=timeouts))
    try:
        answer = await endpoint.send(
            b"GET",
            row.target_path("/v1", b"/models", ""),
            (),
            None,
            clock.monotonic() + 2 * _WAIT_S,
        )
        listed = codec.as_object(codec.decode(await answer.read_all(_MAX_BYTES)))
    except (UpstreamError, codec.JSONError):
        return False
    return listed is not None and isinstance(listed.get("data"), list)
