"""Imports segment files that were built outside the broker into logs."""
