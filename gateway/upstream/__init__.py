"""The only door to providers: pools, deadlines, egress policy; it refuses to follow redirects or read the environment."""
