"""Ids of responses and items that the gateway makes, and how they are known again."""

from gateway.core.ids import new_request_id

_MARK = "gw"
PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "function_call_output": "fco",
    "image_generation_call": "ig",
}


def new_base() -> str:
    """Return what all ids of one response have in common."""
    return _MARK + new_request_id().removeprefix("req_")


def response_id(base: str) -> str:
    """Return the id of a response."""
    return f"resp_{base}"


def item_id(base: str, kind: str, index: int) -> str:
    """Return the id of an item at its place in the output."""
    return f"{PREFIXES[kind]}_{base}{index:02x}"


def is_made_here(id_: str) -> bool:
    """Tell whether an id was made here: it means nothing to a provider."""
    return id_.partition("_")[2].startswith(_MARK)
