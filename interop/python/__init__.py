"""One small program for each Python client (and kcat), all speaking JSON lines."""
