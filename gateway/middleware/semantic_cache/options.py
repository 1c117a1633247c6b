"""What a `semantic_cache` entry of a chain may say, and what is refused at load (R-8)."""

from typing import Annotated, Final, Literal

from pydantic import Field

from gateway.config.base import Many, Name, Text, shaped
from gateway.middleware.base import OptionError, Options

Verify = Literal["none", "guards", "learned", "llm"]
BUILT_IN: Final = "builtin"
SCOPE: Final = shaped(
    r"^(session|tenant|shared:[A-Za-z0-9][A-Za-z0-9._-]{0,62}|header:[A-Za-z0-9][A-Za-z0-9-]{0,62})$",
    "must be one of: session, tenant (all callers of a tenant), shared:NAME, header:NAME; tenants never share",
)
VOLATILE: Final = ("right now", "today", "tonight", "latest", "current time", "what time is it")
"""Questions with one of these have another answer soon."""


class SemanticCacheOptions(Options):
    """Options of `semantic_cache`."""

    verify: Verify | None = Field(
        default=None,
        description="What a similar question must pass besides the threshold: `none`, `guards` (numbers, names, "
        "negations, ... agree), `learned` (a small model of pairs too), `llm` (`judge` is asked too). Default: "
        "`guards` for the scope `session`, `learned` for wider ones.",
    )
    scope: Annotated[str, Field(pattern=SCOPE)] = Field(
        default="session",
        description="Who shares answers, always within the tenant: `session`, `tenant`, `shared:NAME` (whoever "
        "names this pool), `header:NAME` (requests with the same value of this header).",
    )
    threshold: float = Field(
        default=0.95,
        gt=0,
        le=1,
        description="The least similarity of a similar question: necessary, never enough but for `verify: none`.",
    )
    ttl_s: float = Field(default=3600, gt=0, description="How long an answer is served.")
    stale_ttl_s: float = Field(
        default=0,
        ge=0,
        description="For so long after `ttl_s` the same question still gets the old answer, which is renewed "
        "behind it; 0: never.",
    )
    namespace: Name = Field(
        default="default", description="Caches of one tenant with different names share nothing."
    )
    embedder: str = Field(
        default="",
        description="The embeddings model that makes vectors of questions; `builtin`: a small one for English in "
        "the package itself (the extra `embedder`).",
    )
    exact: bool = Field(default=True, description="Whether the same question is looked for.")
    semantic: bool = Field(
        default=True,
        description="Whether similar questions are looked for; needs an `embedder`.",
    )
    canonical: bool = Field(
        default=True,
        description="Whether questions whose wording differs in what cannot matter are found without a vector; a "
        "part of `semantic`.",
    )
    unscoped: Literal["pool", "bypass"] = Field(
        default="pool",
        description="Requests without a session or header: one pool for them all, or no cache.",
    )
    max_wrong_hit_rate: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="The share of similar hits that may be wrong: near hits are only served where labels prove it, "
        "or where the learned verifier is sure; both are audited.",
    )
    coalesce: bool = Field(
        default=True,
        description="Whether the same question in flight is asked once, and all who wait share its answer.",
    )
    cache_after_tools: bool = Field(
        default=True, description="Whether answers to results of tools are kept."
    )
    max_entry_bytes: int = Field(
        default=262_144, ge=256, le=16_777_216, description="The largest answer that is kept."
    )
    max_temperature: float | None = Field(
        default=None,
        ge=0,
        description="Requests with a higher temperature (1 where they name none) are neither answered nor kept.",
    )
    volatile: Many[Text] = Field(
        default=VOLATILE,
        description="Words of questions whose answers do not keep: they are neither answered nor kept.",
    )
    judge: str = Field(default="", description="The model that `verify: llm` asks.")
    embed_timeout_ms: float = Field(
        default=300,
        gt=0,
        le=60_000,
        description="Time for the vector of a question; then it is a miss.",
    )
    judge_timeout_ms: float = Field(
        default=800, gt=0, le=60_000, description="Time for the judge; then it is a miss."
    )
    store_timeout_ms: float = Field(
        default=50, gt=0, le=10_000, description="Time for the store; then it is a miss."
    )

    @property
    def verified_by(self) -> Verify:
        """The verification that holds."""
        if self.verify is not None:
            return self.verify
        return "guards" if self.scope == "session" else "learned"


def check(options: SemanticCacheOptions) -> None:
    """Refuse what cannot work together; raises OptionError that says what to write."""
    if not (options.exact or options.semantic):
        message = "nothing would be found: write exact: true or semantic: true"
        raise OptionError(message, "exact")
    if options.semantic and not options.embedder:
        message = (
            "similar questions need vectors (R-8): write embedder: NAME of an embeddings model, or semantic: "
            "false for exact hits alone"
        )
        raise OptionError(message, "embedder")
    if options.verified_by == "llm" and not options.semantic:
        message = "semantic: false looks for no similar question that a judge could decide on: take verify out"
        raise OptionError(message, "verify")
    if options.verified_by == "llm" and not options.judge:
        raise OptionError("verify: llm asks a model: write judge: NAME of a small one", "judge")
