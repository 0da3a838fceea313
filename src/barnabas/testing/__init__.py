"""A Kafka broker for other people's tests: a pytest plugin and an in-process broker."""
