"""Targets with a star: what is known of them goes by the name that the provider is asked for."""

import pytest

from gateway.chain.plan import Model
from tests.support.plans import model, target


def wide(served: str, name: str = "b-*") -> Model:
    return model(name, [target(served), target("plain", name="other")])


@pytest.mark.bug("K12")
@pytest.mark.parametrize(
    ("name", "served", "asked", "known"),
    [
        ("b-*", "*", "b-1", "b-1"),
        ("up/*", "*", "up/b-1", "b-1"),
        ("b-*", "vendor/*", "b-1", "vendor/1"),
    ],
)
def test_what_is_known_goes_by_the_served_name(
    name: str, served: str, asked: str, known: str
) -> None:
    plan = wide(served, name)
    first, second = plan.named(asked).targets

    assert plan.is_wide
    assert (first.health.served, first.model, first.label) == (
        known,
        served,
        f"up/{served}".encode(),
    )
    assert first.health is plan.named(asked).targets[0].health
    assert first.health is not plan.targets[0].health
    assert second is plan.targets[1], "no star, nothing to look up"


@pytest.mark.bug("K12")
def test_a_name_that_the_configuration_gives_has_a_record_of_its_own() -> None:
    plan = wide("*")
    named = plan.at("b-1")

    assert [each.model for each in named.targets] == ["b-1", "plain"]
    assert named.targets[0].health is not plan.targets[0].health
    assert named.targets[1].health is plan.targets[1].health
    assert not named.is_wide


def test_a_model_without_a_star_is_taken_as_it_is() -> None:
    assert not model("m", [target("m-upstream")]).is_wide
