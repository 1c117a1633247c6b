"""What requests were found to be, for those that come again: to read one costs more than to answer it."""

from collections.abc import Callable
from hashlib import blake2b

from gateway.core import codec
from gateway.core.call import Call
from gateway.core.message import Prompt
from gateway.middleware.semantic_cache.fingerprint import Ask, read_ask

_MOST = 256
_MOST_BYTES = 16_384
_DIGEST_BYTES = 32


class Reading:
    """What was read of a request. `barred`: why the cache leaves it alone; `prompt`: once it was needed."""

    __slots__ = ("ask", "barred", "prompt")

    def __init__(self, ask: Ask, barred: str) -> None:
        self.ask = ask
        self.barred = barred
        self.prompt: Prompt | None = None


class Readings:
    """The newest readings of one cache of a chain, so of one tenant, by a digest of all that is read."""

    def __init__(self, bars: Callable[[Call, Ask], str]) -> None:
        self._bars = bars
        self._known: dict[bytes, Reading] = {}

    def read(self, call: Call, fields: codec.Fields) -> Reading:
        """Return what a request is to the cache; raises JSONError for values that cannot be read."""
        body = codec.join(fields)
        if len(body) > _MOST_BYTES:
            return self._read(call, fields)
        run, wish = call.run, call.run.cache_wish
        context = wish.context if wish is not None else b""
        head = (run.dialect_name, run.endpoint, run.asked, call.model.name, run.agent)
        sealed = blake2b(codec.encode((*head, run.passed, context)), digest_size=_DIGEST_BYTES)
        sealed.update(body)
        key = sealed.digest()
        known = self._known
        found = known.pop(key, None)
        if found is None:
            found = self._read(call, fields)
            if len(known) >= _MOST:
                del known[next(iter(known))]
        known[key] = found
        return found

    def _read(self, call: Call, fields: codec.Fields) -> Reading:
        ask = read_ask(call, fields)
        return Reading(ask, self._bars(call, ask))
