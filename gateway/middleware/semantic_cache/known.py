"""What requests were found to be, for those that come again: to read one costs more than to answer it."""

from collections.abc import Callable
from hashlib import blake2b

from gateway.core import codec
from gateway.core.call import Call
from gateway.core.message import Prompt
from gateway.middleware.semantic_cache.fingerprint import Ask, read_ask

_MOST = 256
_MOST_BYTES = 131_072
_ALL_BYTES = 1 << 21
_DIGEST_BYTES = 32


class Reading:
    """What was read of a request. `barred`: why the cache leaves it alone; `prompt`: once it was needed."""

    __slots__ = ("ask", "barred", "prompt", "size")

    def __init__(self, ask: Ask, barred: str, size: int) -> None:
        self.ask = ask
        self.barred = barred
        self.size = size  # bytes of the request
        self.prompt: Prompt | None = None


class Readings:
    """The newest readings of one cache of a chain, so of one tenant, by a digest of all that is read."""

    def __init__(self, bars: Callable[[Call, Ask], str]) -> None:
        self._bars = bars
        self._known: dict[bytes, Reading] = {}
        self._size = 0

    def read(self, call: Call, fields: codec.Fields) -> Reading:
        """Return what a request is to the cache; raises JSONError for values that cannot be read."""
        body = codec.join(fields)
        size = len(body)
        if size > _MOST_BYTES:
            return self._read(call, fields, size)
        run, wish = call.run, call.run.cache_wish
        context = wish.context if wish is not None else b""
        head = (run.dialect_name, run.endpoint, run.asked, call.model.name, run.agent)
        sealed = blake2b(codec.encode((*head, run.passed, context)), digest_size=_DIGEST_BYTES)
        sealed.update(body)
        key = sealed.digest()
        known = self._known
        found = known.pop(key, None)
        if found is None:
            found = self._read(call, fields, size)
            self._size += size
            while known and (len(known) >= _MOST or self._size > _ALL_BYTES):
                self._size -= known.pop(next(iter(known))).size
        known[key] = found
        return found

    def _read(self, call: Call, fields: codec.Fields, size: int) -> Reading:
        ask = read_ask(call, fields)
        return Reading(ask, self._bars(call, ask), size)
