"""Helpers that commands share: options, output, errors, connections, completion."""
