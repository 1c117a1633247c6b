"""Plans requests to targets that do not speak the caller's format; what is sealed for a model is put back (K32)."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, ParamSpec, TypeVar, cast

from gateway.chain.plan import Model, Target
from gateway.core import clock, codec
from gateway.core.answer import Answer
from gateway.core.call import Run
from gateway.core.errors import InputError
from gateway.core.message import Image, Prompt
from gateway.core.ports import OpaqueStore
from gateway.dialects.base import Dialect
from gateway.dialects.counting import COUNTERS, CountTranslation
from gateway.dialects.defaults import with_defaults, within
from gateway.dialects.embedding_registry import EMBEDDINGS
from gateway.dialects.embedding_translation import write_embedding
from gateway.dialects.fit.media import urls_to_fetch, with_fetched
from gateway.dialects.fit.naming import in_words
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.messages.betas import HEADER
from gateway.dialects.opaque import restore, sealed_of, wanted
from gateway.dialects.registry import CALLERS, FOREIGN_SEALS, TARGETS, UNSEALED
from gateway.dialects.rerank import form_of
from gateway.dialects.rerank_translation import write_rerank
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write
from gateway.dialects.wires import WIRES, Wire, Wrapping
from gateway.engine.outgoing import JSON, JsonOriginal, Original, Outgoing
from gateway.upstream.client import Headers
from gateway.upstream.fetch import fetch_picture

_MOST_PICTURES = 16
_SEAL = b"encrypted_content"
_BETAS = "anthropic_beta"
_LARGE = 1 << 18
"""Bytes of a request above which it is read and written beside the loop, which other callers wait for."""
_P = ParamSpec("_P")
_R = TypeVar("_R")
_TRUE, _FALSE = codec.raw(True), codec.raw(False)
_SEALED_S = 86_400.0
"""How long sealed state is kept after its last use: a day, in which a conversation goes on."""


def needed(run: Run, model: Model, target: Target, original: Original) -> str:
    """Return the caller's own format where its request cannot be relayed to a target that speaks it, else "".

    Sealed reasoning of Responses belongs to one account: where several serve a model it is kept track of (B120).
    """
    row = FOREIGN_SEALS.get(run.endpoint)
    if row is None or original.fields is None:
        return ""
    name, holds_foreign_seals = row
    if model.is_spread and run.endpoint == "responses" and _has_seals(original.fields):
        return name
    if holds_foreign_seals(original.fields):
        return name
    kinds, holds_unsealed = UNSEALED[run.endpoint]
    refuses = target.account.row.kind in kinds
    return name if refuses and holds_unsealed(original.fields) else ""


def _has_seals(fields: codec.Fields) -> bool:
    """Tell whether a request asks for sealed reasoning or brings some."""
    return any(name in fields and _SEAL in bytes(fields[name]) for name in ("include", "input"))


async def plan(
    run: Run, model: Model, target: Target, original: Original, wire: str, opaque: OpaqueStore
) -> Outgoing:
    """Build the request to one target in its own format; raises InputError for what it cannot take."""
    if not isinstance(original, JsonOriginal):
        raise InputError("unsupported_model", "This target takes no forms.", param="model")
    name = run.target_model = target.served(model, run.asked)
    if run.endpoint == "embeddings":
        return await _do(_is_large(original), _embed, run, target, original, name, wire)
    if run.endpoint == "rerank":
        return await _do(_is_large(original), _rank, run, target, original, name)
    asked = await _ask(run, model, target, original, name, wire, opaque)
    return _count(target, name, wire, asked) if run.endpoint == "count_tokens" else asked


async def _ask(
    run: Run,
    model: Model,
    target: Target,
    original: JsonOriginal,
    name: str,
    wire: str,
    opaque: OpaqueStore,
) -> Outgoing:
    """Build the question itself."""
    dialect = cast("Dialect", run.dialect)
    stream = run.stream and not run.needs.whole
    aim = _aim(wire, target.account.row.kind, name, model.max_output_tokens, stream=stream)
    large = _is_large(original)
    traits = WIRES[wire]
    wrapping = traits.wraps.get(dialect.name)
    if wrapping is not None and not needed(run, model, target, original):
        return _wrap(run, target, original, aim.facts, wire, wrapping)
    notes = Notes()
    prompt, ids = await _do(large, _read, run, target, original, aim, notes)
    told = Told(run.request_id, run.asked, int(clock.wall()), prompt)
    if ids:
        found = await opaque.get_many(run.tenant, ids, _SEALED_S)
        prompt = await _do(large, restore, prompt, found, target.account.name, notes)
    prompt = await _fetch(run, target, prompt, aim.grammar)
    try:
        found = await _do(large, _write, run, target, prompt, aim, told, notes)
    except InputError as error:
        message = in_words(original.fields, error.message)
        if message == error.message:
            raise
        raise InputError(error.code, message, param=error.param) from None
    notes.warnings[:] = [in_words(original.fields, text) for text in notes.warnings]
    warn(run, notes.warnings)
    return found


class _Aim(NamedTuple):
    """What a target's format wants to know of a call, and what its histories must be."""

    wire: str
    facts: Facts
    grammar: Grammar


@lru_cache(maxsize=1024)
def _aim(wire: str, kind: str, name: str, max_output_tokens: int | None, *, stream: bool) -> _Aim:
    """Return what is the same for all calls of a kind."""
    facts = Facts(kind, name, max_output_tokens, stream)
    return _Aim(wire, facts, TARGETS[wire].grammar(facts))


def _is_large(original: JsonOriginal) -> bool:
    return original.size > _LARGE


async def _do(
    large: bool,  # noqa: FBT001  one fact about the request
    work: Callable[_P, _R],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> _R:
    """Do a step at once, or in a thread for a large request: it takes longer than others may wait."""
    if large:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


def _read(
    run: Run, target: Target, original: JsonOriginal, aim: _Aim, notes: Notes
) -> tuple[Prompt, Sequence[str]]:
    """Read a request; return it with the ids of what was sealed for this target and is to be put back."""
    wire, facts, grammar = aim
    caller = CALLERS[cast("Dialect", run.dialect).name]
    prompt = with_defaults(caller.read_request(original.fields, notes), target.common)
    if prompt.max_tokens is not None and facts.max_output_tokens is None:
        prompt = within(prompt, target.account.tariff.known(facts.model).output, notes)
    if facts.stream != prompt.stream:
        prompt = codec.replace(prompt, stream=facts.stream)
    betas = WIRES[wire].betas
    if betas is not None and run.passed and _BETAS not in prompt.extra:
        told = betas(run.passed, notes)
        if told:
            prompt = codec.replace(prompt, extra={**prompt.extra, _BETAS: told})
    elif betas is None and caller.name != wire and any(name == HEADER for name, _ in run.passed):
        notes.lost("field_unknown", HEADER.decode())
    return prompt, wanted(prompt, grammar)


def _write(
    run: Run, target: Target, prompt: Prompt, aim: _Aim, told: Told, notes: Notes
) -> Outgoing:
    """Fit a request to its target and write it."""
    wire, facts, grammar = aim
    name = cast("Dialect", run.dialect).name
    side = TARGETS[wire]
    written = write(prompt, CALLERS[name], side, facts, grammar, told, notes)
    side_path = side.path(replace(facts, tools=True) if prompt.tools else facts)
    body, path = _finish(target, facts, wire, written.fields, side_path, notes)
    speaks_it = name == wire and run.passed
    headers = run.passed if speaks_it else target.account.row.headers
    return _outgoing(headers, wire, path, body)._replace(translation=written.translation)


async def _fetch(run: Run, target: Target, prompt: Prompt, grammar: Grammar) -> Prompt:
    """Get the pictures that this target takes only as data, where the operator allows it."""
    urls = urls_to_fetch(prompt, grammar) if target.account.fetches else ()
    if not urls:
        return prompt
    if len(urls) > _MOST_PICTURES:
        message = f"At most {_MOST_PICTURES} pictures are fetched for one request."
        raise InputError("invalid_request", message)
    found = await asyncio.gather(*(fetch_picture(url, run.deadline) for url in urls))
    pictures = {
        url: Image(media_type=kind, data=b64encode(data).decode())
        for url, (kind, data) in zip(urls, found, strict=True)
    }
    return with_fetched(prompt, pictures)


async def keep(
    run: Run, target: Target, answer: Answer, asked: Prompt, opaque: OpaqueStore
) -> None:
    """Keep what an answer holds sealed, so that callers whose format cannot carry it may go on with it."""
    items = sealed_of(answer, target.account.name, asked)
    if items:
        await opaque.put_many(run.tenant, items, _SEALED_S)


def _embed(run: Run, target: Target, original: JsonOriginal, name: str, wire: str) -> Outgoing:
    notes, side = Notes(), EMBEDDINGS[wire]
    fields, back = write_embedding(original.fields, side, name, run.asked, notes)
    facts = Facts(target.account.row.kind, name)
    body, path = _finish(target, facts, wire, fields, side.path(name), notes)
    warn(run, notes.warnings)
    outgoing = _outgoing(target.account.row.headers, target.account.row.dialect, path, body)
    return outgoing._replace(translation=back)


def _rank(run: Run, target: Target, original: JsonOriginal, name: str) -> Outgoing:
    notes, row = Notes(), target.account.row
    fields, back = write_rerank(original.fields, row.kind, run.asked, run.request_id, notes)
    facts = Facts(row.kind, name)
    path = form_of(row.kind).path
    body, path = _finish(target, facts, "openai_chat", fields, path, notes)
    warn(run, notes.warnings)
    outgoing = _outgoing(row.headers, row.dialect or "openai_chat", path, body)
    return outgoing._replace(translation=back)


def _wrap(
    run: Run, target: Target, original: JsonOriginal, facts: Facts, wire: str, wrapping: Wrapping
) -> Outgoing:
    notes = Notes()
    fields = wrapping.fields(original.fields, facts, run.passed, notes)
    headers = wrapping.headers(run.passed, notes) if wrapping.headers is not None else ()
    body, path = _finish(target, facts, wire, fields, TARGETS[wire].path(facts), notes)
    warn(run, notes.warnings)
    return _outgoing(headers, wire, path, body)._replace(wrapping=wrapping)


def _count(target: Target, name: str, wire: str, asked: Outgoing) -> Outgoing:
    """Return the request to count what a question holds, made of the question itself."""
    counter, account = COUNTERS[wire], target.account
    facts = Facts(account.row.kind, name)
    body = counter.body(codec.split(cast("bytes", asked.body)), facts)
    path = account.row.target_path(
        account.base_path, counter.path(facts), name, account.api_version
    )
    return asked._replace(
        path=path, body=codec.join(body), wrapping=None, translation=CountTranslation()
    )


def _outgoing(headers: Headers, wire: str, path: bytes, body: bytes) -> Outgoing:
    return Outgoing(
        b"POST",
        path,
        (*JSON, *headers),
        body,
        watched=True,
        side=TARGETS[wire],
        streams=WIRES[wire].streams,
    )


def _finish(
    target: Target, facts: Facts, wire: str, fields: codec.Fields, side_path: bytes, notes: Notes
) -> tuple[bytes, bytes]:
    """Return body and path, with the target's defaults and its provider's own names."""
    account, traits = target.account, WIRES[wire]
    edited = account.row.edit(
        fields,
        endpoint=traits.as_endpoint or wire,
        model=facts.model,
        params=target.own,
        stream=facts.stream,
    )
    _say(edited.fields, traits, stream=facts.stream)
    notes.warnings += edited.warnings
    path = account.row.target_path(account.base_path, side_path, facts.model, account.api_version)
    return codec.join(edited.fields), path


def warn(run: Run, warnings: Sequence[str]) -> None:
    """Add what the caller has not been told yet."""
    known = set(run.warnings)
    run.warnings.extend(each for each in dict.fromkeys(warnings) if each not in known)


def _say(fields: codec.Fields, traits: Wire, *, stream: bool) -> None:
    """Say which model is asked and whether the answer is to stream, where this format says it in the body."""
    if not traits.has_model:
        fields.pop("model", None)
    if traits.has_stream and (stream or traits.always_stream):
        fields["stream"] = _TRUE if stream else _FALSE
    else:
        fields.pop("stream", None)
