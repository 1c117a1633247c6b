"""How the room for requests is shared among tenants."""

import pytest

from gateway.server.room import Room

pytestmark = pytest.mark.contract("G-19")


class Place:
    """A room of a size, filled by tenants as they come."""

    def __init__(self, size: int) -> None:
        self.room = Room()
        self.free = size
        self.held: dict[str, int] = {}

    def enter(self, tenant: str, *, is_shared: bool = True) -> bool:
        if not self.free or not self.room.enter(tenant, free=self.free, is_shared=is_shared):
            return False
        self.free -= 1
        self.held[tenant] = self.held.get(tenant, 0) + 1
        return True

    def leave(self, tenant: str) -> None:
        self.room.leave(tenant)
        self.free += 1
        self.held[tenant] -= 1

    def fill(self, *tenants: str, is_shared: bool = True) -> None:
        while sum(self.enter(tenant, is_shared=is_shared) for tenant in tenants):
            pass


def test_the_only_tenant_may_have_all_of_it() -> None:
    place = Place(100)
    place.fill("only", is_shared=False)

    assert place.held == {"only": 100}


@pytest.mark.parametrize("size", [1, 2, 9, 10, 90, 2000])
def test_one_of_several_leaves_some_places_to_a_newcomer(size: int) -> None:
    place = Place(size)
    place.fill("loud")

    assert place.held["loud"] >= size * 8 // 9
    assert place.enter("new") is (size > 8)


@pytest.mark.parametrize("tenants", [2, 3, 5])
def test_those_who_want_as_much_get_as_much(tenants: int) -> None:
    names = [f"t{number}" for number in range(tenants)]
    place = Place(1000)
    place.fill(*names)

    assert max(place.held.values()) - min(place.held.values()) <= 1
    assert sum(place.held.values()) >= 880


def test_a_newcomer_comes_to_its_share_as_others_finish() -> None:
    place = Place(900)
    place.fill("loud")
    for _ in range(900):
        place.leave("loud")
        place.fill("new", "loud")

    assert abs(place.held["loud"] - place.held["new"]) <= 2


def test_a_small_tenant_is_served_beside_many_loud_ones() -> None:
    place = Place(1000)
    place.fill(*(f"loud{number}" for number in range(20)))

    assert all(place.enter("small") for _ in range(5))


def test_who_has_left_holds_nothing() -> None:
    place = Place(10)
    assert place.enter("a")
    place.leave("a")

    assert place.room._held == {}
