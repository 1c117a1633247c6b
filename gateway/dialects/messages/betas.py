"""Which betas of a caller of Messages a cloud takes: it refuses a whole request for one that it does not know."""

from gateway.core.reply import Headers
from gateway.dialects.losses import Notes

HEADER = b"anthropic-beta"
AT_BEDROCK = (
    "compact-", "computer-use-", "context-1m-", "context-management-", "dev-full-thinking-", "effort-",
    "fine-grained-tool-streaming-", "interleaved-thinking-", "output-128k-", "structured-outputs-",
    "token-efficient-tools-", "tool-examples-", "tool-search-tool-",
)  # fmt: skip
"""How the betas begin that Bedrock knows."""
AT_VERTEX = (
    "compact-", "computer-use-", "context-1m-", "context-management-", "interleaved-thinking-",
    "tool-search-tool-", "web-search-",
)  # fmt: skip
"""How the betas begin that Vertex AI knows."""


def known_betas(passed: Headers, known: tuple[str, ...], notes: Notes) -> list[str]:
    """Return the betas that these headers ask for and the cloud knows, each once; the others are noted."""
    betas: dict[str, None] = {}
    for name, value in passed:
        if name != HEADER:
            continue
        for beta in map(str.strip, value.decode("latin-1").split(",")):
            if beta.startswith(known):
                betas[beta] = None
            elif beta:
                notes.lost("field_unsupported", f"anthropic-beta {beta}")
    return list(betas)


def bedrock_betas(passed: Headers, notes: Notes) -> list[str]:
    """Return the betas for the body of a request to Bedrock, which takes no headers for them."""
    return known_betas(passed, AT_BEDROCK, notes)


def vertex_headers(passed: Headers, notes: Notes) -> Headers:
    """Return the headers for Vertex AI: the betas that it knows, and nothing else of Anthropic's own."""
    betas = known_betas(passed, AT_VERTEX, notes)
    return ((HEADER, ",".join(betas).encode("latin-1")),) if betas else ()
