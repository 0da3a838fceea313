"""Kafka's messages: one module per API; each class has the fields of every version."""
