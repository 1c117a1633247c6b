"""What kinds of questions endpoints are, by the names that routes, plans and metrics use for them."""

from typing import Final

QUESTIONS: Final = frozenset({"chat", "messages", "responses"})
"""They ask a model for an answer, each in its own format: any can be translated to any other."""
ANSWERED: Final = QUESTIONS | {"completions"}
"""Their answers are made of tokens, and may be streams."""
COUNTED: Final = ANSWERED | {"embeddings"}
"""Their answers say what they used."""
UNREAD: Final = frozenset({"files", "batches", "models", "model", "count_tokens"})
"""They call no model."""
