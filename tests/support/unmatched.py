"""Recorded requests that the gateway says in other words, by the reason; no entry may match.

What a caller's format has no words for is not listed: `asked.unsayable` tells it.
"""

UNMATCHED: dict[str, frozenset[str]] = {
    "An empty description of a tool is left out.": frozenset(
        {
            "anthropic-messages-thinking-replayed chat",
            "groq-chat-tool-use-failed messages",
            "groq-chat-tool-use-failed responses",
            "openai-chat-json-mode-2 responses",
            "openai-chat-parallel-tools messages",
            "openai-chat-parallel-tools responses",
        }
    ),
    "A message of nothing but calls has an empty text, null or no content at all.": frozenset(
        {
            "azure-chat-tool-result messages",
            "azure-chat-tool-result responses",
            "groq-chat-image-2 messages",
            "groq-chat-image-2 responses",
            "groq-chat-tool-result messages",
            "groq-chat-tool-result responses",
        }
    ),
    'A default is said or left out: `thought: false`, `format: ""`, `prefix: false`, empty reasoning.': frozenset(
        {
            "deepseek-chat-reasoning-replayed messages",
            "deepseek-chat-reasoning-replayed responses",
            "gemini-stream-error-404 chat",
            "gemini-stream-error-404 messages",
            "gemini-stream-error-404 responses",
            "ollama-native-chat chat",
            "ollama-native-chat messages",
            "ollama-native-chat responses",
            "ollama-native-chat-stream chat",
            "ollama-native-chat-stream messages",
            "ollama-native-chat-stream responses",
            "mistral-chat-file-2 messages",
            "mistral-chat-file-2 responses",
        }
    ),
    "Messages in `input` say their type or leave it out.": frozenset(
        {
            "openai-responses-error-400 chat",
            "openai-responses-error-400 messages",
            "openai-responses-incomplete chat",
            "openai-responses-incomplete messages",
        }
    ),
    "Tools of Responses are strict where nothing is said, those of other formats are not: it is always said.": frozenset(
        {
            "openai-responses-parallel-tools chat",
            "openai-responses-parallel-tools messages",
            "openai-responses-tool chat",
            "openai-responses-tool messages",
            "openai-responses-tool-result-2 chat",
            "openai-responses-tool-result-2 messages",
        }
    ),
    "The newer of two names of one field is used where a provider knows both, the common one elsewhere.": frozenset(
        {
            "gemini-structured chat",
            "gemini-structured messages",
            "gemini-structured responses",
            "llamacpp-chat-stream-tool messages",
            "llamacpp-chat-stream-tool responses",
            "ollama-v1-image-tool-result messages",
            "ollama-v1-image-tool-result responses",
        }
    ),
    "A word is written in capitals.": frozenset(
        {
            "gemini-tool-choice-2 chat",
            "gemini-tool-choice-2 messages",
            "gemini-tool-choice-2 responses",
        }
    ),
    "The address of a picture stands in an object.": frozenset(
        {
            "mistral-chat-image messages",
            "mistral-chat-image responses",
        }
    ),
    "The cache mark of a message stands at its last part.": frozenset(
        {
            "vercel-chat-cache messages",
        }
    ),
}
"""Cases are `<id> <caller>`."""


def reason_of(id_: str, caller: str) -> str | None:
    """Return why a request cannot match, None where it must."""
    case = f"{id_} {caller}"
    return next((reason for reason, cases in UNMATCHED.items() if case in cases), None)
