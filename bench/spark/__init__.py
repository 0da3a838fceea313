"""Spark with the format `barnabas` against Spark with its own Kafka connector."""
