"""The fast transport: HTTP/1.1 on asyncio protocols and httptools; it refuses whatever two readers could read apart."""
