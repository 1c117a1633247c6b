"""What several processes must share is refused where they cannot (K18)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import run_cli
from tests.support.team import configuration, written


def checked(folder: Path, chain: list[Any], **server: object) -> str:
    config = configuration()
    config["server"] = server
    config["tenants"]["team"]["chain"] = chain
    file = written(folder, json.dumps(config))
    return run_cli("check", file, folder=folder).stdout


@pytest.mark.bug("K18")
@pytest.mark.parametrize(
    ("chain", "workers", "refused"),
    [
        ([{"limits": {"concurrent": 5}}], 2, True),
        ([{"budget": {"max_tokens": 500}}], 2, True),
        ([{"limits": {"concurrent": 5}}], 1, False),
        (["retry"], 2, False),
    ],
)
def test_limits_that_each_worker_would_keep_for_itself_are_refused(
    tmp_path: Path, chain: list[Any], workers: int, refused: bool
) -> None:
    said = checked(tmp_path, chain, workers=workers)

    assert ("set stores.state to a Redis address" in said) is refused
    assert ("no mistakes" in said) is not refused
