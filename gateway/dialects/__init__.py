"""Wire formats, spoken in both directions: bytes in, bytes out, no I/O."""
