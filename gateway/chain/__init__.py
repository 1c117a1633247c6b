"""Load time only: from checked config to an immutable snapshot of plans."""
