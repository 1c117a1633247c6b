"""`gateway conform`: asks a running gateway to show that it speaks its callers' formats, and prints how it did."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.cli.conform_checks import CHECKS, ONLY, Case, NotOffered, Wrong
from gateway.cli.conform_formats import PATHS, objects
from gateway.cli.conform_wire import Wire
from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.upstream.client import Client

_FINE, _FAILED, _USAGE, _DOWN = 0, 1, 2, 3
PASS, FAIL, NOT_OFFERED = "pass", "fail", "not offered"


@dataclass(frozen=True, slots=True)
class Result:
    """What one check found; `detail` says why where it is no pass."""

    caller: str
    model: str
    check: str
    outcome: str
    detail: str = ""


def run_conform(options: argparse.Namespace) -> int:
    """Run the checks and print them; 1 when one fails, 2 for wrong options, 3 when nothing answers."""
    try:
        wanted = parse_models(options.model or ())
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return _USAGE
    key = options.key or os.environ.get("GATEWAY_KEY", "")
    try:
        results = asyncio.run(_conform(options.against, key, wanted))
    except ValueError as wrong:  # of the address
        print(f"--against: {wrong}", file=sys.stderr)
        return _USAGE
    except UpstreamError as down:
        print(f"{options.against} does not answer: {down.message} {down.detail}", file=sys.stderr)
        return _DOWN
    if options.json:
        print(codec.encode([_row(result) for result in results]).decode())
    else:
        print(render(results), end="")
    return _FAILED if any(result.outcome == FAIL for result in results) else _FINE


def parse_models(said: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Return models with their callers of `NAME` or `NAME=caller,caller`; raises ValueError for unknown callers."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for each in said:
        name, _, callers = each.partition("=")
        kinds = tuple(callers.split(",")) if callers else tuple(PATHS)
        unknown = [kind for kind in kinds if kind not in PATHS]
        if unknown or not name:
            raise ValueError(f"--model {each}: callers are {', '.join(PATHS)}")
        found.append((name, kinds))
    return found


async def _conform(
    url: str, key: str, wanted: Sequence[tuple[str, tuple[str, ...]]]
) -> list[Result]:
    client = Client()
    try:
        wire = Wire(client, url, key)
        models = wanted or [(await _first_model(wire), tuple(PATHS))]
        return [
            await _checked(Case(wire, kind, model), name)
            for model, kinds in models
            for kind in kinds
            for name in CHECKS
            if ONLY.get(name, kind) == kind
        ]
    finally:
        await client.aclose()


async def _first_model(wire: Wire) -> str:
    """Return the first model that is listed by its whole name."""
    listed = (each.get("id") for each in objects((await wire.get("/models")).object.get("data")))
    names = [name for name in listed if isinstance(name, str) and "*" not in name]
    if not names:
        raise ValueError("no models are listed there; name one with --model")
    return names[0]


async def _checked(case: Case, name: str) -> Result:
    try:
        await CHECKS[name](case)
    except NotOffered as why:
        return Result(case.kind, case.model, name, NOT_OFFERED, str(why))
    except Wrong as why:
        return Result(case.kind, case.model, name, FAIL, str(why))
    except UpstreamError as why:
        if why.phase == "connect":
            raise
        return Result(case.kind, case.model, name, FAIL, f"{why.message} {why.detail}".strip())
    return Result(case.kind, case.model, name, PASS)


def _row(result: Result) -> Mapping[str, str]:
    return {
        "caller": result.caller,
        "model": result.model,
        "check": result.check,
        "outcome": result.outcome,
        "detail": result.detail,
    }


def render(results: Sequence[Result]) -> str:
    """Return the results as a table: a row for each check, a column for each caller; then why, line by line."""
    lines: list[str] = []
    for model in dict.fromkeys(result.model for result in results):
        mine = [result for result in results if result.model == model]
        kinds = list(dict.fromkeys(result.caller for result in mine))
        cells = {(result.check, result.caller): result.outcome for result in mine}
        lines.append(f"{model:24}" + "".join(f"{kind:13}" for kind in kinds))
        for check in dict.fromkeys(result.check for result in mine):
            row = "".join(f"{cells.get((check, kind), ''):13}" for kind in kinds)
            lines.append(f"  {check:22}{row}".rstrip())
    lines += (
        f"{result.outcome}: {result.caller}, {result.check}: {result.detail}"
        for result in results
        if result.detail
    )
    counts = {word: sum(r.outcome == word for r in results) for word in (PASS, FAIL, NOT_OFFERED)}
    lines.append(", ".join(f"{count} {word}" for word, count in counts.items()))
    return "\n".join(lines) + "\n"
