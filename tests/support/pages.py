"""Writes the tables of docs/ that come from code: `python -m tests.support.pages`.

A table stands between `<!-- table: name -->` and `<!-- end -->`; the configuration and the metrics
have generators of their own.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from gateway.chain.plan import Account
from gateway.config.tables import _HEAD, _described, _row
from gateway.core.errors import CODES, Code, GatewayError
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.chat.history_rules import HISTORY_RULES, HistoryRules
from gateway.dialects.loss_table import LOSSES
from gateway.dialects.openai_errors import type_of
from gateway.dialects.registry import DIALECTS
from gateway.engine.refusal import refuse
from gateway.middleware.guardrail.check import CheckOptions
from gateway.middleware.guardrail.registry import CHECKS, load_check
from gateway.middleware.registry import load_kind
from gateway.providers.base import _NATIVE, Provider
from gateway.providers.registry import PROVIDERS
from gateway.server import health, routes
from gateway.server.routes import Route
from tests.support.shared import ROOT

DOCS = ROOT / "docs"
OPTIONS = ("retry", "fallback", "hedge", "limits", "budget", "guardrail", "semantic_cache")
"""Kinds of middleware whose pages have a table of their options."""
PAGES = (
    "api.md",
    "providers.md",
    "contracts.md",
    "translation.md",
    *(f"middleware/{kind}.md" for kind in OPTIONS),
)
_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_PROVIDER_STATUSES = (
    400, 401, 402, 403, 404, 408, 409, 413, 415, 418, 422, 429, 500, 501, 502, 503, 504, 520, 529,
)  # fmt: skip
_RULES = StreamRules(hide_usage=False, done_required=True)
_ACCOUNT = Account(
    name="any",
    row=PROVIDERS["openai"],
    base_path="",
    api_version="",
    keys=(),
    dialect=DIALECTS["openai_chat"],
    rules=_RULES,
    hidden_rules=_RULES,
    status_map={},
)
_KINDS = {
    "generate": "by model, understood",
    "relay": "by model or provider, passed on",
    "object": "by provider, passed on",
    "models": "answered here",
    "model": "answered here",
    "count": "counted by the provider, or estimated",
}
_BODIES = {"json": "JSON", "multipart": "form", "any": "as it is"}


def fill(text: str) -> str:
    """Return a page with its tables written anew."""
    return _BLOCK.sub(lambda match: match[1] + TABLES[match[2]]() + match[4], text)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _advice(error: Code | GatewayError) -> str:
    return {True: "true", False: "false", None: ""}[error.should_retry]


def errors() -> str:
    """Return a row for every machine code, by HTTP status."""

    def row(name: str, code: Code) -> tuple[str, ...]:
        return f"`{name}`", str(code.http), str(code.status), _advice(code), code.message

    ordered = sorted(CODES.items(), key=lambda item: item[1].http)
    head = ("Code", "HTTP", "Status", "`x-should-retry`", "Message")
    return _table(head, (row(*item) for item in ordered))


def statuses() -> str:
    """Return what a caller sees of each HTTP status of a provider."""

    def row(http: int) -> tuple[str, ...]:
        error = refuse(_ACCOUNT, http, ProviderError(""), None, endpoint="chat")
        kind = f"`{type_of(error)}`"
        seen = str(error.http), f"`{error.code}`", kind, _advice(error)
        return str(http), str(error.status), *seen

    head = ("Provider", "Status", "Caller sees", "Code", "Type", "`x-should-retry`")
    return _table(head, map(row, _PROVIDER_STATUSES))


def addresses() -> str:
    """Return every address of the data listener, as it stands below `/v1`."""
    objects = [
        Route("object", kind.decode(), _object_path(kind, action), methods, "any")
        for kind, actions in routes._OBJECTS.items()
        for action, methods in actions.items()
    ]
    model = Route("model", "models", b"/models/{name}", ("GET",))
    rows = [
        (
            f"`{route.path.decode()}`",
            ", ".join(route.methods),
            "" if route.methods == ("GET",) else _BODIES[route.body],
            f"`{route.endpoint}`",
            _KINDS[route.kind],
        )
        for route in (*routes._EXACT, model, *objects)
    ]
    return _table(("Address", "Methods", "Body", "Endpoint", "Where it goes"), rows)


def repairs() -> str:
    """Return what relays repair in messages, and for which kinds of providers."""
    found: dict[str, list[str]] = {}
    for kind, rules in sorted(HISTORY_RULES.items()):
        for words in _repairs_of(rules):
            found.setdefault(words, []).append(kind)
    rows = sorted(found.items(), key=lambda row: (-len(row[1]), row[0]))
    return _table(("What is repaired", "For"), ((words, _code(kinds)) for words, kinds in rows))


def _repairs_of(rules: HistoryRules) -> Iterator[str]:
    if rules.call_ids is not None:
        yield f"Ids of calls that are not `{rules.call_ids.pattern}`, or longer than {rules.call_ids.longest}."
    if rules.refused:
        yield f"Members of messages are left out: {_code(sorted(rules.refused))}."
    told = (
        (not rules.developer, "Messages of the `developer` become those of the `system`."),
        (not rules.blank, "Messages and texts that say nothing are left out or filled."),
        (rules.leading, "System messages behind others are told as marked text of the user."),
        (rules.turns, "Neighbours of one role are joined, and the user begins."),
        (rules.replies, "A short reply stands between results of tools and the user."),
        (rules.prefix, "A last message of the model is marked with `prefix`."),
        (not rules.prefill, "Behind a last message of the model the user asks to go on."),
        (
            rules.thoughts,
            "Calls come with `reasoning_content`, be it empty, unless thinking is off.",
        ),
    )
    yield from (words for is_told, words in told if is_told)


def _object_path(kind: bytes, action: bytes) -> bytes:
    return b"/" + kind + b"/{id}" + (b"/" + action if action else b"")


def checks() -> str:
    """Return the addresses of the health checks."""
    rows = (
        (_code(path.decode() for path in sorted(health._ALIVE)), "200 while the process answers"),
        (
            _code(path.decode() for path in sorted(health._READY)),
            "200 while it takes work, 503 once it is leaving",
        ),
    )
    return _table(("Address", "Answer"), rows)


def providers() -> str:
    """Return a row for every kind of provider."""

    def row(each: Provider) -> tuple[str, ...]:
        variables = (each.key_variable, *each.key_variables)
        return (
            f"`{each.kind}`",
            f"`{each.base_url}`" if each.base_url else "none" if each.is_local else "yours",
            _code(filter(None, variables)),
            ", ".join(sorted(each.offers)),
            "; ".join(_formats(each)),
            "yes" if each.quirks.done_required else "no",
            each.summary,
        )

    head = (
        "Kind",
        "Base URL",
        "Key variables",
        "Offers",
        "Formats",
        "`[DONE]` required",
        "What it is",
    )
    return _table(head, (row(PROVIDERS[kind]) for kind in sorted(PROVIDERS)))


def _formats(each: Provider) -> Iterator[str]:
    """Yield every format in which an entry of a kind may be asked, the usual one first."""
    if each.dialect:
        yield f"`{each.dialect}`"
    relayed = {dialect for dialect, name in _NATIVE.items() if name in each.endpoints}
    yield from (f"`{name}`" for name in sorted(relayed - {each.dialect}))
    for part, endpoint, wire in each.wires:
        asked = f", asked in the form of {endpoint}" if endpoint else ""
        yield f"`{wire}` for models with `{part}` in their name{asked}"
    if each.embedding and each.embedding != each.dialect:
        yield f"`{each.embedding}` for embeddings"
    elif not each.dialect and "embeddings" in each.endpoints:
        yield "OpenAI's for embeddings"
    if each.reranks:
        yield "its own for ranking"
    chosen = each.dialects() - relayed - {each.dialect}
    if chosen:
        yield f"by `dialect`: {_code(sorted(chosen))}"


def losses() -> str:
    """Return a row for every way in which a translation differs from what was said."""
    rows = (
        (f"`{name}`", loss.meaning, "400" if loss.refused else "", f"…{loss.words}.")
        for name, loss in sorted(LOSSES.items())
    )
    return _table(("Name", "What it is", "", "What the caller reads"), rows)


def edits() -> str:
    """Return what is changed in requests to each kind, where anything is."""

    def row(each: Provider) -> tuple[str, ...]:
        quirks = each.quirks
        renamed = (f"`{old}` to `{new}`" for old, new in sorted(quirks.rename.items()))
        usage = "asked for" if quirks.ask_usage else "comes unasked"
        return f"`{each.kind}`", ", ".join(renamed), _code(sorted(quirks.refuse)), usage

    changed = (each for each in PROVIDERS.values() if _differs(each))
    rows = sorted(map(row, changed))
    return _table(("Kind", "Renamed", "Dropped, with a warning", "Usage in streams"), rows)


def options(kind: str) -> str:
    """Return a row for every option of a kind of middleware."""
    schema = load_kind(kind).options.model_json_schema()
    required = schema.get("required", ())
    rows = (
        _row(name, _described(facts, schema.get("$defs", {})), is_required=name in required)
        for name, facts in schema["properties"].items()
    )
    return _HEAD + "".join(rows)


def guard_checks() -> str:
    """Return a row for every kind of check."""
    rows = ((f"`{kind}`", load_check(kind).summary) for kind in sorted(CHECKS))
    return _table(("Kind", "Finds"), rows)


def guard_check_options() -> str:
    """Return a row for every option that one kind of check alone has."""

    def rows(kind: str) -> Iterator[str]:
        schema = load_check(kind).options.model_json_schema(by_alias=True)
        definitions, required = schema.get("$defs", {}), schema.get("required", ())
        for name, facts in schema["properties"].items():
            if name not in _COMMON:
                row = _row(name, _described(facts, definitions), is_required=name in required)
                yield f"| `{kind}` {row}"

    head = "".join(f"| Kind {line}\n" for line in _HEAD.splitlines()).replace("| Kind |-", "|---|-")
    return head + "".join(row for kind in sorted(CHECKS) for row in rows(kind))


_COMMON = frozenset(CheckOptions.model_fields)


def guard_options() -> str:
    """Return a row for every option that all checks share."""
    facts = CheckOptions.model_json_schema()["properties"]
    rows = (_row(name, each, is_required=name == "kind") for name, each in facts.items())
    return _HEAD + "".join(rows)


def _differs(each: Provider) -> bool:
    return bool(each.quirks.rename or each.quirks.refuse or not each.quirks.ask_usage)


TABLES: dict[str, Callable[[], str]] = {
    "errors": errors,
    "statuses": statuses,
    "addresses": addresses,
    "checks": checks,
    "providers": providers,
    "edits": edits,
    "losses": losses,
    "repairs": repairs,
    "guard_checks": guard_checks,
    "guard_check_options": guard_check_options,
    "guard_options": guard_options,
    **{f"options_{kind}": partial(options, kind) for kind in OPTIONS},
}


def pages() -> list[Path]:
    """Return the pages with tables from code."""
    return [DOCS / name for name in PAGES]


if __name__ == "__main__":
    for page in pages():
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")
