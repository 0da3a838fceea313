"""Administrative requests to any Kafka broker, and their results."""
