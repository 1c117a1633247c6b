"""Prints what the semantic cache serves on a folder of labelled data: `python -m benchmarks.cache DATA [PARTS]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from benchmarks.cache import conversations, pairs
from benchmarks.cache.embedders import Missing

PARTS: Final = ("pairs", "conversations", "streams")
CURVES: Final = "curves"


def _streams(folder: Path, orders: int) -> None:
    from benchmarks.cache import streams

    try:
        streams.report(folder, orders)
    except Missing as error:
        print(f"\nStreams need similarities: {error}")


def main(arguments: list[str]) -> int:
    """Measure the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cache", description=__doc__)
    parser.add_argument("data", type=Path, help="a folder with pairs/, conversations/, streams/")
    parser.add_argument(
        "parts", nargs="*", help=f"of {', '.join(PARTS)} (all by default), {CURVES}"
    )
    parser.add_argument("--orders", type=int, default=10, help="orders of arrival of each stream")
    given = parser.parse_args(arguments)
    parts: list[str] = given.parts or list(PARTS)
    if not given.data.is_dir() or set(parts) - {*PARTS, CURVES}:
        print(f"no such folder or part: {given.data} {' '.join(parts)}", file=sys.stderr)
        return 2
    if "pairs" in parts:
        pairs.report(given.data)
    if "conversations" in parts:
        conversations.report(given.data)
    if "streams" in parts:
        _streams(given.data, given.orders)
    if CURVES in parts:
        from benchmarks.cache.curves import draw

        print(draw(given.data))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
