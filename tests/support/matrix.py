"""Measures the table of docs/conformance.md: `python -m tests.support.matrix` writes it anew.

Every recorded exchange goes through a real gateway, asked by callers of each format; a cell is the worst of its exchanges.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx2

from gateway.core.errors import InputError
from tests.support.asked import FORMATS, prompt_of, unsayable
from tests.support.embedded import embedded
from tests.support.exchanges import Exchange
from tests.support.heard import PATHS, READERS
from tests.support.matched import CASES, KNOWN, asked_by, ignored, is_native, matched
from tests.support.same import assert_error_told, assert_same
from tests.support.shared import ROOT
from tests.support.translated import EXCHANGES, Stage, translated
from tests.support.unmatched import RULES, reasons

Json = dict[str, Any]
Cells = dict[tuple[str, str, str], list[str]]
PAGE = ROOT / "docs" / "conformance.md"
YES, WARNED, REFUSED, NO_WORDS, FAILS = "yes", "warned", "400", "no words", "FAILS"
_RANKS = (FAILS, REFUSED, WARNED, NO_WORDS, YES)
_UNSAID = "The caller's format has no words for a part of it."
_BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_NAMES = {"generateContent": "generateContent", "converse": "Converse", "chat": "chat"}
_FIRST = ("native", "generateContent", "Converse", "chat")
ANSWERS: Mapping[str, Callable[[Exchange], object]] = {
    "text": lambda e: not e.stream and e.status < 400 and e.expect.get("text"),
    "stream": lambda e: e.stream and not e.expect.get("error"),
    "tools": lambda e: e.expect.get("tool_calls"),
    "parallel tools": lambda e: len(e.expect.get("tool_calls") or ()) > 1,
    "thinking": lambda e: e.expect.get("reasoning_text"),
    "usage": lambda e: e.status < 400 and e.expect.get("usage"),
    "errors": lambda e: e.status >= 400,
    "context error": lambda e: "context_length_error" in e.features,
    "refusal": lambda e: e.status < 400 and e.features & {"refusal", "content_filter"},
    "n": lambda e: (e.expect.get("n_choices") or 1) > 1,
    "logprobs": lambda e: e.expect.get("logprobs"),
}
"""Features of answers, and whether an exchange shows one."""
REQUESTS: Mapping[str, tuple[str, frozenset[str]]] = {
    "tool results": ("tool_result", frozenset({"the error of a tool"})),
    "images": ("image_in", frozenset({"the detail of a picture"})),
    "files": ("file_in", frozenset({"citations of a part"})),
    "thinking replay": ("thinking_replayed", frozenset()),
    "structured output": ("structured_output", frozenset({"JSON without a schema"})),
    "system inside": ("", frozenset()),
    "cache marks": ("cache_control", frozenset({"a cache mark"})),
    "stop": ("", frozenset({"stop"})),
}
"""Features of requests: the recordings' word for each, and what a format without words for it cannot say."""
COLUMNS = (*ANSWERS, *REQUESTS, "embeddings")


def row_of(exchange: Exchange) -> str:
    """Name the provider, and its format where it speaks more than one."""
    formats = {e.kind for e in EXCHANGES if e.provider == exchange.provider}
    native = exchange.provider_kind == "ollama_native"
    if len(formats) == 1 and exchange.provider != "ollama":
        return exchange.provider
    return f"{exchange.provider} {'native' if native else _NAMES.get(exchange.kind, exchange.kind)}"


def _main_row(exchange: Exchange) -> str:
    """Return the row of a provider's first format."""
    rows = {row_of(e) for e in EXCHANGES if e.provider == exchange.provider}
    return min(rows, key=lambda row: (not row.endswith(_FIRST), row))


def measure(place: Path) -> Cells:
    """Return the outcomes by caller, row and feature."""
    cells: Cells = {}
    with translated(place / "answers") as stage:
        for exchange in EXCHANGES:
            for caller in FORMATS:
                for feature, outcome in _answered(stage, exchange, caller):
                    cells.setdefault((caller, row_of(exchange), feature), []).append(outcome)
    with matched(place / "requests") as stage:
        for exchange in KNOWN:
            for caller in FORMATS:
                for feature, outcome in _asked(stage, exchange, caller):
                    cells.setdefault((caller, row_of(exchange), feature), []).append(outcome)
    for exchange, is_fine in embedded(place / "embeddings"):
        outcome = YES if is_fine else FAILS
        cells.setdefault(("chat", _main_row(exchange), "embeddings"), []).append(outcome)
    return cells


def _answered(stage: Stage, exchange: Exchange, caller: str) -> Iterable[tuple[str, str]]:
    """Yield what became of the features of a recorded answer."""
    shown = [name for name, shows in ANSWERS.items() if shows(exchange)]
    if not shown:
        return
    answer = stage.ask(exchange, caller, f"seed={list(FORMATS).index(caller)}")
    for name in shown:
        yield name, _outcome(name, answer, exchange, caller)


def _outcome(feature: str, answer: httpx2.Response, exchange: Exchange, caller: str) -> str:
    if feature == "n" and caller != "chat":
        return NO_WORDS
    try:
        if exchange.status >= 400:
            assert_error_told(answer, exchange, caller)
            return YES
        if exchange.expect.get("error"):
            return YES if READERS[caller](answer.content, stream=True).error else FAILS
        heard = READERS[caller](answer.content, stream=exchange.stream)
        assert_same(heard, exchange, caller)
    except AssertionError:
        return FAILS
    told = True
    if feature == "thinking":
        said = "".join(str(exchange.expect["reasoning_text"]).split())
        told = "".join(heard.reasoning.split()) == said
    if feature == "logprobs":
        told = '"logprob"' in answer.text
    if feature == "n":
        told = len(json.loads(answer.content)["choices"]) == exchange.expect["n_choices"]
    if told:
        return YES
    return WARNED if answer.headers.get("x-gateway-warnings") else FAILS


def _asked(stage: Stage, exchange: Exchange, caller: str) -> Iterable[tuple[str, str]]:
    """Yield what became of the features of a recorded request."""
    shown = [name for name in REQUESTS if _shows(exchange, name)]
    if not shown:
        return
    if is_native(exchange, caller):
        for name in shown:
            yield name, YES  # it goes on as it came, which suites of their own prove
        return
    asked = asked_by(exchange, caller)
    if asked is None:
        for name in shown:
            yield name, NO_WORDS
        return
    stage.replay.reset()
    answer = stage.client.post(stage.gateway.url + PATHS[caller], json=asked.body)
    log = stage.replay.log()
    for name in shown:
        if REQUESTS[name][1] & set(asked.lost):
            yield name, NO_WORDS
        elif not log:
            yield name, REFUSED if answer.status_code == 400 else FAILS
        elif log[-1]["recording"] is not None:
            yield name, YES
        elif not asked.lost and set(_why(exchange, caller, log)) - RULES.keys():
            yield name, FAILS
        else:
            yield name, WARNED if answer.headers.get("x-gateway-warnings") else YES


def _why(exchange: Exchange, caller: str, log: list[Json]) -> list[str]:
    return reasons(exchange, log[-1]["body"], ignored(exchange, caller))


def requests(place: Path) -> str:
    """Return what became of all recorded requests: how many are sent as recorded, and why the others are not."""
    found: dict[str, list[str]] = {"": [], _UNSAID: []}
    with matched(place) as stage:
        for exchange, caller in CASES:
            asked = asked_by(exchange, caller)
            if asked is None or asked.lost:
                found[_UNSAID].append(f"{exchange.id} ({caller})")
                continue
            stage.replay.reset()
            stage.client.post(stage.gateway.url + PATHS[caller], json=asked.body)
            log = stage.replay.log()
            same = bool(log) and log[-1]["recording"] is not None
            why = [""] if same else _why(exchange, caller, log)[:1]
            for reason in why:
                found.setdefault(reason, []).append(f"{exchange.id} ({caller})")
    lines = [
        "| Requests | Recordings |  |",
        "|---|---|---|",
        f"| As recorded | {len(found.pop(''))} | |",
    ]
    for reason, cases in sorted(found.items(), key=lambda item: -len(item[1])):
        lines.append(f"| {reason} | {len(cases)} | {', '.join(cases)} |")
    return "\n".join(lines) + "\n"


def _shows(exchange: Exchange, feature: str) -> bool:
    word = REQUESTS[feature][0]
    if word:
        return word in exchange.features or (
            feature == "structured output" and "json_mode" in exchange.features
        )
    try:
        prompt = prompt_of(exchange)
    except InputError:
        return False
    if feature == "stop":
        return "stop" in unsayable(prompt, "responses")
    roles = [message.role in {"system", "developer"} for message in prompt.messages]
    return True in roles[roles.index(False) :] if False in roles else False


def table(cells: Cells, caller: str) -> str:
    """Return one caller's table: a row for each provider, a column for each feature."""
    rows = sorted({row for _, row, _ in cells})
    lines = ["| Provider | " + " | ".join(COLUMNS) + " |", "|" + "---|" * (len(COLUMNS) + 1)]
    for row in rows:
        found = (cells.get((caller, row, column), []) for column in COLUMNS)
        lines.append(f"| {row} | " + " | ".join(_worst(each) for each in found) + " |")
    return "\n".join(lines) + "\n"


def _worst(outcomes: list[str]) -> str:
    word = next((rank for rank in _RANKS if rank in outcomes), "")
    return f"{word} {len(outcomes)}" if word and word != NO_WORDS else word


def fill(text: str, cells: Cells, asked: str) -> str:
    """Return the page with its tables written anew; `asked` is the one of requests."""

    def written(match: re.Match[str]) -> str:
        made = asked if match[2] == "requests" else table(cells, match[2])
        return match[1] + made + match[4]

    return _BLOCK.sub(written, text)


def page(place: Path) -> tuple[str, Cells]:
    """Measure everything; return the page as it must be, and the outcomes."""
    cells = measure(place)
    return fill(PAGE.read_text(encoding="utf-8"), cells, requests(place / "all")), cells


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        PAGE.write_text(page(Path(made))[0], encoding="utf-8")
