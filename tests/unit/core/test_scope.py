"""Storage keys: none without a tenant, none that two tenants share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.scope import Scope, digest

NAMES = st.text(alphabet="abcAB01._-", min_size=1, max_size=8)


@pytest.mark.threat("T-16")
@pytest.mark.parametrize("tenant", ["", "a:b", "{a", "a}"])
def test_no_key_without_a_tenant(tenant: str) -> None:
    with pytest.raises(ValueError, match="tenant"):
        Scope(tenant)


@pytest.mark.threat("T-16")
@given(one=NAMES, other=NAMES, kind=NAMES, parts=st.lists(NAMES, max_size=3))
def test_two_tenants_share_no_key(one: str, other: str, kind: str, parts: list[str]) -> None:
    same = Scope(one).key(kind, *parts) == Scope(other).key(kind, *parts)

    assert same is (one == other)


def test_all_keys_of_a_tenant_stand_in_one_slot_of_a_cluster() -> None:
    keys = {Scope("acme").key("counters", part) for part in ("a", "b", "c")}

    assert {key[key.index("{") : key.index("}") + 1] for key in keys} == {"{acme}"}


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_a_digest_belongs_to_one_list_of_texts(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) is (one == other)
