"""The only door to providers. No redirect is followed, and the environment is not read."""
