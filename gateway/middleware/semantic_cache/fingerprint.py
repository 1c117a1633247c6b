"""What a request is to the cache: all of it that may change the answer, without the last text of the user (K20).

What is not known counts: a field that no line here names is a part of the key.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, cast
from unicodedata import normalize

from gateway.core import codec
from gateway.core.caching import SCHEMA
from gateway.core.call import Call
from gateway.core.scope import digest

TRANSPORT = frozenset({"stream", "stream_options"})
"""Top-level fields that say how an answer is sent, not what it is."""
_NUMBER = re.compile(rb"(?:^|[:\[,])\s*-?[0-9]+[.eE]|-0")
_HERE = 0
"""Stands where the last text of the user was; no format has a number there."""
_EXACT_INT = 2.0**53
_UNPINNED_KEYS = frozenset({"url", "image_url", "file_url", "uri", "file_uri", "fileUri"})
_STORED_KEYS = frozenset({"file_id", "fileId"})
_REMOTE = ("http://", "https://", "gs://", "s3://", "ftp://")
_STATE_FIELDS = frozenset({"previous_response_id", "conversation", "container"})
_WORLD_FIELDS = frozenset({"web_search_options", "plugins", "mcp_servers", "search_parameters"})
_PINNED_TOOLS = frozenset({"", "function", "custom"})
_SEEN_MESSAGES = ("messages", "input", "system", "instructions", "prompt")
_RESULTS = frozenset({"tool", "tool_result", "function_call_output", "custom_tool_call_output"})


class Ask(NamedTuple):
    """One request. `asked` is the last text of the user, None where there is none: then only exact keys count.

    `after_tools`: it brings results of tools. `unpinned` says why its answer cannot be kept, "" when it can.
    """

    fingerprint: str
    asked: str | None
    exact: str
    after_tools: bool
    unpinned: str


def read_ask(call: Call, fields: codec.Fields) -> Ask:
    """Read a request as it stands at the cache; raises JSONError for values that cannot be read."""
    run = call.run
    values: dict[str, Any] = {}
    hasher = sha256()
    find = _LAST_TEXTS.get(run.endpoint)
    last: _Last | None = None
    wish = run.cache_wish
    passed = [[a.decode("latin-1"), b.decode("latin-1")] for a, b in run.passed if _counts(a)]
    head = (SCHEMA, run.endpoint, run.asked, call.model.name, run.agent, passed)
    hasher.update(codec.canonical(head))
    if wish is not None and wish.context:
        hasher.update(b"\ncontext:" + canonical(codec.Raw(wish.context))[0])
    for name in sorted(fields):
        if name in TRANSPORT:
            continue
        written, value = canonical(fields[name])
        values[name] = value
        if find is not None and name == find.field:
            last = find.find(value)
            if last is not None:
                written = codec.canonical(last.rest)
        hasher.update(b"\n%d:%b:%b" % (len(name), name.encode(), written))
    asked = last.text if last is not None else None
    return Ask(
        fingerprint=hasher.hexdigest(),
        asked=asked,
        exact=exact_of(asked),
        after_tools=find is not None and _brings_results(values.get(find.field)),
        unpinned=_unpinned(values),
    )


def exact_of(asked: str | None) -> str:
    """Return the key of a last text within its pool; None for a request without one."""
    return digest("text", asked) if asked is not None else digest("none")


def canonical(raw: codec.Raw) -> tuple[bytes, Any]:
    """Return a value in the one form that all its spellings share, and the value itself.

    Keys are sorted, whole numbers are integers, texts are composed (NFC).
    """
    data = bytes(raw)
    is_escaped = b"\\u" in data
    if not data.isascii() and not is_escaped:
        raw = codec.Raw(normalize("NFC", data.decode()).encode())
    value = codec.value_of(raw)
    if is_escaped or _NUMBER.search(data):
        value = _normal(value)
    return codec.canonical(value), value


def _normal(value: object) -> object:
    match value:
        case str():
            return value if value.isascii() else normalize("NFC", value)
        case float():
            return int(value) if value.is_integer() and abs(value) < _EXACT_INT else value
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return {cast("str", _normal(key)): _normal(each) for key, each in pairs}
        case list():
            return [_normal(each) for each in cast("list[object]", value)]
        case _:
            return value


def _counts(header: bytes) -> bool:
    """Tell whether a header that goes on to the provider may change its answer; ids of sessions do not."""
    return not header.startswith(b"x-claude-code-")


class _Last(NamedTuple):
    text: str
    rest: object


class _Find(NamedTuple):
    field: str
    find: Callable[[Any], _Last | None]


def _in_history(history: object) -> _Last | None:
    """Take the last text out of the last entry of a history, where the user said it."""
    if isinstance(history, str):
        return _Last(history, _HERE)
    if not isinstance(history, list) or not history:
        return None
    entries = cast("list[object]", history)
    last = codec.as_object(entries[-1])
    if last is None or last.get("role") != "user":
        return None
    content = last.get("content")
    if isinstance(content, str):
        return _Last(content, [*entries[:-1], {**last, "content": _HERE}])
    if not isinstance(content, list):
        return None
    parts = cast("list[object]", content)
    for at in range(len(parts) - 1, -1, -1):
        part = codec.as_object(parts[at])
        text = part.get("text") if part is not None else None
        if part is not None and isinstance(text, str) and part.get("type") in _TEXT_TYPES:
            rest = [*parts[:at], {**part, "text": _HERE}, *parts[at + 1 :]]
            return _Last(text, [*entries[:-1], {**last, "content": rest}])
    return None


_TEXT_TYPES = frozenset({"text", "input_text"})
_LAST_TEXTS: Mapping[str, _Find] = {
    "chat": _Find("messages", _in_history),
    "messages": _Find("messages", _in_history),
    "responses": _Find("input", _in_history),
}
"""Where the last text of the user stands, by endpoint; the others have none and are found by exact keys alone."""


def _brings_results(history: object) -> bool:
    if not isinstance(history, list) or not history:
        return False
    last = codec.as_object(cast("list[object]", history)[-1]) or {}
    if last.get("role") in _RESULTS or last.get("type") in _RESULTS:
        return True
    content = last.get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return any((codec.as_object(part) or {}).get("type") in _RESULTS for part in parts)


def _unpinned(values: Mapping[str, Any]) -> str:
    """Say what in a request means something else tomorrow: an address, a stored thing, a tool that looks around."""
    if any(values.get(name) for name in _STATE_FIELDS):
        return "state"
    if any(values.get(name) is not None for name in _WORLD_FIELDS):
        return "server_tool"
    tools = values.get("tools")
    for tool in cast("list[object]", tools) if isinstance(tools, list) else ():
        kind = (codec.as_object(tool) or {}).get("type", "")
        if kind not in _PINNED_TOOLS:
            return "server_tool"
    for name in _SEEN_MESSAGES:
        value = values.get(name)
        if isinstance(value, (list, dict)) and _refers(cast("Sequence[object]", value)):
            return "remote"
    return ""


def _refers(root: object) -> bool:
    """Tell whether something is named by an address or an id that only a provider can resolve."""
    waiting: list[object] = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(cast("list[object]", value))
        elif isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            for key, each in fields.items():
                if isinstance(each, (list, dict)):
                    waiting.append(cast("object", each))
                elif isinstance(each, str) and (
                    (key in _UNPINNED_KEYS and each.lower().startswith(_REMOTE))
                    or (key in _STORED_KEYS and each)
                ):
                    return True
            if fields.get("type") == "item_reference":
                return True
    return False
