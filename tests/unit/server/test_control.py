"""What a supervisor and its workers say to each other: files byte for byte, answers to the question that was asked."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.config.files import Files
from gateway.server.control import AT_FIRST, Answer, Link, Order, Orders, order_of

LOOPS = ("asyncio", "uvloop")
ODD = Path(os.fsdecode(b"/etc/g\xff\xe4/a.yaml"))


def files() -> Files:
    made = Files()
    made.listed = (ODD,)
    made.held = {ODD: bytes(range(256)) * 5000, Path("/run/secret"): b"s\n"}
    return made


@asynccontextmanager
async def worker(
    link: Link, carry_out: Callable[[Order], list[Answer]]
) -> AsyncGenerator[list[Order]]:
    """Play the worker's part; yields what it is told to begin with."""
    orders = Orders(os.dup(link.theirs.fileno()))
    await link.open()
    first = [await asyncio.to_thread(orders.first) for _ in range(2)]

    async def obey(order: Order, answer: Callable[[Answer], None]) -> None:
        for each in carry_out(order):
            answer(each)

    task = asyncio.get_running_loop().create_task(orders.follow(obey))
    try:
        yield first
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        link.close()


async def test_a_configuration_arrives_byte_for_byte() -> None:
    seen: list[Order] = []

    def carry_out(order: Order) -> list[Answer]:
        seen.append(order)
        return [Answer(order.do, order.generation, 7, (("a.yaml", 1, 2, "x", "wrong"),))]

    link = Link("0", order_of(files(), 1), order_of(files(), 6))
    async with worker(link, carry_out) as (start, now):
        assert (start.generation, now.generation, link.in_use) == (1, 6, 6)
        answer = await link.ask(order_of(files(), 7))
        assert answer is not None
        assert answer.mistakes == (("a.yaml", 1, 2, "x", "wrong"),)
        assert link.in_use == 7
    for order in (start, now, *seen):
        assert order.files.listed == (ODD,)
        assert order.files.held == files().held


async def test_a_late_answer_is_not_taken_for_the_next_one() -> None:
    def carry_out(order: Order) -> list[Answer]:
        return [Answer("prepare", 1, 1), Answer(order.do, order.generation, 3)]

    link = Link("0", AT_FIRST, AT_FIRST)
    async with worker(link, carry_out) as (_, now):
        assert now.do == "commit", "the same is not sent twice"
        answer = await link.ask(Order("commit", 3))
        assert answer is not None
        assert (answer.do, answer.generation) == ("commit", 3)


async def test_a_worker_that_is_gone_is_no_worker_that_refuses() -> None:
    link = Link("0", AT_FIRST, AT_FIRST)
    waiting = asyncio.get_running_loop().create_task(link.ask(Order("commit", 2)))
    await asyncio.sleep(0)
    await link.open()

    assert await waiting is None
    assert link.gone
    assert await link.ask(Order("commit", 3)) is None
    link.close()
