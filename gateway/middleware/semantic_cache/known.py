"""What requests were found to be, for those that come again: to read one costs more than to answer it."""

from collections.abc import Callable
from hashlib import sha256

from gateway.core import codec
from gateway.core.call import Call
from gateway.core.message import Prompt
from gateway.middleware.semantic_cache.fingerprint import Ask, read_ask
from gateway.middleware.semantic_cache.written import Written

_MOST = 256
_MOST_BYTES = 131_072
_ALL_BYTES = 1 << 21


class Reading:
    """What was read of a request. `barred`: why the cache leaves it alone; `prompt`: once it was needed.

    `written`: the kept answer that it got last, once that was served twice.
    """

    __slots__ = ("_last", "ask", "barred", "held", "prompt", "size", "written")

    def __init__(self, ask: Ask, barred: str, size: int) -> None:
        self.ask = ask
        self.barred = barred
        self.size = size  # bytes of the request
        self.held = size  # bytes of the request and of what is kept for it, as they were counted
        self.prompt: Prompt | None = None
        self.written: Written | None = None
        self._last: tuple[int, int] = (0, 0)  # the answer it got last, and how often

    def comes_again(self, answer: bytes) -> bool:
        """Take note of a kept answer that is served; True the second time, which is when to keep it as written."""
        name = hash(answer)
        last, times = self._last
        times = times + 1 if name == last else 1
        self._last = (name, times)
        return times == 2


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
        # Processors have instructions for this digest, and none for others.
        sealed = sha256(codec.encode((*head, run.passed, context)))
        sealed.update(body)
        key = sealed.digest()
        known = self._known
        found = known.pop(key, None)
        if found is None:
            found = self._read(call, fields, size)
            self._size += size
        else:
            held = size + (found.written.size if found.written is not None else 0)
            self._size += held - found.held
            found.held = held
        while known and (len(known) >= _MOST or self._size > _ALL_BYTES):
            self._size -= known.pop(next(iter(known))).held
        known[key] = found
        return found

    def _read(self, call: Call, fields: codec.Fields, size: int) -> Reading:
        ask = read_ask(call, fields)
        return Reading(ask, self._bars(call, ask), size)
