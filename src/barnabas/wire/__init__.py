"""Encodes and decodes Kafka's messages, record batches and error codes. No IO."""
