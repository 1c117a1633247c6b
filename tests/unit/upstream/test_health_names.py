"""Records of names that callers choose: one each, bounded, shown under the target's own name."""

import gc
from math import inf

import pytest

from gateway.core.probing import LocalPermits
from gateway.upstream.breaker import CLOSED, OPEN, BreakerRules
from gateway.upstream.concurrency import ConcurrencyRules
from gateway.upstream.health import HealthBook, TargetHealth
from gateway.upstream.names import MOST_NAMES, Names

RULES = BreakerRules(failures=1)


def flood(names: Names, whole: TargetHealth, many: int = MOST_NAMES) -> None:
    """Ask for many names that nobody asked for before."""
    for number in range(many):
        names.of(whole, f"flood-{number}")


def kept(names: Names) -> list[str]:
    return [each.served for each in names.records()]


def test_a_name_has_a_record_of_its_own_at_the_host_of_its_target() -> None:
    names, whole = Names(), TargetHealth("up", "*", rules=RULES)
    one, other = names.of(whole, "b-1"), names.of(whole, "b-2")
    one.fail(one.breaker.epoch, 1.0)

    assert names.of(whole, "b-1") is one
    assert (one.state, other.state, whole.state) == (OPEN, CLOSED, CLOSED)
    assert one.host is other.host is whole.host
    assert one.name != other.name
    one.host.fail(0, 1.0)
    assert other.state == OPEN


def test_names_are_bounded_and_the_least_recently_used_is_forgotten() -> None:
    names, whole = Names(), TargetHealth("up", "*")
    flood(names, whole)
    names.of(whole, "flood-0")
    names.of(whole, "new")

    assert MOST_NAMES == 1024
    assert len(kept(names)) == MOST_NAMES
    assert "flood-0" in kept(names)
    assert "flood-1" not in kept(names)
    assert kept(names)[-1] == "new"


def test_a_name_with_calls_under_way_or_waiting_is_never_forgotten() -> None:
    names, whole = Names(), TargetHealth("up", "*")
    busy = names.of(whole, "busy")
    busy.places.taken = 1
    flood(names, whole, 3 * MOST_NAMES)

    assert names.of(whole, "busy") is busy
    assert len(kept(names)) == MOST_NAMES
    busy.places.taken = 0
    flood(names, whole)
    assert "busy" not in kept(names)


def test_where_every_name_is_in_use_others_share_the_target_s_record() -> None:
    names, whole = Names(), TargetHealth("up", "*")
    flood(names, whole)
    for each in names.records():
        each.places.taken = 1

    assert names.of(whole, "one more") is whole
    assert len(kept(names)) == MOST_NAMES


def test_a_name_of_absurd_length_is_not_kept() -> None:
    names, whole = Names(), TargetHealth("up", "*")

    assert names.of(whole, "x" * 10_000) is whole
    assert kept(names) == []


def test_a_configured_model_keeps_its_own_record_whoever_asks_for_it() -> None:
    book = HealthBook()
    names, whole, own = book.names("up"), book.target("up", "*"), book.target("up", "b-1")

    assert names.of(whole, "b-1") is own
    assert names.of(whole, "b-2") is not own
    assert kept(names) == ["b-2"]


def test_names_are_found_again_by_the_identity_of_their_provider() -> None:
    book = HealthBook()
    names = book.names("up", "http://a")

    assert book.names("up", "http://a") is names
    others = [
        book.names("other", "http://a"),
        book.names("up", "http://b"),
        book.names("up", "http://a", rules=RULES),
        book.names("up", "http://a", bounds=ConcurrencyRules(most=3)),
        book.names("up", "http://a", host=("h",)),
    ]
    assert names not in others


def test_names_that_no_snapshot_uses_are_forgotten() -> None:
    book = HealthBook()
    names, whole = book.names("up"), book.target("up", "*")
    names.of(whole, "b-1")
    assert [each.get("served") for each in book.describe()["targets"]] == [None, "b-1"]
    del names
    gc.collect()

    assert [each.get("served") for each in book.describe()["targets"]] == [None]
    assert not whole.parts


def test_all_names_are_shown_as_one_the_worst_state_and_the_least_limit() -> None:
    seen: list[tuple[str, str, int, float]] = []

    def watch(provider: str, model: str, state: int, limit: float) -> None:
        seen.append((provider, model, state, limit))

    book = HealthBook(watch)
    names, whole = book.names("up"), book.target("up", "*", rules=RULES)
    one, other = names.of(whole, "b-1"), names.of(whole, "b-2")
    one.show()
    one.fail(one.breaker.epoch, 1.0)
    other.places.taken = 10
    other.places.shrink(1.0, 1.0)
    assert seen == [("up", "*", CLOSED, inf), ("up", "*", OPEN, inf), ("up", "*", OPEN, 8)]

    flood(names, whole)
    assert seen[-1] == ("up", "*", CLOSED, 8), "calls of the other are under way"
    other.places.taken = 0
    flood(names, whole, MOST_NAMES + 1)
    assert seen[-1] == ("up", "*", CLOSED, inf)
    count = len(seen)
    whole.host.fail(whole.host.breaker.epoch, 1.0)
    assert seen[count:] == [("up", "*", OPEN, inf)], "told once, not for every name"


@pytest.mark.bug("K12")
def test_names_ask_for_probes_where_all_others_do() -> None:
    book, permits = HealthBook(), LocalPermits()
    names, whole = book.names("up"), book.target("up", "*")
    one = names.of(whole, "b-1")
    book.share(permits)

    assert one.permits is permits
    assert names.of(whole, "b-2").permits is permits


def test_the_turn_of_credentials_goes_on_from_name_to_name() -> None:
    names, whole = Names(), TargetHealth("up", "*")

    assert [names.of(whole, name).turn for name in "abc"] == [0, 1, 2]
