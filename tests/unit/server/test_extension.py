"""The caller's wishes: a closed list, never forwarded."""

from typing import Any, cast

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.server.exchange import Exchange
from gateway.server.extension import Extension, read_deadline, read_extension


class Head:
    """The headers of an exchange that has no more than that."""

    def __init__(self, **headers: str) -> None:
        self.received_at = 100.0
        self._headers = {
            name.replace("_", "-").encode(): value.encode() for name, value in headers.items()
        }

    def header(self, name: bytes) -> bytes | None:
        """Return a header."""
        return self._headers.get(name)


def read(wishes: Any, **headers: str) -> tuple[Extension, codec.Fields]:
    fields = codec.split(codec.encode({"model": "m", **wishes}))
    return read_extension(cast("Exchange", Head(**headers)), fields), fields


def test_wishes_are_read_from_the_body_and_taken_out_of_it() -> None:
    wish, fields = read({"gateway": {"session_id": "s", "tags": ["a"], "cache": {"mode": "off"}}})

    assert (wish.session_id, wish.tags, wish.cache and wish.cache.mode) == ("s", ("a",), "off")
    assert list(fields) == ["model"]


@pytest.mark.parametrize(
    "nothing", [{}, {"gateway": None}, {"gateway": {}}, {"gateway": {"cache": None, "tags": None}}]
)
def test_null_says_no_more_than_absent(nothing: dict[str, Any]) -> None:
    wish, fields = read(nothing)

    assert [wish.session_id, wish.user, wish.tags, wish.cache] == [None] * 4
    assert "gateway" not in fields


def test_a_header_says_the_same_for_clients_that_cannot_change_the_body() -> None:
    wish, _ = read({}, x_gateway_session="s", x_gateway_tags="a, b", x_gateway_cache="refresh")

    assert (wish.session_id, wish.tags) == ("s", ("a", "b"))
    assert wish.cache is not None
    assert wish.cache.mode == "refresh"


@pytest.mark.threat("T-4")
@pytest.mark.parametrize(
    "wishes",
    [
        {"api_base": "http://evil"},
        {"session_id": 7},
        {"session_id": "a\nb"},
        {"session_id": "x" * 300},
        {"tags": ["x"] * 40},
        {"cache": {"mode": "always"}},
        {"cache": {"store": "x"}},
        "text",
        [],
    ],
)
def test_what_is_not_on_the_list_is_refused(wishes: Any) -> None:
    with pytest.raises(InputError) as caught:
        read({"gateway": wishes})

    assert caught.value.code == "invalid_request"
    assert (caught.value.param or "").startswith("gateway")


@pytest.mark.parametrize(("value", "deadline"), [(None, 110.0), ("500", 100.5), ("90000", 110.0)])
def test_the_time_for_a_request_can_only_be_shortened(value: str | None, deadline: float) -> None:
    head = Head(x_gateway_timeout_ms=value) if value is not None else Head()

    assert read_deadline(cast("Exchange", head), 10.0) == deadline


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "soon", ""])
def test_a_time_that_is_no_time_is_refused(value: str) -> None:
    with pytest.raises(InputError):
        read_deadline(cast("Exchange", Head(x_gateway_timeout_ms=value)), 10.0)
