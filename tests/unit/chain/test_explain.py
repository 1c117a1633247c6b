"""What `gateway explain` tells of layers that are made of parts."""

from pathlib import Path
from typing import Any

from gateway.chain.explain import describe, render
from tests.unit.chain.test_unpriced import tree_of

GUARD: dict[str, Any] = {
    "id": "rail",
    "input": [
        {"kind": "pii", "action": "redact"},
        {"kind": "http", "url": "http://secret-host.example/look", "secret": "s3cret-s3cret", "label": "own"},
    ],
    "output": [{"kind": "secrets"}, {"kind": "regex", "pattern": "zephyr", "label": "leak", "action": "flag"}],
    "stream_mode": "window",
}  # fmt: skip


def test_the_checks_of_a_guardrail_are_named_with_phase_action_and_mode(tmp_path: Path) -> None:
    plan = describe(tree_of(tmp_path, {"guardrail": GUARD}))
    (layer,) = plan["tenants"]["acme"]["layers"]
    said = render(plan)

    assert layer["parts"] == [
        {"name": "pii", "kind": "pii", "group": "input", "action": "redact"},
        {"name": "own", "kind": "http", "group": "input", "action": "block"},
        {"name": "secrets", "kind": "secrets", "group": "output", "action": "block", "mode": "window"},
        {"name": "leak", "kind": "regex", "group": "output", "action": "flag", "mode": "window"},
    ]  # fmt: skip
    assert "    rail (guardrail): at the level model\n      input: pii, action redact\n" in said
    assert "      input: own (http), action block\n" in said
    assert "      output: secrets, action block, mode window\n" in said
    assert "      output: leak (regex), action flag, mode window\n" in said
    assert "secret-host" not in said + str(plan)
    assert "s3cret" not in said + str(plan)


def test_other_layers_have_no_parts(tmp_path: Path) -> None:
    plan = describe(tree_of(tmp_path, {"retry": {}}))

    assert [layer["parts"] for layer in plan["tenants"]["acme"]["layers"]] == [[]]
