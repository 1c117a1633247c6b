"""The kinds of checks, one file each; `guardrail.registry` lists them."""
