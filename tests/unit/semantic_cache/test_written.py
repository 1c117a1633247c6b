"""An answer that is served again is not written again: its id and its time alone are new, and nothing else stands still."""

from itertools import count

import pytest

from gateway.middleware.semantic_cache.written import find_gaps

KEPT = b'["kept"]'


def write(request_id: str, created: int) -> bytes:
    return b'{"id":"chatcmpl-%b","created":%d,"text":"100 %%s","again":"%b"}' % (
        request_id.encode(),
        created,
        request_id.encode(),
    )


@pytest.mark.contract("W-CACHE-4")
@pytest.mark.parametrize("request_id", ["req_1", "a", "req_5", "-._"])
def test_each_request_gets_its_own_id_and_time(request_id: str) -> None:
    known = find_gaps(KEPT, 4, write)

    assert known is not None
    assert known.fill(request_id, 17) == write(request_id, 17)
    assert known.fill("other", 18) == write("other", 18)
    assert (known.answer, known.length) == (KEPT, 4)


@pytest.mark.contract("W-CACHE-4")
def test_an_answer_in_which_more_changes_is_written_each_time() -> None:
    numbers = count()

    def changing(request_id: str, created: int) -> bytes:
        return write(request_id, created) + b"%d" % next(numbers)

    assert find_gaps(KEPT, 4, changing) is None


def test_an_id_that_is_made_from_the_requests_is_not_frozen() -> None:
    assert find_gaps(KEPT, 4, lambda own, at: write(own, at) + own[::-1].encode()) is None


def test_a_large_answer_is_not_held_twice() -> None:
    assert find_gaps(KEPT, 4, lambda own, at: write(own, at) + b" " * 20_000) is None


def test_an_answer_without_gaps_is_what_it_is() -> None:
    known = find_gaps(KEPT, 4, lambda own, at: b"{}" if own and at else b"")

    assert known is not None
    assert known.fill("req_1", 1) == b"{}"
