"""The Responses format: relayed, read and written. Nothing is stored for now: each answer says `store` false."""
