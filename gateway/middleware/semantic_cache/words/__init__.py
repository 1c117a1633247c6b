"""The words of the semantic cache: canonical form, guards and verifier, pure functions on texts."""
