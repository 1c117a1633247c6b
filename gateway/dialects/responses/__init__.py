"""The Responses format: relayed, read and written. Without stored state for now: every answer says `store` false."""
