"""Redis behind ports: one pipelined connection per process and node, one script per operation."""
