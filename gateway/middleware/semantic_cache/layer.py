"""The semantic cache: a middleware that answers again what was answered before (W-CACHE-1 to 18).

It stands around the model call; what it serves calls no inner layer, but guardrails inside judge it first (X-2).
"""

from collections.abc import Sequence
from functools import partial

from gateway.core import clock, codec
from gateway.core.answer import Answer, events_of
from gateway.core.caching import Entry, Pool, Selector
from gateway.core.call import Call
from gateway.core.errors import GatewayError, InputError, PolicyError
from gateway.core.ids import new_entry_id
from gateway.core.reply import Reply, Whole
from gateway.middleware.base import (
    Build,
    Guard,
    HitGuard,
    Middleware,
    OptionError,
    Proceed,
)
from gateway.middleware.semantic_cache import forms, stored
from gateway.middleware.semantic_cache.admission import Admission
from gateway.middleware.semantic_cache.embedding import Embedder
from gateway.middleware.semantic_cache.fingerprint import TRANSPORT, Ask, exact_of
from gateway.middleware.semantic_cache.flights import Flight, Flights, Told
from gateway.middleware.semantic_cache.following import Followed, Kept
from gateway.middleware.semantic_cache.keeper import Down
from gateway.middleware.semantic_cache.known import Reading, Readings
from gateway.middleware.semantic_cache.learning import Learning, Prompt
from gateway.middleware.semantic_cache.lookup import Hit, Lookup, Missed, Step
from gateway.middleware.semantic_cache.options import SemanticCacheOptions, check
from gateway.middleware.semantic_cache.replay import neutral
from gateway.middleware.semantic_cache.saving import Savings, length_of
from gateway.middleware.semantic_cache.scope import Scoping
from gateway.middleware.semantic_cache.verify import Verifier
from gateway.middleware.semantic_cache.wish import Wish, read_wish, usual

_OK = 200


class _Asked:
    """One request at the cache, on its way to an answer."""

    __slots__ = ("ask", "call", "missed", "pool", "proceed", "reading", "wish")

    def __init__(
        self, call: Call, proceed: Proceed, reading: Reading, pool: Pool, wish: Wish
    ) -> None:
        self.call = call
        self.proceed = proceed
        self.reading = reading
        self.ask = reading.ask
        self.pool = pool
        self.wish = wish
        self.missed = Missed("cold")


class SemanticCache(Middleware):
    """One cache of a chain."""

    options = SemanticCacheOptions
    shadows = True
    reserved = frozenset(SemanticCacheOptions.model_fields) - {"ttl_s", "max_entry_bytes"}
    summary = "Answers equal and similar questions from what was answered before."

    def __init__(self, options: SemanticCacheOptions, build: Build) -> None:
        super().__init__(options, build)
        check(options)
        store = build.ports.cache
        if store is None:
            message = "there is no store for answers (R-8): write stores.state"
            raise OptionError(message)
        self._options = options
        self._store = store
        self._scoping = Scoping(options)
        self._admission = Admission(options)
        self._readings = Readings(self._admission.bars)
        self._savings = Savings(build)
        embedder = Embedder(options, build) if options.semantic else None
        verifier = Verifier(options, build)
        self._lookup = Lookup(options, store, embedder, verifier, self._savings.mismatched)
        self._learning: Learning | None = None
        if embedder is not None and options.max_wrong_hit_rate is not None:
            asking = self._lookup.ask_store
            self._learning = Learning(options, build, embedder, store, asking, verifier.trusts)
            self._lookup.decide = self._learning.decide
            self._lookup.refused = self._learning.wrong
        self._flights = Flights()
        self._renewing: set[tuple[str, str]] = set()
        self._usual = usual(options.ttl_s)
        self._spawn = build.ports.spawn
        self._guards: tuple[tuple[HitGuard, Guard | None], ...] = ()

    def inside(self, layers: Sequence[tuple[Middleware, Guard | None]]) -> None:
        """Take note of the guardrails that a hit would pass by."""
        self._guards = tuple(
            (layer, guard)
            for layer, guard in layers
            if isinstance(layer, HitGuard) and layer.guards_hits
        )

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Answer from the cache, or keep what comes back."""
        run = call.run
        fields = call.original.fields
        if call.trip or fields is None or run.endpoint not in forms.KEPT:
            return await proceed(call)
        wish = read_wish(run, self._options.ttl_s)
        if not (wish.reads or wish.writes):
            return await self._pass_by(call, proceed, "asked")
        try:
            reading = self._readings.read(call, fields)
        except (codec.JSONError, UnicodeError, RecursionError):
            return await self._pass_by(call, proceed, "unreadable")
        pool = self._scoping.pool(run, reading.ask.fingerprint)
        if reading.barred or pool is None:
            return await self._pass_by(call, proceed, reading.barred or "unscoped")
        asked = _Asked(call, proceed, reading, pool, wish)
        if self.shadow:
            return await self._watch(asked)
        if self._options.coalesce and wish == self._usual:
            return await self._together(asked)
        return await self._answer(asked, None)

    async def explain(self, call: Call) -> list[Step]:
        """Look a question up and tell what each tier says; serves and keeps nothing."""
        fields = call.original.fields
        if fields is None or call.run.endpoint not in forms.KEPT:
            return [("request", "is no question that is kept")]
        wish = read_wish(call.run, self._options.ttl_s)
        reading = self._readings.read(call, fields)
        ask = reading.ask
        pool = self._scoping.pool(call.run, ask.fingerprint)
        if reading.barred or pool is None:
            return [("request", reading.barred or "unscoped")]
        steps: list[Step] = [("pool", f"{pool.namespace} {pool.scope} {pool.partition}")]
        found = await self._lookup.look(call, ask, pool, wish, steps)
        last = f"{found.entry.id} by {found.tier}" if isinstance(found, Hit) else found.reason
        return [*steps, ("hit" if isinstance(found, Hit) else "miss", last)]

    def wrong(self, tenant: str, entry_id: str, question: str) -> None:
        """Take in that an entry was no answer to a question: the pool's bound counts what was served here."""
        if self._learning is not None:
            self._learning.wrong(tenant, entry_id, exact_of(question))

    async def _pass_by(self, call: Call, proceed: Proceed, reason: str) -> Reply:
        self._savings.missed(call, "off", reason)
        return await proceed(call)

    async def _watch(self, asked: _Asked) -> Reply:
        """Look, count and keep as ever, and let the model answer."""
        found = await self._lookup.look(asked.call, asked.ask, asked.pool, asked.wish)
        if isinstance(found, Hit):
            self._savings.shadowed(self.id, found.tier)
            return await asked.proceed(asked.call)
        asked.missed = found
        return await self._ask_model(asked, None)

    async def _together(self, asked: _Asked) -> Reply:
        """Follow who asks the same already, or lead."""
        key = (asked.pool.partition, asked.ask.exact)
        number = 0
        while (flight := self._flights.find(key)) is not None:
            reply = await self._follow(asked, flight)
            if reply is not None:
                return reply
            if not flight.failed:
                if self._flights.find(key) is flight:
                    break
                continue
            if self._flights.is_last(flight):
                return await self._answer(asked, None)
            number = max(number, flight.number + 1)
        flight = self._flights.lead(key, number)
        close = partial(self._flights.close, key, flight)
        reply: Reply | None = None
        try:
            reply = await self._answer(asked, flight, close)
            return reply
        finally:
            if not isinstance(reply, Kept):
                close()

    async def _follow(self, asked: _Asked, flight: Flight) -> Reply | None:
        """Return the answer of a flight; None when it failed and told nothing, or is no longer wanted.

        What began before a delete is no answer for who asks after it (O-4).
        """
        call = asked.call
        flight.followers += 1
        try:
            epoch = await self._lookup.epoch(asked.pool, asked.ask)
            if flight.is_before(epoch):
                return None
            if forms.streams(call) and not forms.is_body(call):
                await flight.more(0, call.run.deadline)
            else:
                await flight.end(call.run.deadline)
            if flight.failed or flight.is_before(epoch):
                return None
            reply = self._followed(call, flight)
        finally:
            flight.followers -= 1
        told = flight.told or Told("hit-exact", ((b"x-gateway-cache-age", b"0"),))
        call.run.cache = told.cache
        call.run.headers.extend(told.headers)
        self._savings.hit(call, told.cache, asked.reading.size, 0)
        return reply

    def _followed(self, call: Call, flight: Flight) -> Reply | None:
        try:
            if forms.streams(call) and not forms.is_body(call):
                return Followed(call, flight)
            return forms.served(call, flight.answer(forms.collector(call)))
        except InputError:
            return None

    async def _answer(
        self, asked: _Asked, flight: Flight | None, close: partial[None] | None = None
    ) -> Reply:
        """Serve what is kept; else ask the model and keep what it says."""
        call = asked.call
        found = await self._lookup.look(call, asked.ask, asked.pool, asked.wish)
        if isinstance(found, Hit):
            served = await self._serve(asked, found, flight)
            if served is not None:
                if found.is_stale:
                    self._renew_behind(asked)
                return served
            found = Missed("unreadable", None)
        asked.missed = found
        if flight is not None:
            flight.epoch = found.epoch
        self._savings.missed(call, "miss", found.reason)
        if found.is_down:
            call.run.warn("cache_unavailable: answered without the cache")
        if asked.wish.only:
            raise InputError("not_cached")
        return await self._ask_model(asked, flight, close)

    async def _serve(self, asked: _Asked, hit: Hit, flight: Flight | None) -> Reply | None:
        """Write a kept answer for this caller; None for one that cannot be read."""
        call, entry = asked.call, hit.entry
        run = call.run
        try:
            reply, answer, length = await self._written(asked, entry)
        except (InputError, codec.JSONError):
            return None
        age = max(0, int(clock.wall() - entry.created))
        named = "hit-exact" if hit.tier == "exact" else "hit-semantic"
        headers = (
            (b"x-gateway-cache-age", b"%d" % age),
            (b"x-gateway-cache-similarity", b"%.4f" % hit.similarity),
            (b"x-gateway-cache-id", entry.id.encode()),
        )
        run.cache = named
        run.headers.extend(headers)
        self._savings.hit(call, named, asked.reading.size, length)
        if hit.audit is not None and self._learning is not None:
            self._learning.served(hit.audit, asked.ask.exact)
        if flight is not None:
            flight.told = Told(named, headers)
            if flight.followers:
                answer = answer or stored.decode(entry.answer, 0)
                flight.add(neutral(events_of(answer)))
            flight.land()
        return reply

    async def _written(self, asked: _Asked, entry: Entry) -> tuple[Reply, Answer | None, int]:
        """Write a kept answer for this caller; returns it as it was read, if it was, and how long its text is.

        Raises InputError and JSONError for what cannot be read.
        """
        call, reading = asked.call, asked.reading
        if not self._guards:
            known = forms.again(call, reading, entry.answer)
            if known is not None:
                return known[0], None, known[1]
        answer = stored.decode(entry.answer, int(clock.wall()))
        if self._guards:
            answer = await self._judged(call, entry, answer)
            return forms.served(call, answer), answer, length_of(answer)
        return forms.served(call, answer, reading), answer, length_of(answer)

    async def _judged(self, call: Call, entry: Entry, answer: Answer) -> Answer:
        """Have the guardrails inside look at the question and at the kept answer; what they refuse is forgotten."""
        guards = [layer for layer, guard in self._guards if guard is None or guard(call)]
        if not guards:
            return answer
        for layer in guards:
            await layer.check_request(call)
        first = reply = forms.whole(call, answer)
        try:
            for layer in reversed(guards):
                reply = await layer.check_answer(call, reply)
        except PolicyError as error:
            if error.code == "guardrail_violation":
                await self._forget(entry)
            raise
        if reply is first:
            return answer
        changed = forms.read(call, reply.body)
        return codec.replace(changed, id="", created=answer.created, usage=stored.ZERO)

    async def _forget(self, entry: Entry) -> None:
        try:
            selector = Selector(entry.pool.tenant, id=entry.id)
            await self._lookup.ask_store(self._store.delete(selector))
        except Down:
            pass  # it is judged again before it is served again

    async def _ask_model(
        self, asked: _Asked, flight: Flight | None, close: partial[None] | None = None
    ) -> Reply:
        """Have the inner layers answer; the answer is kept before its last byte goes out."""
        call = asked.call
        before = asked.ask
        reply = await asked.proceed(call)
        if not asked.wish.writes or reply.status != _OK:
            return reply
        if not isinstance(reply, Whole):
            keep = partial(self._keep, asked, before)
            return Kept(call, reply, keep, flight, close or _nothing, self._spawn)
        try:
            answer = forms.read(call, reply.body)
        except GatewayError:
            self._savings.refused("unreadable")
            return reply
        if flight is not None:
            flight.add(neutral(events_of(answer)))
            flight.land()
        await self._keep(asked, before, answer)
        return reply

    def _renew_behind(self, asked: _Asked) -> None:
        """Have the model answer anew behind a request that got an old answer; the same question once at a time."""
        key = (asked.pool.partition, asked.ask.exact)
        if self._spawn is None or key in self._renewing:
            return
        self._renewing.add(key)
        call = asked.call.behind()
        for name in TRANSPORT:
            if call.original.fields is not None:
                call.original.fields.pop(name, None)
        call.run.stream = False
        wish = asked.wish._replace(reads=False)
        again = _Asked(call, asked.proceed, asked.reading, asked.pool, wish)
        try:
            self._spawn(self._renew(key, again), "renew a kept answer")
        except BaseException:
            self._renewing.discard(key)
            raise

    async def _renew(self, key: tuple[str, str], asked: _Asked) -> None:
        """Ask the model and keep its answer; what fails leaves the old one, until its time is over for good."""
        try:
            found = await self._lookup.look(asked.call, asked.ask, asked.pool, asked.wish)
            if isinstance(found, Missed):
                asked.missed = found
            reply = await self._ask_model(asked, None)
            if not isinstance(reply, Whole):
                await reply.close()
        except GatewayError:
            self._savings.refused("failed")
        finally:
            self._renewing.discard(key)
            asked.call.run.end()

    async def _keep(self, asked: _Asked, ask: Ask, answer: Answer) -> None:
        """Keep an answer if it may be kept; never raises for a store that is down (K23)."""
        call, missed = asked.call, asked.missed
        reason = self._admission.refuses(answer, call.run.endpoint)
        if not reason and self._learning is not None and missed.audit and missed.vector:
            prompt = Prompt(ask.exact, missed.canonical, missed.vector, ask.asked or "")
            self._learning.observe(call, missed.audit, prompt, answer)
        if not reason and missed.epoch is None:
            reason = "unavailable"
        if reason:
            self._savings.refused(reason)
            return
        data = stored.encode(answer)
        if self._admission.too_large(data):
            self._savings.refused("size")
            return
        run, now = call.run, clock.wall()
        vector = missed.vector
        entry = Entry(
            id=new_entry_id(),
            pool=asked.pool,
            asked=ask.asked or "",
            exact=ask.exact,
            canonical=missed.canonical,
            answer=data,
            created=now,
            expires=now + asked.wish.ttl_s + self._options.stale_ttl_s,
            epoch=missed.epoch or 0,
            embedder=vector.embedder if vector is not None else "",
            vector=vector.data if vector is not None else b"",
            model=run.model,
            agent=run.agent,
            author=run.key_id,
            tags=run.tags,
        )
        try:
            kept = await self._lookup.ask_store(self._store.put(entry))
        except Down:
            self._savings.refused("unavailable")
            return
        self._savings.kept() if kept else self._savings.refused("deleted")


def _nothing() -> None:
    """Close no flight."""
