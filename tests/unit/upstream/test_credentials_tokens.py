"""A token is fetched by one call at once, ahead of its end, and nobody waits longer than for his own request."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from gateway.core import clock
from gateway.core.errors import UpstreamError
from gateway.upstream.credentials.tokens import Token, TokenSigner
from gateway.upstream.spec import Headers
from tests.support.scripted_upstream import until

LASTING = 3600.0


class Source:
    """A source of tokens t1, t2, ... that can be held up and can fail."""

    def __init__(self, *lasts_s: float, failure: UpstreamError | None = None) -> None:
        self.fetches = 0
        self.failure = failure
        self.open = threading.Event()
        self.open.set()
        self._lasts_s = lasts_s or (LASTING,)

    def __call__(self, loop: asyncio.AbstractEventLoop, deadline: float) -> Token:
        self.fetches += 1
        number = self.fetches
        self.open.wait(5)
        if self.failure is not None:
            raise self.failure
        lasts_s = self._lasts_s[min(number, len(self._lasts_s)) - 1]
        return Token(f"t{number}", clock.monotonic() + lasts_s)

    @contextmanager
    def held(self) -> Generator[None]:
        self.open.clear()
        try:
            yield
        finally:
            self.open.set()


async def ask(signer: TokenSigner, within_s: float = 5.0) -> Headers:
    return await signer.headers(b"POST", b"/", (), b"", clock.monotonic() + within_s)


def bearer(text: str) -> Headers:
    return ((b"authorization", b"Bearer " + text.encode()),)


async def test_many_requests_share_one_fetch() -> None:
    source = Source()
    signer = TokenSigner(source)
    with source.held():
        asked = [asyncio.create_task(ask(signer)) for _ in range(50)]
        await until(lambda: source.fetches)

    assert {bearer("t1")} == {tuple(each) for each in await asyncio.gather(*asked)}
    assert bearer("t1") == await ask(signer)
    assert source.fetches == 1


async def test_the_loop_goes_on_while_a_token_is_fetched() -> None:
    source = Source()
    signer = TokenSigner(source)
    with source.held():
        asked = asyncio.create_task(ask(signer))
        turns = 0
        while turns < 100:
            await asyncio.sleep(0)
            turns += 1
        assert not asked.done()

    assert bearer("t1") == await asked


async def test_a_token_near_its_end_is_used_while_the_next_one_comes() -> None:
    source = Source(0.0, LASTING)
    signer = TokenSigner(source)
    signer._token = Token("old", clock.monotonic() + 100)
    signer._headers = bearer("old")
    with source.held():
        assert bearer("old") == await ask(signer)
        assert bearer("old") == await ask(signer)

    await until(lambda: source.fetches == 1)


async def test_a_token_that_has_ended_is_not_sent() -> None:
    source = Source(-1.0, LASTING)
    signer = TokenSigner(source)
    await ask(signer)

    assert bearer("t2") == await ask(signer)


async def test_a_request_waits_no_longer_than_its_deadline() -> None:
    source = Source()
    signer = TokenSigner(source)
    with source.held():
        with pytest.raises(UpstreamError) as late:
            await ask(signer, within_s=0.02)
        assert (late.value.code, late.value.sent) == ("deadline_exceeded", False)

    assert bearer("t1") == await ask(signer)
    assert source.fetches == 1


async def test_who_leaves_takes_the_token_from_nobody() -> None:
    source = Source()
    signer = TokenSigner(source)
    with source.held():
        leaving, staying = (asyncio.create_task(ask(signer)) for _ in range(2))
        await until(lambda: source.fetches)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving

    assert bearer("t1") == await staying
    assert source.fetches == 1


async def test_a_failure_is_told_to_each_and_not_tried_again_at_once() -> None:
    refused = UpstreamError("upstream_auth", phase="connect", sent=False, detail="invalid_grant")
    source = Source(failure=refused)
    signer = TokenSigner(source)

    errors: list[UpstreamError] = []
    for _ in range(3):
        with pytest.raises(UpstreamError) as failed:
            await ask(signer)
        errors.append(failed.value)

    assert source.fetches == 1
    assert {("upstream_auth", "credential", False)} == {(e.code, e.phase, e.sent) for e in errors}
    assert all(error.retry_after_s is not None for error in errors)
    assert len(set(map(id, errors))) == 3


async def test_a_failure_does_not_end_a_token_that_still_holds() -> None:
    source = Source(failure=UpstreamError("upstream_unavailable", phase="connect", sent=False))
    signer = TokenSigner(source)
    signer._token = Token("old", clock.monotonic() + 100)
    signer._headers = bearer("old")
    for _ in range(3):
        assert bearer("old") == await ask(signer)
        await until(lambda: signer._running is None)

    assert source.fetches == 1


async def test_a_refused_token_is_replaced_for_the_next_request_but_not_over_and_over() -> None:
    source = Source()
    signer, patient = TokenSigner(source, trusted_s=0.0), TokenSigner(Source())
    await ask(signer)
    before = await ask(patient)
    for each in (signer, patient):
        each.refused(403)
        assert each._token is not None
        each.refused(401)

    assert bearer("t2") == await ask(signer)
    assert before == await ask(patient)
