"""Sockets: listeners and connections; the only transports of the broker."""
