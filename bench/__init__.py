"""Apache Kafka and Barnabas measured in turns, by the same clients, on one machine."""
