"""Bugs planted one at a time: each must be caught by a test that is named here (G-26)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.shared import ROOT


class Planted(NamedTuple):
    """One line made wrong, and the tests that must notice."""

    what: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


PLANTED = (
    Planted(
        "the first entry of a chain is the innermost",
        "chain/onion.py",
        "for layer in reversed(layers):",
        "for layer in layers:",
        ("tests/contract/test_chain.py", "-k", "outermost"),
    ),
    Planted(
        "an own after runs on an own answer",
        "chain/onion.py",
        "                return early\n",
        "                return (await after(call, early) or early) if after else early\n",
        ("tests/contract/test_chain.py", "-k", "short_circuit"),
    ),
    Planted(
        "what layers need is ignored",
        "chain/compiled.py",
        "(layer.middleware.needs for layer in layers), NOTHING)",
        "(NOTHING for _ in layers), NOTHING)",
        ("tests/contract/test_chain.py", "-k", "needs_the_whole"),
    ),
    Planted(
        "the tenant is dropped from storage keys",
        "core/scope.py",
        "{{{self.tenant}}}",
        "{{everybody}}",
        ("tests/unit/core/test_scope.py",),
    ),
    Planted(
        "a reservation is never settled",
        "core/call.py",
        "                hook(self)\n",
        "                pass\n",
        ("tests/contract/test_chain.py", "-k", "finish_is_called"),
    ),
    Planted(
        "a second settlement counts again",
        "stores/memory.py",
        "        if run_id in own.settled:\n            return False\n",
        "",
        ("tests/conformance/test_stores_counters.py", "-k", "memory"),
    ),
    Planted(
        "a cap may be passed by one reservation",
        "stores/memory.py",
        "+ added[name] > hold.limit",
        "> hold.limit",
        ("tests/conformance/test_stores_counters.py", "-k", "memory"),
    ),
    Planted(
        "what the operator refuses is tried again",
        "middleware/retry.py",
        "if error.policy or error.spent",
        "if error.spent",
        ("tests/conformance/test_middleware.py", "-k", "retry"),
    ),
    Planted(
        "a try changes the request of the next",
        "engine/outgoing.py",
        "JsonOriginal(self.path, self.fields.copy(), self.watched)",
        "self",
        ("tests/contract/test_retry.py", "tests/contract/test_fallback.py"),
    ),
    Planted(
        "a stream counts as begun with its role",
        "dialects/openai_stream.py",
        "self.begun = ended or _says(choice)",
        "self.begun = True",
        ("tests/contract/test_retry.py", "tests/contract/test_fallback.py"),
    ),
    Planted(
        "an unclassified failure falls back",
        "middleware/fallback/layer.py",
        "if error.policy or not error.classified or",
        "if error.policy or",
        ("tests/contract/test_fallback.py",),
    ),
    Planted(
        "a call that was sent and never answered costs nothing",
        "engine/accounting.py",
        "        return _charge(UNCERTAIN, Usage(prompt, 0), price)",
        "        return NOTHING_CHARGED",
        ("tests/unit/engine/test_accounting.py",),
    ),
    Planted(
        "money is rounded down",
        "core/money.py",
        "return price.call - (-total // _MILLION)",
        "return price.call + total // _MILLION",
        ("tests/unit/core/test_money.py",),
    ),
    Planted(
        "the body is no part of an idempotent request",
        "server/fingerprint.py",
        "self.body == other.body or not (self.body and other.body)",
        "True",
        ("tests/contract/test_idempotency.py", "tests/unit/server/test_fingerprint.py"),
    ),
    Planted(
        "a caller's mistake is blamed on the target",
        "engine/blame.py",
        "return Blame.NOBODY",
        "return Blame.TARGET",
        ("tests/unit/engine/test_blame.py", "tests/faults/test_breakers.py"),
    ),
)


def run(folder: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    there = [each for each in tests if not each.endswith(".py") or (ROOT / each).exists()]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:randomly",
            ),
            *("-p", "no:randomly", "-o", f"pythonpath={folder} .", "-n", "0", *there),
        ],
        cwd=ROOT,
        env={**environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


@pytest.mark.soak
@pytest.mark.timeout(180)
@pytest.mark.contract("G-26")
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.what.replace(" ", "-"))
def test_a_planted_bug_is_caught(planted: Planted, tmp_path: Path) -> None:
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gateway", tmp_path / "gateway", ignore=skipped)
    file = tmp_path / "gateway" / planted.file
    text = file.read_text(encoding="utf-8")
    assert planted.right in text, f"{planted.file} has changed: plant this bug anew"
    file.write_text(text.replace(planted.right, planted.wrong), encoding="utf-8")

    done = run(tmp_path, planted.tests)

    assert done.returncode == 1, f"nobody noticed: {done.stdout[-2000:]}{done.stderr[-500:]}"
    assert " failed" in done.stdout
