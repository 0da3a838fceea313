"""Apache Kafka's own integration tests, run against Barnabas."""
