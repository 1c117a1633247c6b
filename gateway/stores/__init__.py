"""State behind ports: keys, counters, ledger; the only rooms that import database clients."""
