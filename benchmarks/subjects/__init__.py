"""What is measured: one file per gateway, one row each in registry.py."""
