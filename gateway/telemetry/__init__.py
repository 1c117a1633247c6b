"""What happened, as numbers and lines: metric cells, /metrics, request log, redaction, loop lag."""
