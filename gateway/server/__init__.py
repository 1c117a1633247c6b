"""The only room that knows inbound HTTP."""
