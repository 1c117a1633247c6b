"""Chat completions as a side of a translation: its requests, answers and streams, read and written."""
