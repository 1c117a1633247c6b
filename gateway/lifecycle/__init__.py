"""What outlives a request: live runs, draining, reloads."""
