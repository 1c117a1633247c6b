"""Takes secrets out of text on its way to a log or a client (T-12): known values in their usual
disguises, and whatever looks like a key. It refuses nothing; it would rather remove too much.
"""

import base64
import hashlib
import re
import secrets as randomness
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast
from urllib.parse import quote, unquote, urlsplit

from gateway.core.codec import JSONError, as_object, decode, encode

MASK = "[redacted]"
_SHORTEST = 6
_PREFIX = 12
_RANDOM = 16
_PIECE = 8
_STEP = _PREFIX - _PIECE + 1
_LONG = 16
_HASH_KEY = randomness.token_bytes(16)

_PLAIN = r"[A-Za-z0-9+/=_%.:~\-]"
_RUN = re.compile(rf"{_PLAIN}{{12,}}")
_WINDOW = re.compile(rf"{_PLAIN}{{12}}\Z")
_WORD = re.compile(r"[A-Za-z0-9_.\-]+\Z")
_LOOKS_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:[spr]k|gw|xai|pplx|nvapi|fw|csk|tgp|xox[a-z])[-_][A-Za-z0-9_\-.+/=~%*]{8,}"
    r"|(?:gsk|hf|r8|gh[a-z]|github_pat|ya29)[_.][A-Za-z0-9_\-.*]{8,}"
    r"|A[KS]IA[0-9A-Z]{12,}"
    r"|AIza[0-9A-Za-z_\-]{20,}"
    r"|eyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)"
    r")",
    re.DOTALL,
)
_SET = r"""\\?["']?\s*[:=]\s*\\?["']?"""
_NAMED_SECRET = re.compile(
    rf"((?:api|access|secret|private|auth|admin|account)[-_ ]?(?:key|token){_SET}"
    rf"|(?:passw(?:or)?d|authorization|signature|(?:set-)?cookie){_SET}"
    r"|[?&](?:key|sig|token|code)=|://[^\s/:@]*:|bearer\s+|basic\s+(?=\S*[0-9=]))"
    r"""(?!\[redacted\]|bearer\b|basic\b)[^\s"'&,;}<>\\@]{6,}""",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(
    r"(?:key|secret|token|passw(?:or)?d|credentials?|cookie|authorization)\Z", re.IGNORECASE
)
_DEEPEST = 8
_HINTS = ("key", "token", "bearer", "basic ", "auth", "passw", "signature", "cookie", "://", "sig=")


class Redactor:
    """Removes secrets from text. What it has learnt it never forgets: old secrets leak too."""

    __slots__ = ("_known", "_needles", "_pieces", "_windows", "generation")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._windows: dict[str, list[str]] = {}
        self._pieces: set[str] = set()
        self._needles: tuple[tuple[str, str], ...] = ()
        self.generation = 0
        self.learn(values)

    def learn(self, values: Iterable[str]) -> None:
        """Add secret values; below 6 characters one cannot be told from a word and is left out."""
        needles = set(self._needles)
        for form in {form for value in values for form in _forms(value)} - self._known:
            self._known.add(form)
            start = form[:_PREFIX]
            if _WINDOW.match(start):
                self._windows.setdefault(start, []).append(form)
                self._pieces.update(start[at : at + _PIECE] for at in range(_STEP))
            else:
                needles.add((start, form))
        self._needles = tuple(sorted(needles, key=lambda needle: -len(needle[1])))
        self.generation += 1

    def __call__(self, text: str) -> str:
        """Return the text without secrets; the same object when there was none."""
        text = self._without_values(text)
        text = _LOOKS_SECRET.sub(MASK, text)
        lower = text.lower()
        if any(hint in lower for hint in _HINTS):
            text = _NAMED_SECRET.sub(rf"\1{MASK}", text)
        return text

    def name(self, text: str) -> str:
        """Return a name that an operator chose without secrets: words such as `xai-chat` may look like a key."""
        return _LOOKS_SECRET.sub(_unless_words, self._without_values(text))

    def _without_values(self, text: str) -> str:
        for start, whole in self._needles:
            if start in text:
                text = _without(text, start, whole)
        return self._without_known(text) if self._windows else text

    def holds_none(self, word: str) -> bool:
        """Tell whether a word, such as a request id, holds no secret; cheaper than cleaning it."""
        if _WORD.match(word) is None:
            return self(word) == word
        return (
            not self._may_hold(word, 0, len(word))
            and _LOOKS_SECRET.search(word) is None
            and not any(start in word for start, _ in self._needles)
        )

    def value(self, value: object) -> object:
        """Return a JSON-like value without secrets; text under a secret's name goes whole."""
        return self._value(value, 0)

    def _value(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return self(value)
        if value is None or isinstance(value, (bool, int, float, datetime)):
            return value
        if depth >= _DEEPEST:
            return "..."
        if isinstance(value, Mapping):
            members = cast("Mapping[object, object]", value)
            return {
                self(str(name)): self._member(str(name), members[name], depth) for name in members
            }
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[object]", value)
            return [self._value(item, depth + 1) for item in items]
        if isinstance(value, bytes):
            return summary(value)
        return self(str(value))

    def _member(self, name: str, value: object, depth: int) -> object:
        if isinstance(value, str) and _SECRET_NAME.search(name):
            return MASK
        return self._value(value, depth + 1)

    def _may_hold(self, text: str, start: int, end: int) -> bool:
        """Look at every fifth place: a known beginning of 12 has a piece of 8 at one of them."""
        places = range(start, end - _PIECE + 1, _STEP)
        return not self._pieces.isdisjoint([text[at : at + _PIECE] for at in places])

    def _without_known(self, text: str) -> str:
        """Cut out what starts like a known secret, to its end or to the end of its run."""
        kept: list[str] = []
        done = 0
        for run in _RUN.finditer(text):
            start = max(run.start(), done)
            if not self._may_hold(text, start, run.end()):
                continue
            for at in range(start, run.end() - _PREFIX + 1):
                forms = self._windows.get(text[at : at + _PREFIX])
                if forms is not None:
                    whole = [at + len(form) for form in forms if text.startswith(form, at)]
                    kept += (text[done:at], MASK)
                    done = max((run.end(), *whole))
                    break
        return "".join((*kept, text[done:])) if kept else text


def _unless_words(match: re.Match[str]) -> str:
    """Mask what is random enough to be a key: long, with digits and letters of both cases."""
    text = match.group()
    is_mixed = any(map(str.isdigit, text)) and text.lower() != text != text.upper()
    return MASK if is_mixed and len(text) >= _RANDOM else text


def _without(text: str, start: str, whole: str) -> str:
    """Cut out every place where a secret starts, as far as it goes."""
    first, *rest = text.split(start)
    return first + "".join(MASK + part[_shared(part, whole[len(start) :]) :] for part in rest)


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _forms(value: str) -> Iterator[str]:
    """Yield a secret as it may be written: itself, its parts, escaped and encoded."""
    value = value.strip()
    if len(value) < _SHORTEST:
        return
    for part in (value, *_parts(value)):
        yield part
        for other in (
            quote(part, safe=""),
            quote(part, safe="").replace("%2F", "%2f").replace("%3D", "%3d").replace("%2B", "%2b"),
            encode(part).decode()[1:-1],
            *_base64_forms(part.encode()),
        ):
            if other != part and len(other) >= _SHORTEST:
                yield other


def _parts(value: str) -> Iterator[str]:
    """Yield what is secret inside a connection URL, a key file, or a credentials document."""
    if "://" in value:
        password = urlsplit(value).password
        if password and len(password) >= _SHORTEST:
            yield password
            yield unquote(password)
    elif value.startswith("{"):
        try:
            document = as_object(decode(value)) or {}
        except JSONError:
            document = {}
        for member in document.values():
            if isinstance(member, str) and len(member) >= _LONG and "://" not in member:
                yield from _forms(member)
    elif "\n" in value:
        yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _LONG)


def _base64_forms(value: bytes) -> Iterator[str]:
    """Yield what base64 makes of a value, wherever in the encoded bytes it stands."""
    for lead, affected in ((0, 0), (1, 2), (2, 3)):
        whole = (lead + len(value)) * 8 // 6
        text = base64.b64encode(bytes(lead) + value)[affected:whole].decode()
        if len(text) >= _PREFIX:
            yield text
            yield text.replace("+", "-").replace("/", "_")


def summary(body: bytes) -> str:
    """Stand in for a body: its length, and a hash that tells equal ones apart in this process."""
    digest = hashlib.blake2b(body, digest_size=6, key=_HASH_KEY).hexdigest()
    return f"<{len(body)} bytes {digest}>"
