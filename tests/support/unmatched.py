"""Requests that are said in other words than recorded ones, by rules: each difference that changes nothing has one.

What a caller's format has no words for is another matter: `asked.unsayable` tells it.
"""

import importlib.util
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from tests.support.exchanges import Exchange
from tests.support.shared import require_shared

ABSENT = "(absent)"
Rule = Callable[[str, Any, Any], bool]
"""Tells whether a difference is of one kind: its place, what was recorded, what is sent."""
_NAMES = {
    "max_completion_tokens", "max_tokens", "responseSchema", "responseJsonSchema", "reasoning_content", "reasoning",
}  # fmt: skip
_DEFAULTS = ("thought", "prefix", "format", "reasoning_content", "index", "type")
_USUAL = ("", False, 0, "function", "auto")


RENAMED = "Of two names of one field the one is used that the provider knows best."


def _last(place: str) -> str:
    return place.rpartition(".")[2]


RULES: Mapping[str, Rule] = {
    "An empty description of a tool is left out.": lambda place, was, now: (
        _last(place) == "description" and (was, now) == ("", ABSENT)
    ),
    "A message of nothing but calls has an empty text, null or no content at all.": lambda place, was, now: (
        _last(place) == "content" and was in ("", [], ABSENT) and now in ("", ABSENT)
    ),
    "A default is said or left out.": lambda place, was, now: (
        _last(place) in (*_DEFAULTS, "detail")
        and ABSENT in (was, now)
        and (was in _USUAL or now in _USUAL)
    ),
    "Messages in `input` say their type or leave it out.": lambda place, was, now: (
        re.fullmatch(r"input\[\d+\]\.type", place) is not None
        and {was, now} == {"message", ABSENT}
    ),
    "Tools of Responses are strict where nothing is said, others are not: it is always said.": (
        lambda place, was, now: _last(place) == "strict" and was == ABSENT and now is False
    ),
    RENAMED: lambda place, was, now: _last(place) in _NAMES and ABSENT in (was, now),
    "A word is written in capitals.": lambda place, was, now: (
        isinstance(was, str) and isinstance(now, str) and was.upper() == now
    ),
    "The address of a picture stands in an object.": lambda place, was, now: (
        _last(place) == "image_url" and now == {"url": was}
    ),
    "The cache mark of a message stands at its last part.": lambda place, was, now: (
        _last(place) == "cache_control" and now == ABSENT
    ) or (_last(place) == "content" and isinstance(now, list) and "cache_control" in now[-1]),
}  # fmt: skip
"""Every kind of difference that changes nothing, by what is the same about it."""
_ELSEWHERE: Mapping[str, Rule] = {
    "A text alone is one message of the user.": lambda place, was, now: (
        place == "input"
        and isinstance(was, str)
        and now
        in (
            [{"role": "user", "content": was}],
            [{"role": "user", "content": was, "type": "message"}],
        )
    ),
}
"""The same for differences that the folder beside the project does not show."""
ALL_RULES = {**RULES, **_ELSEWHERE}


@cache
def _matcher() -> Any:
    path = require_shared() / "tools" / "replay_upstream.py"
    spec = importlib.util.spec_from_file_location("replay_upstream", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Matcher({})


def reasons(exchange: Exchange, sent: Any, ignored: Iterable[str]) -> list[str]:
    """Return why a request that was sent is not the recorded one: rules, or the differences that none explains."""
    path, names = exchange.raw["request"]["path"], set(ignored)
    found: list[str] = []
    differences = _matcher().compare(exchange.raw, "POST", path, [], {}, sent, "lenient", names)
    for place, was, now in differences:
        rule = next((words for words, rule in ALL_RULES.items() if rule(place, was, now)), None)
        if rule == RENAMED and not _has_other_name(place, now, differences, sent):
            rule = None
        said = rule or f"{place}: {str(was)[:200]!r} became {str(now)[:200]!r}"
        if said not in found:
            found.append(said)
    return found


def _has_other_name(place: str, now: Any, differences: Iterable[Any], sent: Any) -> bool:
    """Tell whether what is gone is sent under another name, in the same object."""
    holder, _, name = place.rpartition(".")
    if now != ABSENT:
        others = {where.rpartition(".")[2] for where, _, other in differences if other == ABSENT}
        return bool(others & _NAMES)
    inner: Any = sent
    for step in re.findall(r"[^.\[\]]+", holder):
        inner = inner[int(step) if step.isdigit() else step]
    return bool((_NAMES - {name}) & set(inner))
