"""Runs the cases of a client script: functions named `case_*`, plain or async; reports each on a line."""

import asyncio
import inspect
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any

URL, KEY = sys.argv[1], sys.argv[2]
V1 = f"{URL}/v1"
ECHOED = "You said: "


def main(names: Mapping[str, Any]) -> None:
    """Run every case and report it."""
    for name, case in list(names.items()):
        if name.startswith("case_"):
            report = {"case": name.removeprefix("case_"), **run(case)}
            print("CASE", json.dumps(report), flush=True)


def run(case: Any) -> dict[str, Any]:
    """Run one case; what it returns is part of the report."""
    try:
        told = asyncio.run(case()) if inspect.iscoroutinefunction(case) else case()
    except Exception:  # noqa: BLE001  a failed case must not keep the others from running
        return {"failed": traceback.format_exc(limit=-6)}
    return told or {}


def mark(name: str) -> str:
    """Return a text that only one request of all runs holds."""
    return f"{name}-{os.getpid()}"


def left(mark: str) -> dict[str, Any]:
    """Report when a request was given up; the test looks whether the provider noticed in time."""
    return {"mark": mark, "left_at": time.monotonic()}
