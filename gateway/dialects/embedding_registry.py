"""One row per wire that embeddings are asked on in a form of its own; OpenAI's form is relayed."""

from gateway.dialects.bedrock.embeddings import BedrockEmbeddings
from gateway.dialects.cohere.embeddings import CohereEmbeddings
from gateway.dialects.embedding import EmbeddingTarget
from gateway.dialects.gemini.embeddings import GeminiEmbeddings, VertexEmbeddings
from gateway.dialects.ollama.embeddings import OllamaEmbeddings

EMBEDDINGS: dict[str, EmbeddingTarget] = {
    target.name: target
    for target in (
        BedrockEmbeddings(),
        CohereEmbeddings(),
        GeminiEmbeddings(),
        OllamaEmbeddings(),
        VertexEmbeddings(),
    )
}
"""Every such target by the name of its wire."""
