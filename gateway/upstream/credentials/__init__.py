"""Credentials that change with time or with each request: signers, and the door that applies them."""
