"""Questions that a layer asks a model in the course of a run: charged to it, never part of its answer."""

import copy
from collections.abc import Mapping

from gateway.core import codec
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.needs import NOTHING
from gateway.core.reply import Whole
from gateway.core.usage import Usage
from gateway.dialects.registry import DIALECTS
from gateway.middleware.base import Build
from gateway.telemetry.catalogue import TOKENS_TOTAL

_PATHS = {
    "chat": b"/chat/completions",
    "embeddings": b"/embeddings",
    "moderations": b"/moderations",
}
_STATE = "gateway.aside"
_FIRST = 1000
_STEP = 100
"""Attempts of the n-th question have numbers from 1000 + 100 n on: no two rows of a run share one."""


class Aside:
    """Asks one configured model, without the layers of the chain. Made at load; raises OptionError."""

    def __init__(self, build: Build, model: str, field: str) -> None:
        self._model = build.model(model, field)
        self._name = model
        self._direct = build.direct
        self._tenant = build.tenant
        self._counter = build.ports.metrics.counter

    async def ask(self, call: Call, endpoint: str, fields: Mapping[str, object]) -> codec.Fields:
        """Return the fields of a whole answer to a request in OpenAI's form; raises GatewayError."""
        numbers: list[int] = call.state.setdefault(_STATE, [0])
        numbers[0] += 1
        run = copy.copy(call.run)
        run.warnings, run.headers, run.passed = [], [], ()
        run.attempts = _FIRST + _STEP * numbers[0]
        run.endpoint, run.dialect = endpoint, DIALECTS["openai_chat"]
        run.stream, run.needs, run.bound, run.usage = False, NOTHING, None, None
        run.model, run.asked = self._model.name, self._name
        body = {name: codec.raw(value) for name, value in {"model": self._name, **fields}.items()}
        question = Call(run, self._model, call.original.beside(_PATHS[endpoint], body))
        reply = await self._direct(question)
        self._count(run.usage)
        if not isinstance(reply, Whole):
            await reply.close()
            raise GatewayError("upstream_invalid_response", detail=f"{self._name} streamed unasked")
        return codec.split(reply.body)

    def _count(self, usage: Usage | None) -> None:
        """Count the tokens of an answer, which are none of those that the caller is told."""
        if usage is None:
            return
        counts = {
            "input": usage.input,
            "output": usage.output,
            "cached": usage.cached,
            "cache_write": usage.cache_write,
            "reasoning": usage.reasoning,
        }
        for kind, count in counts.items():
            if count:
                self._counter(TOKENS_TOTAL, self._tenant, self._model.name, kind).inc(count)
