"""What kind of refusal an error is: by its code, and by the words of servers that give none."""

import pytest

from gateway.dialects.base import ProviderError
from gateway.dialects.registry import DIALECTS
from tests.support.recordings import Recording, load

DIALECT = DIALECTS["openai_chat"]
RECORDED = {
    "azure-chat-error-400-content-filter": "policy",
    "azure-chat-error-401": "auth",
    "deepseek-chat-error-401": "auth",
    "llamacpp-chat-error-400": "context",
    "mistral-chat-error-401": "auth",
    "ollama-v1-error-401": "auth",
    "openrouter-chat-error-401": "auth",
    "perplexity-chat-error-401": "auth",
}
ERRORS = [item for item in load() if item.status >= 400]


@pytest.mark.bug("K08")
@pytest.mark.parametrize("recording", ERRORS, ids=lambda item: item.id)
def test_recorded_errors_have_their_class(recording: Recording) -> None:
    said = DIALECT.read_error(recording.status, recording.body, lambda text: text)

    found = DIALECT.error_class(said, recording.status)
    if recording.id in RECORDED:
        assert found == RECORDED[recording.id]
    elif "context_length_error" in recording.raw["features"]:
        assert found == "context"
    elif recording.status == 401:
        assert found == "auth"
    elif recording.status not in {400, 402, 403, 429}:
        assert found == "other"


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
        "prompt is too long: 3333404 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "`inputs` tokens + `max_new_tokens` must be <= 4097",
        "Invalid request: Your request exceeded model token limit: 8192",
        "Range of input length should be [1, 98304]",
        "Prompt exceeds max length",
    ],
)
def test_a_prompt_that_does_not_fit_is_known_by_its_words(message: str) -> None:
    assert DIALECT.error_class(ProviderError(message), 400) == "context"
    assert DIALECT.error_class(ProviderError(message), 0) == "context"


@pytest.mark.parametrize(
    ("said", "http", "kind"),
    [
        (ProviderError("", code="context_length_exceeded"), 400, "context"),
        (ProviderError("", type="exceed_context_size_error"), 400, "context"),
        (ProviderError("", code="content_policy_violation"), 400, "policy"),
        (ProviderError("Your input was flagged."), 403, "policy"),
        (ProviderError("Content violates usage guidelines."), 403, "policy"),
        (ProviderError("", code="insufficient_quota"), 429, "quota"),
        (ProviderError("Insufficient Balance"), 402, "quota"),
        (ProviderError("Your credit balance is too low"), 400, "quota"),
        (ProviderError("You exceeded your current quota. Please retry in 48s."), 429, "other"),
        (ProviderError("Rate limit reached: 10 requests per minute."), 429, "other"),
        (ProviderError("Request too large: maximum context per minute"), 429, "other"),
        (ProviderError("Incorrect API key provided."), 400, "auth"),
        (ProviderError("API key not valid. Please pass a valid API key."), 400, "auth"),
        (ProviderError(""), 401, "auth"),
        (ProviderError("no"), 403, "auth"),
        (ProviderError("Unsupported parameter: 'max_tokens'."), 400, "other"),
        (ProviderError("The model does not exist."), 404, "other"),
        (ProviderError("context length service is down"), 503, "other"),
    ],
)
def test_each_kind_of_refusal_is_told_apart(said: ProviderError, http: int, kind: str) -> None:
    assert DIALECT.error_class(said, http) == kind
