"""`gateway keys`: what a key made, narrowed or revoked at run time is worth, and how soon."""

from pathlib import Path

import pytest

from tests.support.gateway import run_cli, run_gateway, wait_for
from tests.support.team import CANARY, ask, configuration, written

NEW_S = 5.0


def test_keys_count_in_a_running_gateway_within_seconds(tmp_path: Path) -> None:
    config = configuration(f"sqlite:{tmp_path}/keys.db")
    with run_gateway(config, tmp_path) as gateway:
        place = ("--config", str(tmp_path / "gateway.yaml"))
        made = run_cli("keys", "new", "--tenant", "other", "--id", "ci", *place, folder=tmp_path)
        key = made.stdout.strip()
        wait_for(lambda: ask(gateway, key).status_code == 200, NEW_S, "the new key to work")

        listed = run_cli("keys", "list", *place, folder=tmp_path).stdout
        assert "other\tci" in listed
        assert "in force" in listed
        assert key not in listed
        assert key not in gateway.process.out + gateway.process.err

        run_cli("keys", "revoke", "ci", "--tenant", "other", *place, folder=tmp_path)
        wait_for(lambda: ask(gateway, key).status_code == 401, NEW_S, "the revoked key to fail")
        assert "revoked" in run_cli("keys", "list", *place, folder=tmp_path).stdout


def test_a_key_may_be_narrowed_to_models_and_time(tmp_path: Path) -> None:
    config = configuration(f"sqlite:{tmp_path}/keys.db")
    place = ("--config", written(tmp_path, config))

    def new(*options: str) -> str:
        done = run_cli("keys", "new", "--tenant", "team", *options, *place, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    far_alone = new("--id", "a", "--models", "far")
    over = new("--id", "b", "--expires", "2020-01-01")
    lasting = new("--id", "c", "--expires", "2999-01-01")
    with run_gateway(config, tmp_path) as gateway:
        assert ask(gateway, far_alone).status_code == 404
        assert ask(gateway, over).status_code == 401
        assert ask(gateway, lasting).status_code == 200


def test_a_hash_in_the_configuration_stands_for_its_key(tmp_path: Path) -> None:
    hashed = run_cli("keys", "hash", folder=tmp_path, given=f"{CANARY}\n").stdout.strip()
    config = configuration()
    config["tenants"]["other"]["keys"] = [{"id": "by-hash", "hash": hashed}]

    with run_gateway(config, tmp_path) as gateway:
        assert ask(gateway, CANARY).status_code == 200
        assert ask(gateway, hashed).status_code == 401


@pytest.mark.parametrize(
    "arguments",
    [
        ("new", "--tenant", "nobody"),
        ("new", "--tenant", "team", "--expires", "someday"),
        ("revoke", "nothing", "--tenant", "team"),
        ("hash",),
    ],
)
def test_mistakes_with_keys_are_told(arguments: tuple[str, ...], tmp_path: Path) -> None:
    config = configuration(f"sqlite:{tmp_path}/keys.db")
    place = () if arguments == ("hash",) else ("--config", written(tmp_path, config))

    done = run_cli("keys", *arguments, *place, folder=tmp_path)

    assert done.returncode == 1
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


def test_a_key_is_made_once_under_an_id(tmp_path: Path) -> None:
    place = ("--config", written(tmp_path, configuration(f"sqlite:{tmp_path}/keys.db")))
    same = ("keys", "new", "--tenant", "team", "--id", "same", *place)

    assert run_cli(*same, folder=tmp_path).returncode == 0
    done = run_cli(*same, folder=tmp_path)

    assert done.returncode == 1
    assert "same" in done.stderr
    assert not done.stdout
