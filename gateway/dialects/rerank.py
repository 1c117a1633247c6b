"""Reranking in Cohere's form, and the forms in which providers take and answer it. Pure functions, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import InputError, UpstreamError
from gateway.core.message import NO_BAG, Bag
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, Redactor
from gateway.dialects.counts import plausible
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.openai_errors import read_error

Document = str | Mapping[str, Any]
_OWN = frozenset(
    {"model", "gateway", "query", "documents", "top_n", "top_k", "return_documents", "rank_fields"}
)
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class Form:
    """How one kind of provider takes a request.

    `top` names the field for how many results to give, "" where it gives all. `objects`: documents may be objects;
    else they are texts. `can_return`: it can be told whether to give the documents back. `takes`: its further
    fields, None for any. `path` lies below the account's base path.
    """

    top: str = "top_n"
    objects: bool = False
    can_return: bool = True
    takes: frozenset[str] | None = None
    path: bytes = b"/rerank"


_OPEN = Form(objects=True)
"""A server that is not known: everything is sent as it came."""
FORMS: dict[str, Form] = {
    "cohere": Form(
        can_return=False, takes=frozenset({"max_tokens_per_doc", "priority"}), path=b"/v2/rerank"
    ),
    "cohere_v1": Form(
        objects=True, takes=frozenset({"max_chunks_per_doc", "rank_fields"}), path=b"/v1/rerank"
    ),
    "jina": Form(
        objects=True, takes=frozenset({"truncation", "max_doc_length", "return_embeddings"})
    ),
    "voyage": Form(top="top_k", takes=frozenset({"truncation"})),
    "together": Form(objects=True, takes=frozenset({"rank_fields"})),
    "fireworks": Form(takes=frozenset({"task"})),
    "vllm": Form(
        can_return=False,
        takes=frozenset(
            {
                "truncate_prompt_tokens",
                "max_tokens_per_doc",
                "priority",
                "activation",
                "instruction",
            }
        ),
    ),
    "llamacpp": Form(can_return=False, takes=frozenset()),
    "sglang": Form(top="top_n", takes=frozenset({"instruct"})),
}
"""The forms by kind of provider."""


class Ranking(codec.Struct, frozen=True):
    """A request: `top` is how many of the best to give, None for all.

    `wants_documents` is None where the caller did not say. `fields` are those of an object that count (version 1).
    `extra` holds further fields, decoded.
    """

    query: str
    documents: tuple[Document, ...]
    top: int | None = None
    wants_documents: bool | None = None
    fields: tuple[str, ...] = ()
    extra: Bag = NO_BAG


class Rank(codec.Struct, frozen=True):
    """One result: the place of its document in the request, how relevant it is, and maybe the document."""

    index: int
    score: float
    document: Mapping[str, Any] | None = None


class Ranked(codec.Struct, frozen=True):
    """An answer, best results first. `meta` and `told` are the provider's own words about its cost."""

    results: tuple[Rank, ...]
    id: str = ""
    model: str = ""
    usage: Usage | None = None
    meta: Mapping[str, Any] | None = None
    told: Mapping[str, Any] | None = None


def form_of(kind: str) -> Form:
    """Return the form of a kind of provider."""
    return FORMS.get(kind, _OPEN)


def read_request(fields: codec.Fields) -> Ranking:
    """Read a request as Cohere, Jina, Voyage and their like write it.

    Raises InputError `invalid_request` with `param` for what is not valid.
    """
    values = {name: codec.value_of(field) for name, field in fields.items()}
    query = values.get("query")
    if not isinstance(query, str):
        raise _invalid("query", "must be a text")
    documents = values.get("documents")
    if not isinstance(documents, list) or not documents:
        raise _invalid("documents", "must be a list of texts or objects")
    for at, item in enumerate(cast("list[object]", documents)):
        if not isinstance(item, str | dict):
            raise _invalid(f"documents[{at}]", "must be a text or an object")
    wants = values.get("return_documents")
    if wants is not None and not isinstance(wants, bool):
        raise _invalid("return_documents", "must be true or false")
    named: object = values.get("rank_fields")
    listed = cast("list[object]", named) if isinstance(named, list) else []
    return Ranking(
        query=query,
        documents=tuple(cast("list[Document]", documents)),
        top=_top(values),
        wants_documents=wants,
        fields=tuple(name for name in listed if isinstance(name, str)),
        extra={
            name: value for name, value in values.items() if name not in _OWN and value is not None
        },
    )


def _top(values: Mapping[str, Any]) -> int | None:
    for name in ("top_n", "top_k"):
        top = values.get(name)
        if top is None:
            continue
        if isinstance(top, bool) or not isinstance(top, int) or top < 1:
            raise _invalid(name, "must be a whole number above 0")
        return top
    return None


def _invalid(param: str, words: str) -> InputError:
    return InputError("invalid_request", f"{param} {words}.", param=param)


def write_request(ranking: Ranking, kind: str, notes: Notes) -> codec.Fields:
    """Write a request for a kind of provider as the top-level fields of the body, `model` left out.

    What its form cannot say is noted, or refused with InputError. Documents that it does not give back are put
    into the answer by `read_answer`.
    """
    form = form_of(kind)
    takes = form.takes
    documents = ranking.documents
    if not form.objects:
        documents = tuple(
            _text_of(item, at, ranking.fields, notes) for at, item in enumerate(documents)
        )
    body: dict[str, Any] = {"query": ranking.query, "documents": documents}
    if ranking.top is not None and form.top:
        body[form.top] = ranking.top
    if ranking.wants_documents is not None and form.can_return:
        body["return_documents"] = ranking.wants_documents
    if ranking.fields and form.objects:
        if takes is None or "rank_fields" in takes:
            body["rank_fields"] = ranking.fields
        else:
            notes.lost("field_unsupported", "rank_fields")
    for name, value in ranking.extra.items():
        if takes is None or name in takes:
            body[name] = value
        else:
            notes.lost("field_unknown", name)
    return {name: codec.raw(value) for name, value in body.items()}


def _text_of(item: Document, at: int, fields: tuple[str, ...], notes: Notes) -> str:
    """Return a document as a text: its `text`, or the fields that count, a line each."""
    if isinstance(item, str):
        return item
    names = fields or ("text",)
    found = {name: item[name] for name in names if isinstance(item.get(name), str)}
    if not found:
        raise refuse("part_unsupported", f"documents[{at}] without text", param=f"documents[{at}]")
    if len(names) == 1:
        return next(iter(found.values()))
    notes.lost("value_changed", "documents")
    return "\n".join(f"{name}: {value}" for name, value in found.items())


class _Answer(codec.Struct):
    results: list[Any] | None = None
    data: list[Any] | None = None
    id: Any = None
    model: Any = None
    usage: Any = None
    meta: Any = None


_decode = codec.Decoder(_Answer | list[Any]).decode


def read_answer(body: bytes, ranking: Ranking, secrets: Redactor) -> Ranked:
    """Read a whole success answer of any of the forms: `results`, `data`, or a bare list.

    Raises UpstreamError `upstream_invalid_response` for what is no ranking of these documents, or AnswerIsError.
    """
    try:
        said = _decode(body)
    except _BAD as bad:
        raise _unusable(str(bad)) from None
    answer = _Answer(results=said) if isinstance(said, list) else said
    rows = answer.data if answer.results is None else answer.results
    if rows is None:
        error = read_error(body, secrets)
        if error.message:
            raise AnswerIsError(error)
        raise _unusable("no results")
    results = sorted((_rank(row, ranking) for row in rows), key=lambda rank: -rank.score)
    if len({rank.index for rank in results}) != len(results):
        raise _unusable("a document is ranked twice")
    return Ranked(
        results=tuple(results[: ranking.top]),
        id=answer.id if isinstance(answer.id, str) else "",
        model=answer.model if isinstance(answer.model, str) else "",
        usage=_usage(answer),
        meta=codec.as_object(answer.meta),
        told=codec.as_object(answer.usage),
    )


def _rank(row: object, ranking: Ranking) -> Rank:
    fields = codec.as_object(row) or {}
    index, score = fields.get("index"), fields.get("relevance_score", fields.get("score"))
    if isinstance(index, bool) or not isinstance(index, int) or not isinstance(score, int | float):
        raise _unusable("a result without index or score")
    if not 0 <= index < len(ranking.documents):
        raise _unusable(f"a result for document {index} of {len(ranking.documents)}")
    document = None
    if ranking.wants_documents:
        document = _as_object(ranking.documents[index])
    elif ranking.wants_documents is None:
        document = _as_object(fields.get("document", fields.get("text")))
    return Rank(index, float(score), document)


def _as_object(document: object) -> Mapping[str, Any] | None:
    return {"text": document} if isinstance(document, str) else codec.as_object(document)


def _usage(answer: _Answer) -> Usage | None:
    """Return the tokens read, where a provider counts tokens and not searches."""
    meta = codec.as_object(answer.meta) or {}
    told = codec.as_object(answer.usage) or {}
    for part in (
        told,
        codec.as_object(meta.get("tokens")),
        codec.as_object(meta.get("billed_units")),
    ):
        for name in ("prompt_tokens", "input_tokens", "total_tokens"):
            count = plausible((part or {}).get(name))
            if count is not None:
                return Usage(input=count)
    return None


def _unusable(detail: str) -> UpstreamError:
    return UpstreamError("upstream_invalid_response", phase="answer", detail=detail)


def write_answer(ranked: Ranked, model: str, request_id: str) -> bytes:
    """Write an answer in Cohere's form; `model` and `request_id` stand where the provider says nothing."""
    answer: dict[str, Any] = {
        "id": ranked.id or request_id,
        "model": ranked.model or model,
        "results": [
            {"index": rank.index, "relevance_score": rank.score}
            | ({} if rank.document is None else {"document": rank.document})
            for rank in ranked.results
        ],
    }
    if ranked.meta is not None:
        answer["meta"] = ranked.meta
    if ranked.told is not None:
        answer["usage"] = ranked.told
    return codec.encode(answer)
