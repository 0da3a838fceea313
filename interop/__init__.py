"""Real Kafka clients, and the real Kafka broker, that Barnabas is held against."""
