"""The fast transport: HTTP/1.1 on asyncio and httptools, strict where two readers could disagree."""
