"""Errors of formats that have no words of their own for them: read in any shape, classed by status and words."""

from gateway.dialects import openai_classes, openai_errors
from gateway.dialects.base import ProviderError, Redactor


class PlainErrors:
    """See `gateway.dialects.base.Speaks`."""

    def read_error(self, http: int, body: bytes, secrets: Redactor) -> ProviderError:
        """Read a provider's error answer of any shape; never fails."""
        return openai_errors.read_error(body, secrets, http=http)

    def error_class(self, error: ProviderError, http: int) -> str:
        """Classify what a provider said: context, policy, quota, auth or other."""
        return openai_classes.error_class(error, http)
