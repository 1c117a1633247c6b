"""Claude at other clouds: the same body, with model and stream said elsewhere and the version said in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from gateway.core import codec
from gateway.dialects.losses import Notes

_VERSION = "anthropic_version"
_BETAS = "anthropic_beta"
_AT_HOME = frozenset({"diagnostics", "inference_geo", "speed"})
"""What only Anthropic itself takes: why a cache was missed, where it is computed, and how fast."""


@dataclass(frozen=True, slots=True)
class Host:
    """How one cloud takes the body.

    `keeps_stream`: the body says whether it streams. `betas_in_body`: so it does for `anthropic-beta`, which is a
    header elsewhere. `refused` are settings of Anthropic's own service, which say nothing about the answer: this
    cloud refuses a request for them. `whole` and `stream` are the addresses of a call, with `{model}` for its name.
    """

    version: str
    keeps_stream: bool
    betas_in_body: bool
    whole: str
    stream: str
    refused: frozenset[str]

    def fields(self, fields: codec.Fields, notes: Notes, betas: Sequence[str] = ()) -> codec.Fields:
        """Return the fields of a Messages body as this cloud takes them; all others stay byte for byte."""
        left_out = {"model"} if self.keeps_stream else {"model", "stream"}
        body: codec.Fields = {}
        for name, raw in fields.items():
            if name in self.refused:
                notes.lost("field_unsupported", name)
            elif name not in left_out:
                body[name] = raw
        body.setdefault(_VERSION, codec.raw(self.version))
        if self.betas_in_body and betas:
            body.setdefault(_BETAS, codec.raw(list(betas)))
        return body

    def path(self, model: str, *, stream: bool) -> bytes:
        """Return the address of a call below the account's base path; a name is one segment, whatever it holds."""
        address = self.stream if stream else self.whole
        return address.replace("{model}", quote(model, safe="@")).encode()


VERTEX = Host(
    version="vertex-2023-10-16",
    keeps_stream=True,
    betas_in_body=False,
    refused=_AT_HOME,
    whole="/publishers/anthropic/models/{model}:rawPredict",
    stream="/publishers/anthropic/models/{model}:streamRawPredict",
)
BEDROCK = Host(
    version="bedrock-2023-05-31",
    keeps_stream=False,
    betas_in_body=True,
    refused=_AT_HOME | {"metadata", "service_tier"},
    whole="/model/{model}/invoke",
    stream="/model/{model}/invoke-with-response-stream",
)
