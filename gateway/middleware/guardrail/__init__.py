"""Looks at what goes to models and what comes back, and blocks, redacts or flags it (W-GRD-1 to 11)."""
