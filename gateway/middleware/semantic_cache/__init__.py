"""Answers again what was answered before: keys, tiers, admission and replay (W-CACHE-1 to 18)."""
