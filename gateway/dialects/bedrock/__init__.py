"""Amazon Bedrock: Converse and its streams, Anthropic's models on Invoke, embeddings."""
