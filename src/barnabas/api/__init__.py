"""Kafka's APIs: a module for each, found by walking this package; the table, the context, the dispatch."""
