"""Schemas of Protobuf."""
