"""Gets a picture that a caller names by its address, where the operator allows it, under every rule (T-1).

https alone, no redirects, no credentials, every address checked and none private, bounded in size and time. Each
fetch has connections of its own, closed behind it.
"""

import asyncio
from urllib.parse import urlsplit

from gateway.core import clock
from gateway.core.errors import InputError, UpstreamError
from gateway.upstream.client import Client, EndpointSpec, Timeouts

MOST_BYTES = 8 << 20
_WAIT_S = 5.0
_OK = 200
_KINDS = frozenset({b"image/png", b"image/jpeg", b"image/gif", b"image/webp"})


async def fetch_picture(
    url: str, deadline: float, *, ca_file: str | None = None, allow_private: bool = False
) -> tuple[str, bytes]:
    """Return media type and bytes; raises InputError `invalid_request` for what cannot be had or is no picture.

    `ca_file` and `allow_private` are the operator's, for pictures of a network of its own.
    """
    client = Client()
    try:
        parts = urlsplit(url)
        if parts.scheme != "https" or not url.isascii():
            raise _refused("only https addresses are fetched")
        until = min(deadline, clock.monotonic() + _WAIT_S)
        spec = EndpointSpec(
            base_url=f"https://{parts.netloc}",
            timeouts=Timeouts(_WAIT_S, _WAIT_S, _WAIT_S, _WAIT_S),
            ca_file=ca_file,
            allow_private=allow_private,
        )
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        async with asyncio.timeout_at(until):
            endpoint = client.endpoint(spec)
            answer = await endpoint.send(b"GET", target.encode(), (), None, until)
            if answer.status != _OK or answer.content_type not in _KINDS:
                answer.abort()
                raise _refused("there is no picture at its address")
            return answer.content_type.decode(), await answer.read_all(MOST_BYTES)
    except (UpstreamError, ValueError, TimeoutError):
        raise _refused("it cannot be fetched") from None
    finally:
        await client.aclose()


def _refused(why: str) -> InputError:
    return InputError("invalid_request", f"A picture is given by its address, and {why}.")
