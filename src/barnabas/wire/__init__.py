"""Bytes to messages and back: primitives, schemas, record batches, errors. No IO."""
