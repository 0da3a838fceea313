"""Kafka's APIs: a module for each, which the registry finds by walking this package; context and dispatch."""
