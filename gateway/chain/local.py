"""The door of providers that are built into the gateway: their answers never leave the process."""
