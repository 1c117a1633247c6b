import re

from gateway.config.keys import hash_key, last_four, new_key
from gateway.config.references import Secret
from gateway.config.secret_rules import check_door_secret


def test_a_new_key_is_long_random_and_safe_in_urls_and_headers() -> None:
    keys = {new_key() for _ in range(200)}

    assert len(keys) == 200
    assert all(re.fullmatch(r"gw-[A-Za-z0-9_-]{43}", key) for key in keys)
    for key in keys:
        assert check_door_secret(Secret(key)).reveal() == key


def test_a_hash_is_the_sha_256_of_the_key() -> None:
    assert hash_key("abc") == (
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_a_list_shows_four_characters() -> None:
    assert last_four("gw-abcdefgh") == "efgh"
