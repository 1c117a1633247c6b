"""What the families of models on Bedrock take, read from a model's id or ARN."""

import re
from dataclasses import dataclass
from functools import lru_cache

_VENDOR = re.compile(r"(?:^|[./:])(?:[a-z-]+\.)?([a-z0-9]+)\.([a-z0-9][\w.:-]*)")
_CLAUDE = re.compile(
    r"claude-(?:(\d{1,2})(?:-(\d{1,2}))?-[a-z]+|[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d))"
)
_NEWEST = (99, 0)
_OLDEST = (2, 0)
_NO_CHOICE = frozenset({"meta", "cohere", "ai21"})
_FIRST_FORMATS, _NO_FORMATS = (4, 1), (4, 7)
"""The first version of Claude with answers by a schema, and the first that Bedrock refuses them for."""
_NO_STRICT = frozenset({"amazon", "meta", "cohere", "ai21", "stability", "writer"})


@dataclass(frozen=True, slots=True)
class Family:
    """One model. `vendor` as the id spells it, "" where the id does not say; `version` is Claude's, else (0, 0)."""

    vendor: str
    name: str
    version: tuple[int, int] = (0, 0)

    @property
    def is_claude(self) -> bool:
        """Whether it is one of Anthropic's."""
        return self.vendor == "anthropic"

    @property
    def is_nova(self) -> bool:
        """Whether it is one of Amazon's Nova."""
        return self.vendor == "amazon" and self.name.startswith("nova")

    @property
    def is_opaque(self) -> bool:
        """Whether the id, a profile or a deployment of an account, does not say which model it is."""
        return not self.vendor

    @property
    def caches(self) -> bool:
        """Whether its prompts can be marked for caching."""
        return self.is_claude or self.is_nova or self.is_opaque

    @property
    def takes_result_status(self) -> bool:
        """Whether a tool's result may be marked as an error."""
        return self.is_claude or self.is_nova or self.is_opaque

    @property
    def takes_choice(self) -> bool:
        """Whether a call of a tool can be forced."""
        return self.vendor not in _NO_CHOICE

    @property
    def streams_calls(self) -> bool:
        """Whether an answer may be streamed where tools are offered; otherwise it comes whole."""
        return self.vendor != "meta"

    @property
    def takes_text_results(self) -> bool:
        """Whether a tool's result may be a text; otherwise it must be an object."""
        return self.vendor != "mistral"

    @property
    def takes_strict(self) -> bool:
        """Whether a tool may ask for arguments that keep its schema."""
        if self.is_claude:
            return (4, 5) <= self.version < _NO_FORMATS
        return not self.is_opaque and self.vendor not in _NO_STRICT

    @property
    def takes_schema(self) -> bool:
        """Whether an answer may be asked for by a schema."""
        if self.is_claude:
            return _FIRST_FORMATS <= self.version < _NO_FORMATS
        return self.vendor not in _NO_STRICT

    @property
    def takes_sampling(self) -> bool:
        """Whether temperature and the like may be said at all."""
        return not (self.is_claude and self.version >= (4, 7))

    @property
    def takes_prefill(self) -> bool:
        """Whether the history may end with the assistant."""
        return self.is_nova or (self.is_claude and self.version < (4, 6))

    @property
    def takes_budget(self) -> bool:
        """Whether thinking is given a budget of tokens."""
        return self.is_claude and (3, 7) <= self.version < (4, 7)


@lru_cache(256)
def family_of(model: str) -> Family:
    """Read a model's id, the ARN of a model or the ARN of an inference profile."""
    resource = model.partition("/")[2] if model.startswith("arn:") else model
    found = _VENDOR.search(resource.lower())
    if found is None:
        return Family("", resource)
    vendor, name = found.groups()
    return Family(vendor, name, _claude_version(name) if vendor == "anthropic" else (0, 0))


def _claude_version(name: str) -> tuple[int, int]:
    found = _CLAUDE.search(name)
    if found is None:
        return _OLDEST if name.startswith(("claude-v", "claude-instant")) else _NEWEST
    older, older_minor, newer, newer_minor = found.groups()
    return int(older or newer), int(older_minor or newer_minor or 0)
