"""How many tokens a prompt has: as its provider counts, else an estimate that is called one."""

from typing import cast

from gateway.chain.plan import Model
from gateway.core import clock, codec
from gateway.core.call import Call
from gateway.core.errors import UpstreamError
from gateway.core.reply import Headers, Reply, Whole
from gateway.dialects.messages.counting import estimate
from gateway.engine.refusal import Refusal
from gateway.engine.run import Engine

_JSON: Headers = ((b"content-type", b"application/json"),)
_ENDPOINT = "count_tokens"
_MOST_S = 10.0
"""How long a provider may take to count, where an estimate can stand in."""


_FAULTS = 500
"""From here on a status blames the provider, not what it was asked."""


def is_counted(model: Model) -> bool:
    """Tell whether a target of this model counts tokens."""
    return any(_ENDPOINT in target.account.row.offers for target in model.targets)


async def count(engine: Engine, call: Call) -> Reply:
    """Return the count of the first target that counts, or an estimate where none can or does.

    A provider of the caller's own format speaks for itself: what it refuses is refused. Raises InputError for what
    no target takes.
    """
    run, model = call.run, cast("Model", call.model)
    if not is_counted(model):
        return _estimated(call, "no target of this model counts tokens")
    relays = {
        target.account.name for target in model.targets if _ENDPOINT in target.account.row.endpoints
    }
    run.deadline = min(run.deadline, clock.monotonic() + _MOST_S)
    try:
        return await engine.trip(call)
    except UpstreamError as error:
        if run.provider in relays and isinstance(error, Refusal) and error.upstream_http < _FAULTS:
            raise
        return _estimated(call, f"the provider did not count ({error.code})")


def _estimated(call: Call, why: str) -> Reply:
    call.run.warn(f"input_tokens is an estimate: {why}")
    fields = call.original.fields or {}
    return Whole(200, _JSON, codec.encode({"input_tokens": estimate(fields)}))
