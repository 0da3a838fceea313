"""A schema registry, which keeps its schemas in a topic in Confluent's format: REST API and client."""
