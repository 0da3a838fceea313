"""Schemas of Avro."""
