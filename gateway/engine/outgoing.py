"""What is sent to one target, planned anew for each from the caller's original (K11)."""

from typing import NamedTuple, Protocol

from gateway.chain.plan import Model, Target
from gateway.core import call, codec
from gateway.core.call import Run
from gateway.dialects.chat.foreign import without_foreign
from gateway.dialects.chat.history_rules import HISTORY_RULES
from gateway.dialects.chat.repair import repaired
from gateway.dialects.counting import CountTranslation
from gateway.dialects.embedding_translation import EmbeddingTranslation
from gateway.dialects.losses import Notes
from gateway.dialects.rerank_translation import RerankTranslation
from gateway.dialects.sides import TargetSide
from gateway.dialects.translation import Translation
from gateway.dialects.wires import EVENTS, Wrapping
from gateway.upstream.client import Body, Headers

JSON: Headers = ((b"content-type", b"application/json"),)
_EVENTS = frozenset({EVENTS})
_STREAM_FIELDS = frozenset({"stream", "stream_options"})
_MODEL_PART = b'\r\ncontent-disposition: form-data; name="model"\r\n\r\n'


class Outgoing(NamedTuple):
    """One request to one target. `watched`: its answer is a dialect's, else plain bytes.

    `translation` brings its answer into the caller's format, `wrapping` unwraps it; without either it is relayed.
    `side` reads the provider's errors where they are not in the account's own format. `streams`: content types.
    """

    method: bytes
    path: bytes
    headers: Headers
    body: Body
    watched: bool = False
    hide_usage: bool = False
    translation: (
        Translation | EmbeddingTranslation | RerankTranslation | CountTranslation | None
    ) = None
    side: TargetSide | None = None
    wrapping: Wrapping | None = None
    streams: frozenset[bytes] = _EVENTS


class Original(call.Original, Protocol):
    """What the caller sent, able to become a request to any target."""

    def plan(self, run: Run, model: Model, target: Target) -> Outgoing:
        """Build the request to one target; what it cannot take is noted as a warning of the run."""
        ...


class JsonOriginal(NamedTuple):
    """A JSON body, split once."""

    path: bytes
    fields: codec.Fields
    watched: bool

    @property
    def size(self) -> int:
        """Bytes of the body, near enough."""
        return sum(len(memoryview(raw)) for raw in self.fields.values())

    @property
    def form(self) -> None:
        """JSON is no form."""
        return

    def copy(self) -> "JsonOriginal":
        """Return one whose fields change on their own."""
        return JsonOriginal(self.path, self.fields.copy(), self.watched)

    def beside(self, path: bytes, fields: codec.Fields) -> "JsonOriginal":
        """Return another request, asked in the course of this one."""
        return JsonOriginal(path, fields, watched=True)

    def plan(self, run: Run, model: Model, target: Target) -> Outgoing:
        """Swap the model and what the gateway owns; everything else goes on as it came."""
        name = run.target_model = target.served(model, run.asked)
        account = target.account
        fields, stream = self.fields, run.stream
        if stream and run.needs.whole:
            fields, stream = _unstreamed(fields), False
        edited = account.row.edit(
            fields, endpoint=run.endpoint, model=name, params=target.params, stream=stream
        )
        if not name:
            del edited.fields["model"]
        known = account.row.quirks.reasoning_known
        if known is not None and run.endpoint == "chat" and "messages" in fields:
            notes = Notes()
            edited.fields["messages"] = without_foreign(fields["messages"], known, notes)
            edited.warnings.extend(notes.warnings)
        rules = HISTORY_RULES.get(account.row.kind)
        if rules is not None and run.endpoint == "chat" and "messages" in fields:
            found = repaired(edited.fields, rules)
            if found is not None:
                edited.fields["messages"] = found[0]
                edited.warnings.extend(found[1])
        if edited.warnings:
            run.warnings.extend(each for each in edited.warnings if each not in run.warnings)
        path = account.row.target_path(account.base_path, self.path, name, account.api_version)
        body = codec.join(edited.fields)
        headers = (*JSON, *run.passed) if run.passed else JSON
        return Outgoing(b"POST", path, headers, body, self.watched, edited.hide_usage)


class FormOriginal(NamedTuple):
    """A multipart body; `start` and `end` say where the value of its field `model` stands; 0 when it has none."""

    path: bytes
    body: bytes
    content_type: bytes
    start: int
    end: int

    @property
    def fields(self) -> None:
        """A form has no JSON fields."""
        return

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.body)

    @property
    def form(self) -> tuple[bytes, bytes]:
        """The body and its content type."""
        return self.body, self.content_type

    def beside(self, path: bytes, fields: codec.Fields) -> JsonOriginal:
        """Return a JSON request, asked in the course of this one."""
        return JsonOriginal(path, fields, watched=True)

    def copy(self) -> "FormOriginal":
        """Return this one: a form does not change."""
        return self

    def plan(self, run: Run, model: Model, target: Target) -> Outgoing:
        """Swap the model's name in place, or put it before the other fields when the caller named it elsewhere."""
        name = run.target_model = target.served(model, run.asked)
        lead = b"" if self.start or not name else self._lead()
        tail = lead and b"\r\n"
        pieces = (self.body[: self.start], lead, name.encode(), tail, self.body[self.end :])
        body = b"".join(pieces)
        account = target.account
        path = account.row.target_path(account.base_path, self.path, name, account.api_version)
        return Outgoing(b"POST", path, ((b"content-type", self.content_type),), body)

    def _lead(self) -> bytes:
        """Return the head of a part for the model, behind the delimiter that the form begins with."""
        return self.body.partition(b"\r\n")[0] + _MODEL_PART


def _unstreamed(fields: codec.Fields) -> codec.Fields:
    """Return the request for the same answer in one piece: a layer must see all of it before any goes out."""
    return {name: raw for name, raw in fields.items() if name not in _STREAM_FIELDS}
