"""Answers that carry whose they are, and a reader that tells where one reached somebody else.

A mark names tenant, session, pool and question; its last letter is `e`, or `x` for an answer that must never be kept.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from itertools import islice
from typing import Any, NamedTuple

from gateway.core import codec
from gateway.core.scope import digest

TENANTS, SESSIONS, POOLS = 20, 4, 3
NOUNS = ("garden", "printer", "boiler", "router", "piano", "scanner")
VERSIONS = 2
SCOPES = ("session", "session", "tenant", "header:x-pool", "shared:main")
"""The scope of a tenant's cache, by its number."""
_KINDS = {
    "session": "session",
    "tenant": "tenant",
    "header:x-pool": "custom",
    "shared:main": "shared",
}
_MARK = re.compile(rb"mk(\d\d)s(\d)p(\d)n(\d\d)([ex])")
_MAIL = re.compile(rb"ml(\d\d)s(\d)@")
_SAID = re.compile(rb'"(?:content|text|delta|arguments|partial_json)": ?"((?:[^"\\]|\\.)*)"')
_ASKED = re.compile(r"set up the (\w+) in version (\d)")
_SHOWN = 20


class Who(NamedTuple):
    """Whose a request is: numbers of tenant, session (0: none), pool and question; `lasts` False: not to be kept."""

    tenant: int
    session: int
    pool: int
    question: int
    lasts: bool = True

    @property
    def mark(self) -> str:
        """Return the words that an answer to it carries."""
        end = "e" if self.lasts else "x"
        return f"mk{self.tenant:02}s{self.session}p{self.pool}n{self.question:02}{end}"

    @property
    def mail(self) -> str:
        """Return an address that only this session of this tenant has."""
        return f"ml{self.tenant:02}s{self.session}@example.org"

    @property
    def scope(self) -> str:
        """Return the scope of its cache."""
        return SCOPES[self.tenant % len(SCOPES)]


WHO: ContextVar[Who] = ContextVar("who")
"""Whose request the code that runs belongs to: the provider's way to know, which no byte of a request tells."""


def question(number: int) -> str:
    """Return what a question is about."""
    noun, version = NOUNS[number // VERSIONS], number % VERSIONS
    return f"set up the {noun} in version {version}"


def asked_in(text: str) -> int:
    """Return which question a text asks; -1: none."""
    found = _ASKED.search(text)
    return NOUNS.index(found[1]) * VERSIONS + int(found[2]) if found else -1


def marks_in(data: bytes) -> set[Who]:
    """Return the marks in a text, and in what a stream says piece by piece."""
    found = _MARK.findall(data)
    found += _MARK.findall(b"".join(_SAID.findall(data)))
    return {Who(int(t), int(s), int(p), int(n), e == b"e") for t, s, p, n, e in found}


def mails_in(data: bytes) -> set[tuple[int, int]]:
    """Return whose addresses are in a text, or in what a stream says."""
    found = _MAIL.findall(data) + _MAIL.findall(b"".join(_SAID.findall(data)))
    return {(int(tenant), int(session)) for tenant, session in found}


def may_see(who: Who, mark: Who) -> bool:
    """Tell whether an answer made for one may be given to the other."""
    if (who.tenant, who.question) != (mark.tenant, mark.question):
        return False
    match who.scope.partition(":")[0]:
        case "session":
            return who.session == mark.session
        case "header":
            return who.pool == mark.pool
        case _:
            return True


class Reader:
    """Reads all that a gateway gives out and keeps; `foreign` are the first places of what is somebody else's."""

    def __init__(self) -> None:
        self.foreign: list[str] = []
        self.found = 0
        self.seen: Counter[str] = Counter()
        self._entries: set[str] = set()
        self._rows: set[tuple[str, str, int]] = set()

    def report(self, place: str, who: object, what: object) -> None:
        """Note something foreign."""
        self.found += 1
        self.seen[f"foreign in {place}"] += 1
        if len(self.foreign) < _SHOWN:
            self.foreign.append(f"{place}: {what} for {who}")

    def _all_own(self, place: str, who: Who, data: bytes) -> set[Who]:
        marks = marks_in(data)
        for mark in marks:
            if not may_see(who, mark):
                self.report(place, who, mark)
        for owner in mails_in(data):
            if owner != (who.tenant, who.session):
                self.report(place, who, f"an address of {owner}")
        return marks

    def answer(self, who: Who, content: bytes, *, marked: bool) -> None:
        """Read the content of an answer; `marked`: without a mark it would prove nothing."""
        self.seen["answers"] += 1
        if not self._all_own("answer", who, content) and marked:
            self.report("answer without a mark", who, content[:200])

    def headers(self, who: Who, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Read the headers of an answer."""
        self.seen["headers"] += 1
        self._all_own("header", who, b"\n".join(b"%b: %b" % each for each in headers))

    def asked(self, who: Who, text: str) -> None:
        """Read what a provider is asked, whose request it should be."""
        self.seen["asked"] += 1
        if asked_in(text) != who.question:
            self.report("request", who, text[:200])

    def line(self, data: bytes) -> None:
        """Read a line of the log."""
        self.seen["lines"] += 1
        line = codec.decode(data)
        marks = marks_in(data)
        own = marks_in(str(line.get("request_id", "")).encode())
        if len({mark.tenant for mark in marks}) > 1:
            self.report("line", line.get("tenant"), marks)
        for who in own:
            if line.get("tenant", tenant(who)) != tenant(who):
                self.report("line", line.get("tenant"), who)
            self._all_own("line", who, data)

    def entries(self, cache: Any) -> None:
        """Read what a cache in memory keeps and has not been read before."""
        for name, shelf in cache._shelves.items():
            new = [kept.entry for at, kept in shelf.entries.items() if at not in self._entries]
            for entry in new:
                self._entries.add(entry.id)
                self.entry(name, entry)

    def entry(self, shelf: str, entry: Any) -> None:
        """Read a cached answer: its marks have to be those of the pool that it says it is in."""
        self.seen["entries"] += 1
        pool = entry.pool
        for mark in marks_in(entry.answer + entry.asked.encode()):
            value = {
                "session": digest(session(mark)) if mark.session else "",
                "custom": digest("x-pool", f"p{mark.pool}"),
            }.get(pool.scope, pool.value)
            own = (tenant(mark), tenant(mark), _KINDS[mark.scope], value, mark.question)
            if own != (shelf, pool.tenant, pool.scope, pool.value, asked_in(entry.asked)):
                self.report("entry", pool, mark)
            if not mark.lasts:
                self.report("entry that must not be kept", pool, mark)
        for number, _ in mails_in(entry.answer + entry.asked.encode()):
            if f"t{number:02}" != pool.tenant:
                self.report("entry", pool, number)

    def rows(self, rows: Sequence[Any]) -> None:
        """Read rows of the ledger; of many the newest."""
        for row in rows:
            key = (row.tenant, row.run_id, row.attempt)
            if key in self._rows:
                continue
            self._rows.add(key)
            self.seen["rows"] += 1
            text = repr(row).encode()
            for mark in marks_in(text):
                own = (tenant(mark), digest(session(mark)) if mark.session else "")
                if (row.tenant, row.session) != own:
                    self.report("row", row, mark)
        if len(self._rows) > 50_000:
            self._rows = set(islice(self._rows, 25_000))


def tenant(who: Who) -> str:
    """Return the name of a tenant."""
    return f"t{who.tenant:02}"


def session(who: Who) -> str:
    """Return the id of a session; the same for every tenant."""
    return f"session-{who.session}"
