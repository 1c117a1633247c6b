"""What lists of models open, for tenants and for keys."""

import pytest

from gateway.chain.access import grant, narrow, opens
from gateway.chain.plan import Model, Principal
from gateway.chain.snapshot import resolve
from gateway.core.errors import InputError
from tests.support.plans import target


def model(name: str) -> Model:
    prefix, _, suffix = name.partition("*")
    return Model(name, (), "weighted", None, None, None, prefix, suffix)


MODELS = {
    name: model(name)
    for name in ("fast", "fast-eu", "slow", "claude-*", "openai/*", "openai/gpt-*")
}


def tenant(*names: str) -> Principal:
    return grant("acme", names, MODELS, {})


def may(principal: Principal, name: str) -> str | None:
    try:
        return resolve(principal, name).name
    except InputError:
        return None


@pytest.mark.bug("K30")
@pytest.mark.parametrize(
    ("listed", "asked", "found"),
    [
        (("fast",), "fast", "fast"),
        (("fast",), "fast-eu", None),
        (("fast*",), "fast-eu", "fast-eu"),
        (("fast*",), "fast", None),
        (("fast",), "FAST", None),
        (("fast",), " fast", None),
        (("claude-*",), "claude-x", "claude-*"),
        (("claude-*",), "claude-", None),
        (("claude-x",), "claude-x", "claude-*"),
        (("claude-x",), "claude-y", None),
        (("claude-x*",), "claude-xy", "claude-*"),
        (("claude-x*",), "claude-yx", None),
        (("*",), "slow", "slow"),
        (("*",), "claude-x", "claude-*"),
        (("*",), "unknown", None),
        (("openai/*",), "openai/o1", "openai/*"),
        (("openai/*",), "openai/gpt-4o", "openai/gpt-*"),
        (("openai/gpt-*",), "openai/o1", None),
        ((), "fast", None),
    ],
)
def test_a_list_opens_what_it_names_and_nothing_else(
    listed: tuple[str, ...], asked: str, found: str | None
) -> None:
    assert may(tenant(*listed), asked) == found


@pytest.mark.threat("T-9")
@pytest.mark.parametrize(
    ("listed", "asked", "found"),
    [
        (None, "fast", "fast"),
        (("fast",), "fast", "fast"),
        (("slow",), "slow", None),
        (("claude-x",), "claude-x", "claude-*"),
        (("claude-x*",), "claude-y", None),
        (("*",), "slow", None),
        (("*",), "claude-x", "claude-*"),
    ],
)
def test_a_key_is_never_wider_than_its_tenant(
    listed: tuple[str, ...] | None, asked: str, found: str | None
) -> None:
    key = narrow(tenant("fast", "claude-*"), "k", listed, None)

    assert may(key, asked) == found


def test_a_key_with_a_list_names_no_providers() -> None:
    own = target()
    wide = grant("acme", ["fast"], MODELS, {"own": own})

    assert set(narrow(wide, "k", None, None).accounts) == {"own"}
    assert not narrow(wide, "k", ["fast"], None).accounts


def test_unknown_and_forbidden_look_the_same() -> None:
    with pytest.raises(InputError) as unknown:
        resolve(tenant("fast"), "nothing")
    with pytest.raises(InputError) as forbidden:
        resolve(tenant("fast"), "slow")

    assert unknown.value.code == forbidden.value.code == "model_not_found"
    assert unknown.value.message == forbidden.value.message


@pytest.mark.parametrize(
    ("name", "listed", "does"),
    [
        ("fast", ("fast",), True),
        ("fast", ("*",), True),
        ("fast*", ("fast-eu",), True),
        ("claude-x", ("claude-*",), True),
        ("openai/gpt-4*", ("openai/*",), True),
        ("openai/*", ("openai/gpt-4*",), True),
        ("slow", ("fast",), False),
        ("fats", ("*",), False),
        ("", ("*",), False),
        ("claude-y", ("claude-x",), False),
        ("mistral-*", ("*",), False),
        ("fast", (), False),
    ],
)
def test_it_is_known_before_whether_a_name_opens_anything(
    name: str, listed: tuple[str, ...], does: bool
) -> None:
    assert opens(name, listed, MODELS) is does
