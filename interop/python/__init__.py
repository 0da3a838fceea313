"""One small program for each Python client (and kcat), all with a JSON-lines interface."""
