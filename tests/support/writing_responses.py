"""What the Responses format can tell in an answer, for answers drawn at random."""

from random import Random

from gateway.core.message import Citation, Opaque
from gateway.dialects.responses.states import ORIGIN
from tests.support.neutral import Can


def _annotation(rng: Random) -> Citation:
    end = rng.randrange(9)
    note = {
        "type": "url_citation",
        "start_index": 0,
        "end_index": end,
        "title": "A page",
        "url": "https://example.com/",
    }
    return Citation(ORIGIN, note, url="https://example.com/", title="A page", start=0, end=end)


def _search(rng: Random) -> Opaque:
    action = {"type": "search", "query": "q", "queries": ["q"]}
    item = {"id": f"ws_{rng.random()}", "type": "web_search_call", "status": "completed"}
    return Opaque(ORIGIN, "web_search_call", {**item, "action": action})


CAN = Can(
    ORIGIN,
    answer=frozenset(
        {"text", "cited", "thinking", "sealed", "refusal", "call", "custom_call", "opaque"}
    ),
    ordered=False,
    one_text=False,
    empty_text=False,
    no_arguments="{}",
    maker="openai",
    opaque=_search,
    citation=_annotation,
    finishes=("stop", "length", "content_filter", "refusal"),
    logprobs=True,
    usage=("cached", "cache_write", "reasoning"),
    huge=0.001,
)
