"""Reads ranges of partitions, from brokers or from log directories, without Spark."""
