"""Apache Kafka and Barnabas measured alternately, with the same clients, on one machine."""
