"""Addresses are cut the same way by every version of the interpreter."""

import pytest

from gateway.config.references import MaskedUrl
from gateway.core import urls


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("redis://u:p%40@h:1/2?x=y#z", ("redis", "u:p%40", "h:1", "/2", "x=y")),
        ("postgres://u@a,[::1]:6,[::2]/d", ("postgres", "u", "a,[::1]:6,[::2]", "/d", "")),
        ("postgres://u@/d?host=/run/x", ("postgres", "u", "", "/d", "host=/run/x")),
        ("sqlite:/var/x.db", ("sqlite", "", "", "/var/x.db", "")),
        ("memory", ("", "", "", "memory", "")),
        ("", ("", "", "", "", "")),
    ],
)
def test_every_text_is_cut(text: str, parts: tuple[str, ...]) -> None:
    assert urls.split(text) == parts


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://u:p%40@h:1/2?password=x", "redis://h:1/2"),
        ("postgres://u:secret@a,[::1]:6/d", "postgres://a,[::1]:6/d"),
        ("sqlite:/var/x.db?mode=ro", "sqlite:/var/x.db"),
        ("sqlite:///var/x.db", "sqlite:///var/x.db"),
        ("memory", "memory"),
    ],
)
def test_what_is_shown_of_an_address_holds_no_login(text: str, shown: str) -> None:
    assert str(MaskedUrl(text)) == shown


def test_another_login_is_told_from_another_address() -> None:
    one = MaskedUrl("postgres://u:a@h,[::1]/d")

    assert one.password == "a"
    assert one.differs_in_login(MaskedUrl("postgres://u:b@h,[::1]/d"))
    assert not one.differs_in_login(MaskedUrl("postgres://u:b@h,[::2]/d"))
