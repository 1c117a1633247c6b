"""Measures the semantic cache on labelled pairs and streams."""

import os

# Threads of the products would wait for each other more than they help: the matrices are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
