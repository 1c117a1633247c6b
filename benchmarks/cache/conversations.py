"""Conversations that end in the same words: what the fingerprint of all that went before keeps apart (C-6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.cache.data import Talk, talks
from gateway.chain.plan import Model
from gateway.core import codec
from gateway.core.call import Call, Run
from gateway.engine.outgoing import JsonOriginal
from gateway.middleware.semantic_cache.fingerprint import Ask, read_ask

_MODEL: Final = Model("m", (), "weighted", None, None, None)

Rule = Callable[[Talk], bool]


def _asked(messages: list[dict[str, str]]) -> Ask:
    run = Run("bench", "chat", 0.0, 1.0)
    run.asked = "m"
    original = JsonOriginal(
        b"/v1/chat/completions",
        codec.split(codec.encode({"model": "m", "messages": messages})),
        watched=True,
    )
    return read_ask(Call(run, _MODEL, original), original.fields)


def _same_context(talk: Talk) -> bool:
    return _asked(talk.a).fingerprint == _asked(talk.b).fingerprint


def _last(talk: Talk) -> bool:
    return talk.a[-1]["content"].strip().lower() == talk.b[-1]["content"].strip().lower()


def _turns(talk: Talk) -> bool:
    a, b = (
        [turn["content"] for turn in side if turn["role"] == "user"] for side in (talk.a, talk.b)
    )
    return a == b


RULES: Final[dict[str, Rule]] = {
    "last turn alone": _last,
    "all turns of the user": _turns,
    "fingerprint of all before": _same_context,
}
"""Whether two conversations may meet in one partition at all, whatever the last turn is compared by."""


def report(folder: Path, say: Callable[[str], None] = print) -> dict[str, tuple[int, int]]:
    """Print and return, for each key, how many good pairs and how many traps share it."""
    rows = talks(folder)
    good = [talk for talk in rows if talk.same]
    traps = [talk for talk in rows if not talk.same]
    found: dict[str, tuple[int, int]] = {}
    if not rows:
        return found
    say(f"\nconversations: {len(good)} with one answer, {len(traps)} traps")
    say(f"  {'key':32} share it  traps")
    for name, rule in RULES.items():
        found[name] = (sum(map(rule, good)), sum(map(rule, traps)))
        say(f"  {name:32} {found[name][0]:8d} {found[name][1]:6d}")
    met = not found["fingerprint of all before"][1]
    say(f"  {'met   ' if met else 'MISSED'}  C-6 no trap shares the fingerprint")
    return found
