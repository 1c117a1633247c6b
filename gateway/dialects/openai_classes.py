"""What kind of refusal a provider's error is, by code first and by wording where the code says nothing (K08)."""

import re

from gateway.dialects.base import ProviderError

_CONTEXT_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
        "string_above_max_length",
        "max_tokens_exceeded",
        "prompt_too_long",
    }
)
_POLICY_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "moderation_blocked",
        "safety",
        "data_inspection_failed",
        "datainspectionfailed",
    }
)
_QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "exceeded_current_quota_error",
        "arrearage",
    }
)
_AUTH_CODES = frozenset(
    {
        "invalid_api_key",
        "authentication_error",
        "invalid_authentication",
        "account_deactivated",
        "permission_error",
        "api_key_invalid",
    }
)
_CONTEXT = re.compile(
    r"context (?:length|window|size|limit)|maximum (?:context|prompt length)|max_model_len"
    r"|(?:prompt|input|request) (?:is )?too long|prompt exceeds max length|range of input length"
    r"|input tokens? (?:count )?(?:\(\d+\) )?exceed|expected a string with maximum length"
    r"|exceeds? (?:the )?(?:maximum|max) (?:number of tokens|length|model length)"
    r"|tokens exceeds? maximum|exceed(?:s|ed)? (?:model )?token limit|max_new_tokens` must be"
    r"|reduce the length of|too many (?:input )?tokens|longer than the (?:model|maximum)",
    re.IGNORECASE,
)
_POLICY = re.compile(
    r"content (?:management )?polic|content[ _]filter|flagged|moderation|safety (?:system|filter|polic|reasons)"
    r"|usage (?:polic|guideline)|acceptable use|inappropriate content|violat\w* [^.]{0,40}polic",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient (?:balance|credit|quota|funds)|exceeded your current quota|billing"
    r"|out of credits|requires more credits|credit balance|payment required|spending limit",
    re.IGNORECASE,
)
_WAIT = re.compile(r"retry (?:in|after)|per (?:minute|second|hour|day)", re.IGNORECASE)
_AUTH = re.compile(
    r"(?:incorrect|invalid|missing|no|wrong|expired)[^.]{0,20} (?:api|subscription)[ -]?key"
    r"|api[ -]?key[^.]{0,20}(?:invalid|not valid|incorrect|expired|revoked)"
    r"|missing authentication|invalid (?:token|credentials|authorization)|unauthori[sz]ed",
    re.IGNORECASE,
)
_BEYOND_CONTEXT = 500


def error_class(said: ProviderError, http: int) -> str:
    """Classify an error: context (the prompt does not fit), policy, quota (money is out), auth, or other."""
    words = {str(word).lower() for word in (said.code, said.type) if word is not None}
    inner = said.extra.get("innererror")
    if isinstance(inner, dict) and "content_filter_result" in inner:
        return "policy"
    for name, codes in _BY_CODE:
        if words & codes:
            return name
    text = said.message
    raw = said.extra.get("metadata")
    if isinstance(raw, dict):
        text = f"{text}\n{raw}"
    if http < _BEYOND_CONTEXT and http != 429 and _CONTEXT.search(text):
        return "context"
    if http == 402 or (_QUOTA.search(text) and not _WAIT.search(text)):
        return "quota"
    if http in {0, 400, 403} and _POLICY.search(text):
        return "policy"
    if http in {401, 403} or (http in {0, 400} and _AUTH.search(text)):
        return "auth"
    return "other"


_BY_CODE = (
    ("context", _CONTEXT_CODES),
    ("policy", _POLICY_CODES),
    ("quota", _QUOTA_CODES),
    ("auth", _AUTH_CODES),
)
