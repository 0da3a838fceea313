"""Partitions on disk, in Apache Kafka's own formats. Synchronous: the caller chooses the thread."""
