"""Request ids: made here, or taken from the caller when they are harmless (T-29)."""

import random
import re

from gateway.core import clock

_HARMLESS = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")
_random = random.Random(random.SystemRandom().getrandbits(256))  # noqa: S311  an id is no secret


def new_request_id() -> str:
    """Return a fresh id; it finds a request and opens nothing."""
    return "req_" + _random.getrandbits(96).to_bytes(12, "big").hex()


def new_run_id() -> str:
    """Return a fresh id of the gateway's own for what a request does to stores.

    It begins with the time, so that rows that are written together lie together: at random places each of them
    would have a page of the ledger read and written for itself.
    """
    number = int(clock.wall() * 1000) << 80 | _random.getrandbits(80)
    return "run_" + number.to_bytes(16, "big").hex()


def new_call_id() -> str:
    """Return a fresh id for a tool call whose provider gave none; it is matched with a result and opens nothing."""
    return f"call_{_random.getrandbits(96):024x}"


def new_entry_id() -> str:
    """Return a fresh id for a kept answer; it finds it for operators and opens nothing."""
    return f"ce_{_random.getrandbits(96):024x}"


def accepted(value: bytes) -> bool:
    """Tell whether a caller's own id may be used in headers and logs."""
    return _HARMLESS.match(value) is not None
