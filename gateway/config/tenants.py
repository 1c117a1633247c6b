"""The sections `tenants` and `defaults`: who may call, with which keys, and through which chain."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gateway.config.base import Block, Many, ModelName, Moment, Name, Raw, Some, Text, shaped
from gateway.config.chain import ChainEntry
from gateway.config.keys import hash_key
from gateway.config.references import Secret
from gateway.config.secret_rules import check_door_secret

_HASH = shaped(r"^sha256:[0-9a-f]{64}$", "must be what `gateway keys hash` prints for a key")
KeyHash = Annotated[str, Field(pattern=_HASH)]
Chain = Many[ChainEntry]


class Key(Block):
    """One key of a tenant."""

    id: Name = Field(description="Name of the key in logs, limits and lists.")
    secret: Annotated[Secret, AfterValidator(check_door_secret)] | None = Field(
        default=None, description="The key itself, 16 characters or more; or give its `hash`."
    )
    hash: KeyHash | None = Field(
        default=None, description="What `gateway keys hash` prints for the key."
    )
    models: Some[ModelName] | None = Field(
        default=None, description="Models this key may call; default: all of the tenant's."
    )
    expires: Moment | None = Field(
        default=None, description="When the key stops to work; a day counts from its start, UTC."
    )

    @property
    def digest(self) -> str:
        """Return the hash that a presented key is looked up by."""
        return hash_key(self.secret.reveal()) if self.secret else self.hash or ""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.secret is None) == (self.hash is None):
            raise PydanticCustomError("one_form", "needs either secret or hash")
        return self


class Agent(Block):
    """A named application of a tenant, called as a model."""

    model: ModelName = Field(description="The model it speaks through.")
    system: Text | None = Field(default=None, description="Its system prompt.")
    chain: Chain | None = Field(default=None, description="Its chain; default: the tenant's.")
    tools: Many[Raw] = Field(default=(), description="The tools it may use.")
    prompt_middleware: Text | None = Field(
        default=None, description="File of its prompt hooks, relative to the configuration."
    )


class Tenant(Block):
    """A team or customer: its keys, models and chain; nothing is shared with another tenant."""

    keys: Some[Key] = Field(
        default=(), description="Its keys, besides those made by `gateway keys new`."
    )
    models: Many[ModelName] = Field(
        default=(),
        description="Models it may call, by name or pattern (`claude-*`); none but these.",
    )
    providers: Many[Name] = Field(
        default=(),
        description="Providers it may name itself with `x-gateway-provider` on relayed routes "
        "such as /v1/files; none but these. All files of the account are then in its reach, so that no "
        "other tenant may list it.",
    )
    chain: Chain | None = Field(
        default=None,
        description="Middleware, outermost first; default: `defaults.chain`; `[]` is none.",
    )
    use: Many[Name] = Field(
        default=(),
        description="Middleware that a request may bring itself with `gateway.use`, inside the chain; none but "
        "these.",
    )
    agents: Mapping[Name, Agent] = Field(
        default_factory=dict[str, Agent],
        description="Its agents, by name; not callable in this version.",
    )


class Defaults(Block):
    """What holds where a tenant says nothing."""

    chain: Chain = Field(default=(), description="Chain of a tenant without its own.")
