"""Audit records, the history of resources, and rollback."""
