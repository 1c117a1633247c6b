"""The first key opens the door that it was made for, or is not made."""

import re
from pathlib import Path

import pytest

from tests.support.gateway import bearer, http, run_gateway

ALONE = {"GATEWAY_SERVER__PORT": "0", "GATEWAY_SERVER__ADMIN__PORT": "0"}
_KEY = re.compile(r"^  key: +(gw-\S+) ", re.MULTILINE)


@pytest.mark.slow
def test_no_first_key_is_made_that_the_workers_would_not_know(tmp_path: Path) -> None:
    environ = {**ALONE, "GATEWAY_SERVER__WORKERS": "2", "GATEWAY_STORES__DATABASE": "memory"}
    with run_gateway(None, tmp_path, environ=environ) as gateway:
        shown = gateway.process.out

    assert "gw-" not in shown
    assert "note: no first key is made: with database memory" in shown
    assert "gateway keys new" not in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [{"GATEWAY_STORES__DATABASE": "memory"}, {"GATEWAY_SERVER__WORKERS": "2"}],
    ids=["memory", "workers"],
)
def test_the_first_key_is_known_to_who_answers(tmp_path: Path, more: dict[str, str]) -> None:
    with run_gateway(None, tmp_path, environ={**ALONE, **more}) as gateway, http() as client:
        key = _KEY.search(gateway.process.out)
        assert key is not None
        answers = [
            client.get(
                f"{gateway.url}/v1/models",
                headers={**bearer(key.group(1)), "connection": "close"},
            )
            for _ in range(8)
        ]

    assert {answer.status_code for answer in answers} == {200}
