"""Authentication of clients."""
