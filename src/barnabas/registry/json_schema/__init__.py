"""Schemas of JSON Schema."""
