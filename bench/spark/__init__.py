"""Spark with the format `barnabas` compared with Spark's own Kafka connector."""
