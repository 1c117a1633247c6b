"""Types of errors that a provider says beside the body of its answer."""

from collections.abc import Callable
from dataclasses import replace

from gateway.dialects.base import ProviderError

HEADER = b"x-amzn-errortype"
"""Where AWS says it, with an address behind it."""
_MAX_WORD = 128


def with_type(said: ProviderError, header: Callable[[bytes], bytes | None]) -> ProviderError:
    """Return an error with the type that its answer's headers name; one that stands in the body goes before."""
    told = None if said.type else header(HEADER)
    name = bare_type(told.decode("latin-1")) if told else ""
    return replace(said, type=name) if name else said


def bare_type(text: str) -> str:
    """Return the type alone: what stands behind `:` is an address, before `#` a namespace."""
    name = text.partition(":")[0].rpartition("#")[2].strip()
    return name[:_MAX_WORD] if name.isascii() and name.isprintable() else ""
