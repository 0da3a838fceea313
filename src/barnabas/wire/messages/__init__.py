"""Kafka's messages: a module per API, each class with the fields of every version."""
