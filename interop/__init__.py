"""Real Kafka clients and the real Kafka broker for comparison with Barnabas."""
