"""Every recorded chat request that its provider took is read and written again without loss (K33, K34)."""

import pytest

from gateway.core import codec
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts
from tests.support.folder import folder
from tests.support.recordings import Recording, load
from tests.support.shared import absent

RECORDED = [
    each
    for each in load()
    if each.endpoint == "chat"
    and each.has_request
    and each.status < 400
    and "functions" not in each.request  # written as tools: another form of the same
]


def name(recording: Recording) -> str:
    return recording.id


def test_there_are_recordings() -> None:
    if folder() is None:
        absent("../shared with the recordings of providers")
    assert RECORDED


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("recording", RECORDED, ids=name)
def test_what_a_provider_took_is_what_it_would_get(recording: Recording) -> None:
    """Read a request that was accepted, fit and write it, and read it again: nothing is lost or changed."""
    side, facts, notes = ChatSide(), Facts(recording.provider, recording.model), Notes()
    prompt = side.read_request(codec.split(codec.encode(recording.request)), notes)

    fitted = fit(prompt, side.grammar(facts), notes)
    again = side.read_request(side.write_request(fitted, facts, notes), notes)

    assert notes.warnings == []
    changed = {"stream": prompt.stream, "include_usage": prompt.include_usage}
    assert codec.replace(again, **changed) == prompt
