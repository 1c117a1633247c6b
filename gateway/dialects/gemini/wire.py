"""The shapes of an answer of generateContent, as far as they are read; parts stay decoded JSON."""

from typing import Any

from gateway.core import codec
from gateway.core.usage import Usage
from gateway.dialects.counts import plausible, together


class Count(codec.Struct, rename="camel"):
    """Tokens of one modality."""

    modality: str | None = None
    token_count: float | None = None


class UsageMetadata(codec.Struct, rename="camel"):
    """Counts so far; one that is absent is zero, or not known where nothing is counted at all."""

    prompt_token_count: float | None = None
    candidates_token_count: float | None = None
    thoughts_token_count: float | None = None
    tool_use_prompt_token_count: float | None = None
    cached_content_token_count: float | None = None
    prompt_tokens_details: list[Count] | None = None
    candidates_tokens_details: list[Count] | None = None

    def usage(self) -> Usage:
        """Return the counts: thoughts are output, prompts of the provider's own tools are input (K16)."""
        return Usage(
            input=together(self.prompt_token_count, self.tool_use_prompt_token_count),
            output=together(self.candidates_token_count, self.thoughts_token_count),
            cached=plausible(self.cached_content_token_count),
            reasoning=plausible(self.thoughts_token_count),
            audio_input=_audio(self.prompt_tokens_details),
            audio_output=_audio(self.candidates_tokens_details),
        )


class Weight(codec.Struct, rename="camel"):
    """One token and its log probability."""

    token: str | None = None
    log_probability: float | None = None

    def written(self) -> dict[str, Any]:
        """Return it as OpenAI writes it."""
        token = self.token or ""
        return {
            "token": token,
            "logprob": self.log_probability or 0.0,
            "bytes": list(token.encode()),
        }


class TopWeights(codec.Struct, rename="camel"):
    """The likeliest tokens of one place."""

    candidates: list[Weight] | None = None


class LogprobsResult(codec.Struct, rename="camel"):
    """The chosen tokens, and beside each the likeliest ones."""

    chosen_candidates: list[Weight] | None = None
    top_candidates: list[TopWeights] | None = None

    def written(self) -> tuple[dict[str, Any], ...]:
        """Return the list as OpenAI writes it."""
        tops = [top.candidates or [] for top in self.top_candidates or []]
        found: list[dict[str, Any]] = []
        for at, chosen in enumerate(self.chosen_candidates or []):
            beside = tops[at] if at < len(tops) else []
            found.append({**chosen.written(), "top_logprobs": [top.written() for top in beside]})
        return tuple(found)


class Content(codec.Struct):
    """What a candidate says; may be without parts."""

    parts: list[dict[str, Any]] | None = None


class Candidate(codec.Struct, rename="camel"):
    """One answer, or a piece of it. `index` is absent where there is only one."""

    index: int | None = None
    content: Content | None = None
    finish_reason: str | None = None
    grounding_metadata: dict[str, Any] | None = None
    citation_metadata: dict[str, Any] | None = None
    url_context_metadata: dict[str, Any] | None = None
    logprobs_result: LogprobsResult | None = None


class Feedback(codec.Struct, rename="camel"):
    """What the provider thinks of a prompt; with a reason where it was blocked."""

    block_reason: str | None = None


class Response(codec.Struct, rename="camel"):
    """A whole answer, or one event of a stream."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | None = None
    error: Any = None


def _audio(details: list[Count] | None) -> int | None:
    counts = [
        each.token_count or 0
        for each in details or []
        if each.modality is not None and each.modality.upper() == "AUDIO"
    ]
    return together(*counts) if counts else None
