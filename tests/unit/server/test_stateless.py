"""What a request of Responses would have stored is told in the words of the table."""

from gateway.core import codec
from gateway.core.call import Run
from gateway.dialects.loss_table import LOSSES
from gateway.server.stateless import require_stateless


def test_an_answer_that_is_not_stored_is_told_of_in_the_words_of_the_table() -> None:
    run = Run("req_1", "responses", 0.0, 1.0)
    fields = {"store": codec.raw(True)}
    require_stateless(fields, run)

    assert list(run.warnings) == [f"store: {LOSSES['store_off'].words}"]
    assert codec.value_of(fields["store"]) is False
