"""What a guardrail costs, in this process: python -m benchmarks.guard.

First the CPU time of five checks that need nobody on a prompt of 4 KB, then what a window adds to a paced stream:
the work for each event, and for how many events one is held back.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from benchmarks.plot import bars
from gateway.core import clock, codec
from gateway.core.call import Call, Run
from gateway.dialects.registry import DIALECTS
from gateway.middleware.registry import load_kind
from gateway.testing import Script, running, saying
from gateway.testing.runner import Model, Original, sending

if TYPE_CHECKING:
    from collections.abc import Sequence

FIVE: tuple[dict[str, object], ...] = (
    {"kind": "secrets"},
    {"kind": "pii"},
    {"kind": "prompt_injection"},
    {"kind": "regex", "pattern": r"(?i)project[ -]zephyr\s+\d{4}"},
    {"kind": "words", "words": ["internal only", "do not distribute", "top secret"]},
)
TEXT = (
    "Please look at the attached contract, section 12, and tell me which of the two offers is better for a team of "
    "40 people. The first one was sent on 3 November; it says that the price holds for 18 months. "
)
OTHER_TEXT = (
    "Sehen Sie bitte den beigefügten Vertrag an, Abschnitt 12\u2026 请看一下附件中的合同\uff0c第12节\uff0c"
    "哪一个更适合 40 人的团队\uff1f Größer als zuvor \u2764\ufe0f, und für 18 Monate. "
)
_BYTES = 4096
_ROUNDS = 300
_CALLS = 20
_US = 1e6
_GUARD = load_kind("guardrail")


def _prompts() -> dict[str, list[dict[str, object]]]:
    text = (TEXT * 40)[:_BYTES]
    return {
        "one message": [{"role": "user", "content": text}],
        **{f"{turns} messages": _turns(text, turns) for turns in (16, 64)},
        "one message of 8 parts": [
            {"role": "user", "content": [{"type": "text", "text": part} for part in _cut(text, 8)]}
        ],
        "one message in many scripts": [
            {"role": "user", "content": (OTHER_TEXT * 40).encode()[:_BYTES].decode(errors="ignore")}
        ],
        "one message with dates and links": [
            {
                "role": "user",
                "content": (text.replace("18 months", "2026-11-30, https://x.org/a"))[:_BYTES],
            }
        ],
    }


def _cut(text: str, count: int) -> list[str]:
    size = len(text) // count
    return [text[at : at + size] for at in range(0, len(text), size)]


def _turns(text: str, count: int) -> list[dict[str, object]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": part} for at, part in enumerate(_cut(text, count))]


async def _prompt_us(messages: object) -> float:
    """Return the least CPU microseconds of a request through the guardrail, less those without it."""
    best: list[float] = []
    for layers in ([(_GUARD, {"input": list(FIVE)})], []):
        async with running(*layers, model=Script([saying()], awaits=0)) as chain:
            model = Model("m")
            plan = chain.chain.plan(model)
            fields = {"model": codec.raw("m"), "messages": codec.raw(messages)}

            async def one() -> None:
                run = Run("req", "chat", clock.monotonic(), clock.monotonic() + 60)
                run.tenant, run.asked, run.dialect = "test", "m", DIALECTS["openai_chat"]
                plan.begin(run)  # noqa: B023
                await plan.handle(Call(run, model, Original(dict(fields))))  # noqa: B023
                run.end()

            least = float("inf")
            gc.collect()
            gc.disable()
            for _ in range(_ROUNDS):
                begun = time.process_time()
                for _ in range(_CALLS):
                    await one()
                least = min(least, time.process_time() - begun)
                chain.script.asked.clear()
            gc.enable()
            best.append(least / _CALLS * _US)
    return best[0] - best[1]


def _events(words: Sequence[str]) -> list[bytes]:
    def event(delta: object, finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    said = [event({"content": f"{' ' if at else ''}{word}"}, None) for at, word in enumerate(words)]
    return [*said, event({}, "stop"), b"data: [DONE]\n\n"]


async def _stream(checks: Sequence[dict[str, object]]) -> tuple[list[float], list[int]]:
    """Return the microseconds of work for each event, and how many events later each one left."""
    events = _events((TEXT * 20).split(" "))
    options = {"output": list(checks), "stream_mode": "window"}
    costs: list[float] = []
    behind: list[int] = []
    async with running((_GUARD, options), model=sending(*events)) as chain:
        plan = chain.chain.plan(Model("m"))
        run = Run("req", "chat", clock.monotonic(), clock.monotonic() + 60)
        run.tenant, run.asked, run.dialect, run.stream = "test", "m", DIALECTS["openai_chat"], True
        plan.begin(run)
        fields = {"model": codec.raw("m"), "messages": codec.raw([])}
        stream = await plan.handle(Call(run, Model("m"), Original(fields)))
        came = left = 0
        source = stream._inner
        pull = source.next

        async def counted() -> bytes:
            nonlocal came, begun, spent
            spent += time.thread_time() - begun
            data = await pull()
            came += 1
            begun = time.thread_time()
            if spent:
                costs.append(spent * _US)
            spent = 0.0
            return data

        spent = 0.0
        begun = time.thread_time()
        source.next = counted
        while not stream.finished:
            out = (await stream.next()).count(b"\n\n")
            behind += [came - number for number in range(left + 1, left + out + 1)]
            left += out
        await stream.close()
        run.end()
    return costs, behind


def _at(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def _main(rounds: int, picture: Path | None) -> None:
    print("five checks on a prompt of 4 KB (CPU, least of many rounds)")
    drawn: list[tuple[str, float]] = []
    for name, messages in _prompts().items():
        drawn.append((name.replace("one message with", "with"), await _prompt_us(messages)))
        print(f"  {name:34} {drawn[-1][1]:7.1f} us")
    print("a window over a stream, for each event (work; events that it waits for)")
    more = ({"kind": "length", "max_chars": 1_000_000},)
    rows = {**{str(each["kind"]): [each] for each in (*FIVE, *more)}, "all five": list(FIVE)}
    for name, checks in rows.items():
        costs: list[float] = []
        behind: list[int] = []
        for _ in range(rounds):
            more, waits = await _stream(checks)
            costs += more
            behind += waits
        p50, p99 = _at(costs, 0.5), _at(costs, 0.99)
        drawn.append((f"a streamed event, {name}", p50))
        held = sum(each > 0 for each in behind) / len(behind)
        waits = f"waits p50 {_at(behind, 0.5)} p99 {_at(behind, 0.99)}, {held:4.0%} held at all"
        print(f"  {name:34} p50 {p50:6.1f} us  p99 {p99:6.1f} us  {waits}")
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        title = "What checks cost: prompts of 4 KB, and events of a stream"
        picture.write_text(bars(title, "us", drawn))


def main() -> None:
    """Print what a guardrail costs."""
    parser = argparse.ArgumentParser(description="CPU time of a guardrail, in this process.")
    parser.add_argument("--rounds", type=int, default=5, help="streams for each row")
    parser.add_argument("--picture", type=Path, help="draw the figures into this file")
    given = parser.parse_args()
    uvloop.run(_main(given.rounds, given.picture))


if __name__ == "__main__":
    asyncio.set_event_loop_policy(None)
    main()
