"""What each kind of route does: generate, relay, pass objects on, list models."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import cast

from gateway.chain.plan import Principal
from gateway.chain.snapshot import resolve
from gateway.core import clock
from gateway.core.call import Call, Run
from gateway.core.endpoint import ANSWERED
from gateway.core.reply import Reply, Stream, Whole
from gateway.dialects.base import Dialect
from gateway.dialects.messages.counting import require_messages
from gateway.engine.counting import count, is_counted
from gateway.engine.outgoing import JsonOriginal
from gateway.engine.run import Engine
from gateway.middleware.base import Proceed
from gateway.providers.edit import asks_usage
from gateway.server.body import read_flag, read_json, read_model
from gateway.server.exchange import Exchange
from gateway.server.extension import NO_WISH, WISHES, note_wish, read_deadline, read_extension
from gateway.server.heads import JSON, STREAM, reply_headers
from gateway.server.models import get_for_messages, get_model, list_for_messages, list_models
from gateway.server.objects import Objects
from gateway.server.passing import passed_headers
from gateway.server.relay import LARGE_BYTES, Pinger, relay_stream, write_large
from gateway.server.routes import Match
from gateway.server.stateless import require_stateless

_Answer = Callable[[Exchange, Run, Principal, Match], Awaitable[None]]


class Kinds:
    """The handlers of all kinds of routes; made once per process.

    `body_limit` and `upload_limit` are bytes, times are seconds.
    """

    def __init__(
        self,
        engine: Engine,
        dialects: Mapping[str, Dialect],
        *,
        body_limit: int,
        upload_limit: int,
        request_timeout_s: float,
        ping_interval_s: float,
    ) -> None:
        self.dialects = dialects
        self._engine = engine
        self._body_limit = body_limit
        self._request_timeout_s = request_timeout_s
        self._ping_interval_s = ping_interval_s
        self._loaded_at = int(clock.wall())
        self._objects = Objects(engine, body_limit=body_limit, upload_limit=upload_limit)
        self._by_kind: dict[str, _Answer] = {
            "generate": self._generate,
            "relay": self._relay,
            "object": self._object,
            "models": self._models,
            "model": self._model,
            "count": self._count,
        }

    def answer(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> Awaitable[None]:
        """Answer an exchange whose caller and route are known."""
        run.path = match.shown
        run.may_call = principal.may_call
        return self._by_kind[match.route.kind](exchange, run, principal, match)

    async def _generate(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> None:
        fields = await read_json(exchange, self._body_limit)
        wish = NO_WISH
        if "gateway" in fields or exchange.sent_any(WISHES):
            wish = read_extension(exchange, fields)
            note_wish(run, wish)
            run.deadline = read_deadline(exchange, self._request_timeout_s)
        run.header = exchange.header
        run.asked = asked = match.model or read_model(fields)
        if "stream" in fields and run.endpoint in ANSWERED:
            run.stream = read_flag(fields, "stream")
        if run.endpoint == "messages":
            run.passed = passed_headers(exchange)
        elif run.endpoint == "responses":
            require_stateless(fields, run)
        model = principal.models.get(asked) or resolve(principal, asked)
        run.model = model.name
        call = Call(run, model, JsonOriginal(match.path, fields, watched=True))
        chain = principal.chain if wish is NO_WISH else principal.chain_with(wish.use)
        plan = chain.plan(model)
        plan.begin(run)
        if run.stream:
            await self._stream(exchange, run, self._streamed(plan.handle, call))
            return
        reply = await plan.handle(call)
        if isinstance(reply, Whole) and len(reply.body) <= LARGE_BYTES:
            _write_whole(exchange, run, reply)
        else:
            await write_reply(exchange, run, reply, None)

    async def _streamed(self, handle: Proceed, call: Call) -> Reply:
        """Return the answer to a caller who asked for a stream: one in one piece is made a stream again."""
        reply = await handle(call)
        if not isinstance(reply, Whole):
            return reply
        wants_usage = asks_usage((call.original.fields or {}).get("stream_options"))
        events = _dialect(call.run).synthesise(call.run.endpoint, reply.body, wants_usage)
        return Whole(reply.status, STREAM, events)

    async def _stream(self, exchange: Exchange, run: Run, work: Awaitable[Reply]) -> None:
        headers = partial(reply_headers, run, STREAM)
        pinger = Pinger(exchange, headers, _dialect(run).ping, self._ping_interval_s)
        try:
            await write_reply(exchange, run, await work, pinger)
        finally:
            pinger.stop()

    async def _count(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> None:
        """Count a prompt's tokens: by the first target that can, else by its bytes."""
        fields = await read_json(exchange, self._body_limit)
        note_wish(run, read_extension(exchange, fields))
        run.deadline = read_deadline(exchange, self._request_timeout_s)
        run.asked = match.model or read_model(fields)
        run.passed = passed_headers(exchange)
        require_messages(fields)
        model = resolve(principal, run.asked)
        run.model = model.name
        call = Call(run, model, JsonOriginal(match.path, fields, watched=False))
        if is_counted(model):
            await principal.chain.check(call)
        await write_reply(exchange, run, await count(self._engine, call), None)

    async def _relay(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> None:
        run.deadline = read_deadline(exchange, self._request_timeout_s)
        reply = await self._objects.relay(exchange, run, principal, match)
        await write_reply(exchange, run, reply, None)

    async def _object(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> None:
        run.deadline = read_deadline(exchange, self._request_timeout_s)
        reply = await self._objects.pass_on(exchange, run, principal, match)
        await write_reply(exchange, run, reply, None)

    async def _models(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> None:
        if exchange.header(b"x-gateway-provider") is not None:
            await self._object(exchange, run, principal, match)
            return
        behind = {name: p.model for name, p in await self._engine.listing.names(principal)}
        if exchange.header(b"anthropic-version") is None:
            body = list_models(principal, behind, self._loaded_at)
        else:
            body = list_for_messages(principal, behind, self._loaded_at, exchange.query)
        await write_reply(exchange, run, Whole(200, JSON, body), None)

    async def _model(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> None:
        gets = get_model if exchange.header(b"anthropic-version") is None else get_for_messages
        body = gets(principal, match.model, self._loaded_at)
        await write_reply(exchange, run, Whole(200, JSON, body), None)


def _dialect(run: Run) -> Dialect:
    return cast("Dialect", run.dialect)


def _write_whole(exchange: Exchange, run: Run, reply: Whole) -> None:
    run.status = reply.status
    exchange.give(reply.status, reply_headers(run, reply.headers), reply.body)


async def write_reply(exchange: Exchange, run: Run, reply: Reply, pinger: Pinger | None) -> None:
    """Write a reply to its end; a stream's connection is given back on every ending."""
    if isinstance(reply, Whole):
        if pinger is not None:
            pinger.stop()  # a large body goes out in pieces that are no whole events
        run.status = reply.status
        if not exchange.started:
            exchange.start(reply.status, reply_headers(run, reply.headers), length=len(reply.body))
        body = reply.body
        exchange.end(body if len(body) <= LARGE_BYTES else await write_large(exchange, body, run))
        return
    await _write_stream(exchange, run, reply, pinger)


async def _write_stream(
    exchange: Exchange, run: Run, stream: Stream, pinger: Pinger | None
) -> None:
    run.status = stream.status
    try:
        if not exchange.started:
            exchange.start(stream.status, reply_headers(run, stream.headers), length=stream.length)
        await relay_stream(exchange, stream, pinger, run)
        run.ended_at = clock.monotonic()
    finally:
        await stream.close()
