"""One row per wire format."""

from gateway.dialects.base import Dialect
from gateway.dialects.openai_chat import OpenAIChat

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (OpenAIChat(),)}
"""Every dialect by its name."""
