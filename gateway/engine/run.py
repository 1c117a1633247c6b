"""The way of one request to its provider: targets in order, credentials in turn, one answer."""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import cast

from gateway.chain.plan import Key, Model, Target
from gateway.core import clock
from gateway.core.answer import Answer as NeutralAnswer
from gateway.core.call import Call, Run
from gateway.core.errors import GatewayError, InputError, UpstreamError
from gateway.core.ledger import Book
from gateway.core.ports import OpaqueStore
from gateway.core.reply import Reply, Whole
from gateway.dialects.base import AnswerIsError, Dialect, StreamRules, Watcher
from gateway.dialects.embedding_translation import EmbeddingTranslation
from gateway.dialects.openai_parts import without_parts
from gateway.dialects.registry import FOREIGN_SEALS
from gateway.dialects.translation import TranslatedStream, Translation
from gateway.dialects.typed_errors import with_type
from gateway.engine import translating
from gateway.engine.accounting import Accounting, Nowhere
from gateway.engine.admit import Barred, admit, enter, rather, wait_for_room
from gateway.engine.attempt import Attempt
from gateway.engine.fit import in_order, require_fit
from gateway.engine.listing import Listing
from gateway.engine.outgoing import Original, Outgoing
from gateway.engine.refusal import Refusal, refuse, refuse_in_stream
from gateway.engine.select import usable_keys
from gateway.engine.stream import ByteStream, EventStream, answer_length, counted_input
from gateway.engine.wishes import wanted_wait
from gateway.telemetry.metrics import AttemptCells, Metrics
from gateway.telemetry.redact import Redactor
from gateway.upstream.client import UNSENT, Answer, Headers

_JSON_HEADERS: Headers = ((b"content-type", b"application/json"),)
_JSON = b"application/json"
_MAX_ERROR_BYTES = 65_536
_MAX_ANSWER_BYTES = 33_554_432
_ERRORS = 400


class Engine:
    """Runs requests against the plans of a snapshot; holds no state of a request."""

    def __init__(
        self,
        metrics: Metrics,
        redactor: Redactor,
        opaque: OpaqueStore,
        book: Book | None = None,
    ) -> None:
        self._opaque = opaque
        self._accounting = Accounting(metrics, book or Nowhere())
        self._metrics = metrics
        self._redactor = redactor
        self.listing = Listing()
        self._cells: dict[tuple[str, str, str], AttemptCells] = {}

    async def trip(self, call: Call) -> Reply:
        """Answer one model call from the first target that can: what stands inside every chain."""
        run = call.run
        model = cast("Model", call.model)
        original = cast("Original", call.original)
        if model.has_facts and original.fields is not None:
            require_fit(model, original.fields)
        if model.is_wide:
            model = model.named(run.asked)
        failure: UpstreamError | None = None
        unfit: InputError | None = None
        targets = model.targets
        for target in targets if len(targets) == 1 else in_order(model, run, original.fields):
            row = target.account.row
            if run.endpoint not in row.offers:
                continue
            is_plain = run.endpoint in row.endpoints and not row.wires
            if is_plain and run.endpoint not in FOREIGN_SEALS:
                outgoing = original.plan(run, model, target)
            else:
                try:
                    outgoing = await self._plan(run, model, target, original)
                except InputError as error:
                    unfit = unfit or error  # another target may take what this one cannot
                    continue
            try:
                return await self.call(run, target, outgoing)
            except UpstreamError as error:
                if not _may_move_on(error):
                    raise
                failure = rather(failure, error)
        if isinstance(failure, Barred) and failure.full:
            target = await wait_for_room(failure.full, run.deadline)
            return await self.call(run, target, await self._plan(run, model, target, original))
        if failure is not None:
            raise failure
        if unfit is not None:
            raise unfit
        message = f"No target of this model offers {run.endpoint}."
        raise InputError("unsupported_model", message, param="model")

    def call(self, run: Run, target: Target, outgoing: Outgoing) -> Awaitable[Reply]:
        """Send to one target: a credential that is refused or out of quota makes room for the next."""
        keys = target.account.keys
        if len(keys) == 1:
            return self._attempt(run, target, keys[0], outgoing)
        return self._in_turn(run, target, usable_keys(target), outgoing)

    async def _in_turn(
        self, run: Run, target: Target, keys: Sequence[Key], outgoing: Outgoing
    ) -> Reply:
        for key in keys[:-1]:
            try:
                return await self._attempt(run, target, key, outgoing)
            except (Refusal, Barred) as error:
                if not (error.is_credential or error.is_quota):
                    raise
        return await self._attempt(run, target, keys[-1], outgoing)

    async def _attempt(self, run: Run, target: Target, key: Key, outgoing: Outgoing) -> Reply:
        cells = self._attempt_cells(run, target)
        attempt = Attempt(run, target, key, cells, self._accounting, outgoing.body, outgoing.side)
        for hook in run.attempt_hooks:
            await hook.before_attempt(attempt)
        if not enter(target, key):
            try:
                await admit(target, key)
            except BaseException:
                attempt.forgo()
                raise
            attempt.is_probe = True
        attempt.begin()
        answer: Answer | None = None
        reply: Reply | None = None
        try:
            answer = await key.door.send(
                outgoing.method, outgoing.path, outgoing.headers, outgoing.body, run.deadline
            )
            if answer.status >= _ERRORS:
                raise await self._read_refusal(attempt, answer)
            attempt.answered()
            reply = self._read_plain(run, attempt, answer, outgoing)
            if reply is None:
                reply = await self._read_reply(run, attempt, answer, outgoing)
            attempt.delivered()
            return reply
        except AnswerIsError as error:
            refusal = refuse_in_stream(
                target.account, error.error, endpoint=run.endpoint, side=attempt.side
            )
            attempt.fail(refusal)
            raise refusal from None
        except UpstreamError as error:
            attempt.fail(error)
            raise
        except GatewayError as error:
            attempt.end(error.code)
            raise
        except asyncio.CancelledError as left:
            attempt.sent = left.args != UNSENT
            attempt.give_up()
            raise
        finally:
            run.upstream_s += clock.monotonic() - attempt.started
            if reply is None:
                attempt.end("internal")  # unless it has ended by a name above
                if answer is not None:
                    answer.abort()

    def _read_plain(
        self, run: Run, attempt: Attempt, answer: Answer, outgoing: Outgoing
    ) -> Whole | None:
        """Read a good answer that is here whole and in the caller's format: most are; None for all others."""
        if not outgoing.watched or outgoing.translation or answer.content_type in outgoing.streams:
            return None
        body = answer.at_hand(_MAX_ANSWER_BYTES)
        if body is None:
            return None
        attempt.received = len(body)
        return self._read_whole(run, attempt, answer.status, body)

    def _read_whole(self, run: Run, attempt: Attempt, status: int, body: bytes) -> Whole:
        rules = attempt.target.account.rules
        dialect = cast("Dialect", run.dialect)
        run.usage = attempt.usage = dialect.read_answer(
            run.endpoint, body, rules.secrets, reasoning_outside=rules.reasoning_outside
        )
        if rules.content_lists and run.endpoint == "chat":
            body = without_parts(body)
        attempt.end("ok")
        return Whole(status, _JSON_HEADERS, body)

    async def _read_reply(
        self, run: Run, attempt: Attempt, answer: Answer, outgoing: Outgoing
    ) -> Reply:
        """Read a good answer by its own content type, whatever the request asked for (K02)."""
        account, translation = attempt.target.account, outgoing.translation
        if answer.content_type in outgoing.streams and outgoing.watched:
            if not run.stream or run.needs.whole:
                raise UpstreamError(
                    "upstream_invalid_response", phase="answer", detail="unasked stream"
                )
            rules = account.hidden_rules if outgoing.hide_usage else account.rules
            watcher = _watcher(run, outgoing, rules)
            stream = EventStream(answer, attempt, watcher)
            if isinstance(watcher, TranslatedStream):
                stream.before_end(partial(self._keep, attempt, watcher))
            await stream.open(run.needs)
            if isinstance(watcher, TranslatedStream):
                translating.warn(run, watcher.translation.notes.warnings)
            return stream
        if not outgoing.watched and answer.content_type != _JSON:
            return ByteStream(answer, attempt)
        attempt.received = answer_length(answer) or 0
        body = await answer.read_all(_MAX_ANSWER_BYTES)
        if translation is None:
            return self._read_whole(run, attempt, answer.status, body)
        if isinstance(translation, EmbeddingTranslation):
            translation.counted = counted_input(answer)
        body, said = translation.read_whole(body, account.rules)
        if isinstance(said, NeutralAnswer):
            asked = cast("Translation", translation).prompt
            await translating.keep(run, attempt.target, said, asked, self._opaque)
        run.usage = attempt.usage = said.usage
        translating.warn(run, translation.notes.warnings)
        attempt.end("ok")
        return Whole(answer.status, _JSON_HEADERS, body)

    async def _plan(self, run: Run, model: Model, target: Target, original: Original) -> Outgoing:
        """Build the request to one target: relayed where it speaks the caller's format, else translated."""
        wire = target.account.row.wire(run.endpoint, target.served(model, run.asked))
        if not wire:
            wire = translating.needed(run, model, target, original)
        if not wire:
            return original.plan(run, model, target)
        return await translating.plan(run, model, target, original, wire, self._opaque)

    async def _keep(self, attempt: Attempt, stream: TranslatedStream) -> None:
        run, about = attempt.run, stream.translation
        translating.warn(run, about.notes.warnings)
        said = stream.collector.answer()
        await translating.keep(run, attempt.target, said, about.prompt, self._opaque)

    def _attempt_cells(self, run: Run, target: Target) -> AttemptCells:
        name = (target.account.name, target.model, run.endpoint)
        cells = self._cells.get(name)
        if cells is None:
            system = target.account.row.kind
            cells = self._cells[name] = self._metrics.attempt_cells(*name, system)
            target.health.show()
        return cells

    async def _read_refusal(self, attempt: Attempt, answer: Answer) -> Refusal:
        account, endpoint, side = attempt.target.account, attempt.run.endpoint, attempt.side
        try:
            body = await answer.read_all(_MAX_ERROR_BYTES)
        except UpstreamError:
            # The status has been said; a page that is cut or endless adds nothing to it.
            answer.abort()
            body = b""
        said = with_type(side.read_error(answer.status, body, self._redactor), answer.header)
        wait_s = wanted_wait(answer.status, answer.header, body)
        return refuse(account, answer.status, said, wait_s, endpoint=endpoint, side=side)


def _watcher(run: Run, outgoing: Outgoing, rules: StreamRules) -> Watcher:
    if isinstance(outgoing.translation, Translation):
        return outgoing.translation.watch(rules)
    if outgoing.wrapping is not None and outgoing.wrapping.watch is not None:
        return outgoing.wrapping.watch(rules)
    return cast("Dialect", run.dialect).watch(run.endpoint, rules)


def _may_move_on(error: UpstreamError) -> bool:
    """Whether the next target may be tried without the caller's retry rules.

    Yes when nothing left the gateway, when the operator's credentials, not the request, were refused, and when the
    request was used to try whether a target is well again.
    """
    if isinstance(error, Refusal):
        return error.is_credential or error.is_quota or error.failed_probe
    return not error.sent and error.code != "deadline_exceeded"
