"""Partitions on disk, in Apache Kafka's own formats. Synchronous; who calls decides on which thread."""
